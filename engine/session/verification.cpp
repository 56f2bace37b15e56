#include "engine/session/verification.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <span>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/compute/sampling.h"
#include "engine/session/comparison.h"
#include "engine/session/reply_writer.h"

namespace canopy {
namespace {

constexpr size_t kTokensCompared = 20'000;  // of the recording's vocabulary; more say no more

std::string named(const std::string& text) {
  return text.empty() ? "nothing" : quoted_name(text);
}

void compare(std::vector<std::string>& sentences, const char* what, const std::string& recorded,
             const std::string& here) {
  if (recorded == here) return;
  sentences.push_back("The recording's " + std::string(what) + " is " + named(recorded) + "; here it is " +
                      named(here) + ".");
}

/// A sentence about the first token of the recording that has another text in this model; empty where none has.
std::string other_vocabulary(const Engine& engine, const TraceReader& trace) {
  const uint32_t vocab = engine.model->config().vocab;
  size_t compared = 0;
  for (const TraceReply& reply : trace.replies()) {
    for (const uint32_t token : reply.begin.prompt) {
      if (token >= vocab)
        return "The recording has token " + std::to_string(token) + "; this model has " + std::to_string(vocab) +
               " tokens.";
      const trace::Piece* recorded = trace.piece(token);
      const std::optional<trace::Piece> here = engine.texts->find(token);
      if (!recorded || ++compared > kTokensCompared) continue;
      if (here && here->bytes == recorded->bytes) continue;
      return "Token " + std::to_string(token) + " of the recording is " + quoted_name(recorded->bytes) +
             "; in this model it is " + (here ? quoted_name(here->bytes) : "not there") + ".";
    }
  }
  return {};
}

ReplySettings settings_of(const TraceReplyBegin& begin, DecodeMode mode) {
  ReplySettings settings;
  settings.mode = mode;
  if (begin.budget > 0) settings.budget = begin.budget;
  if (const auto policy = cost_policy_of(begin.policy)) settings.policy = *policy;
  settings.sampling = begin.sampling;
  settings.max_tokens = begin.max_tokens;
  settings.turn = begin.turn;
  settings.stop_strings = begin.stop_strings;
  return settings;
}

/// Whether a reply ended by itself, so that it must end at the same token here. One that was ended because it repeated
/// itself would have gone on.
bool has_end(const TraceReply& reply) {
  if (!reply.end) return false;
  const FinishReason reason = reply.end->reason;
  return reason != FinishReason::cancelled && reason != FinishReason::failed && reason != FinishReason::repeats;
}

/// The logits after a text; nothing when stopped.
std::optional<std::vector<float>> logits_after(const Engine& engine, std::span<const uint32_t> text,
                                               const std::stop_token& stop) {
  Sequence& sequence = engine.resident->begin(text, false);
  ForwardOutput output;
  uint32_t count = 0;
  while (sequence.length() < text.size()) {
    const auto left = static_cast<uint32_t>(text.size()) - sequence.length();
    count = std::min(prefill_chunk(*engine.model), std::bit_floor(left));
    const auto part = text.subspan(sequence.length(), count);
    output = engine.model->forward(sequence.text(part, count == left ? HeadOutput::logits : HeadOutput::none), stop);
    if (!output.completed() || (!sequence.append(part, output, stop) && stop.stop_requested())) return std::nullopt;
  }
  const std::span<const float> row = output.logits(count - 1);
  return std::vector<float>(row.begin(), row.end());
}

/// Says how far apart the two tokens of a difference were.
void weigh(const Engine& engine, const TraceReplyBegin& begin, std::span<const uint32_t> before, TextDifference& found,
           const std::stop_token& stop) {
  const std::optional<std::vector<float>> logits = logits_after(engine, before, stop);
  if (!logits) throw cancelled("The check was cancelled.");
  TokenAdjustments adjustments(begin.sampling, static_cast<uint32_t>(logits->size()));
  adjustments.add(before);
  RowSampler sampler;
  sampler.draw(*logits, sampling_words(begin.sampling, begin.turn, begin.begun_tokens + found.token),
               adjustments.all());
  const std::span<const float> adjusted = sampler.adjusted();
  if (found.recorded && *found.recorded < adjusted.size()) found.recorded_logit = adjusted[*found.recorded];
  if (found.here && *found.here < adjusted.size()) found.here_logit = adjusted[*found.here];
  if (found.recorded_logit && found.here_logit) found.lead = sampler.lead(*found.here, *found.recorded);
}

/// Writes a recorded reply again, up to the first token that is another one: what comes after it says nothing.
std::vector<uint32_t> written_here(const Engine& engine, const TraceReply& reply, std::span<const uint32_t> expected,
                                   DecodeMode mode, const VerifyCallbacks& callbacks) {
  const TraceReplyBegin& begin = reply.begin;
  ReplySettings settings = settings_of(begin, mode);
  const std::span<const uint32_t> prompt = std::span(begin.prompt).first(begin.prompt.size() - begin.begun_tokens);
  settings.begun.assign(begin.prompt.end() - begin.begun_tokens, begin.prompt.end());
  if (!has_end(reply)) settings.max_tokens = static_cast<uint32_t>(expected.size());
  std::stop_source enough;
  const std::stop_callback stopped(callbacks.stop, [&] { enough.request_stop(); });
  std::vector<uint32_t> here;
  const auto take = [&](std::span<const uint32_t> tokens) {
    for (const uint32_t token : tokens) {
      const size_t at = here.size();
      here.push_back(token);
      if (at >= expected.size() || expected[at] != token) enough.request_stop();
    }
    if (callbacks.progress) callbacks.progress(std::min(here.size(), expected.size()), expected.size());
  };
  ReplyCallbacks hooks;
  hooks.stop = enough.get_token();
  hooks.started = [&](const ReplyStart& start) { take(std::span(&start.first_token, 1)); };
  hooks.round = [&](const RoundRecord& round) { take(round.emitted); };
  const EmptySources sources(engine);  // as a recording has it, which draws on no other replies
  engine.reply(prompt, settings, hooks);
  if (callbacks.stop.stop_requested()) throw cancelled("The check was cancelled.");
  return here;
}

/// Throws bad_input for a reply that cannot be written again.
void check_reply(const Engine& engine, const TraceReplyBegin& begin, size_t tokens, size_t index) {
  if (begin.begun_tokens >= begin.prompt.size())
    throw bad_input("Reply " + std::to_string(index) + " of the recording goes on from " +
                    std::to_string(begin.begun_tokens) + " tokens; its prompt has " +
                    std::to_string(begin.prompt.size()) + ".");
  const size_t all = begin.prompt.size() + tokens, room = engine.model->limits().context;
  if (all > room + 1)
    throw bad_input("Reply " + std::to_string(index) + " of the recording needs a context of " + std::to_string(all) +
                    " positions; this model was loaded with " + std::to_string(room) + ".");
  const uint32_t vocab = engine.model->config().vocab;
  for (const uint32_t token : begin.prompt)
    if (token >= vocab)
      throw bad_input("The prompt of reply " + std::to_string(index) + " of the recording has token " +
                      std::to_string(token) + "; this model has " + std::to_string(vocab) + " tokens.");
}

/// The tokens of a recorded reply; nothing where its first one was not recorded.
std::optional<std::vector<uint32_t>> recorded_tokens(const TraceReader& trace, size_t index) {
  const TraceReply& reply = trace.replies().at(index);
  if (!reply.prefill || !reply.prefill->first_token) return std::nullopt;
  std::vector<uint32_t> tokens = {*reply.prefill->first_token};
  for (size_t i = 0; i < reply.rounds; ++i) {
    const RoundRecord round = trace.round(reply.first_round + i);
    tokens.insert(tokens.end(), round.emitted.begin(), round.emitted.end());
  }
  return tokens;
}

}  // namespace

RecordedIdentity compare_identity(const Engine& engine, const TraceReader& trace, bool drafts) {
  const TraceHeader& recorded = trace.header();
  if (recorded.redacted)
    throw bad_input("The recording was made without texts and tokens, so nothing in it can be compared.");
  const ModelReady here = engine.describe();
  RecordedIdentity identity;
  compare(identity.differences, "architecture", recorded.target.architecture, here.architecture);
  compare(identity.differences, "type of weights", recorded.target.quantization, here.quantization);
  compare(identity.differences, "quantization while loading", recorded.target.quantized_to, here.quantized_to);
  compare(identity.differences, "type of keys and values", recorded.kv_type, here.kv_type);
  if (std::string other = other_vocabulary(engine, trace); !other.empty())
    identity.differences.push_back(std::move(other));
  compare(identity.notes, "model file", recorded.target.file_name, here.file_name);
  compare(identity.notes, "model's name", recorded.target.name, here.name);
  if (drafts) compare(identity.notes, "drafter", recorded.drafter ? recorded.drafter->file_name : "", here.drafter);
  return identity;
}

ReplyVerdict verify_reply(const Engine& engine, const TraceReader& trace, size_t index, DecodeMode mode,
                          const VerifyCallbacks& callbacks) {
  const TraceReply& reply = trace.replies().at(index);
  const TraceReplyBegin& begin = reply.begin;
  ReplyVerdict verdict;
  verdict.reply = index;
  verdict.mode = mode;
  const std::optional<std::vector<uint32_t>> expected = recorded_tokens(trace, index);
  if (!expected || begin.prompt.empty()) {
    verdict.reason = begin.prompt.empty() ? "Its prompt was not recorded." : "Its first token was not recorded.";
    return verdict;
  }
  verdict.tokens = expected->size();
  check_reply(engine, begin, expected->size(), index);
  const std::vector<uint32_t> here = written_here(engine, reply, *expected, mode, callbacks);
  const size_t both = std::min(here.size(), expected->size());
  size_t same = 0;
  while (same < both && here[same] == (*expected)[same]) ++same;
  const bool longer = has_end(reply) && here.size() > expected->size();
  if (same == expected->size() && !longer) {
    verdict.kind = ReplyVerdict::Kind::same;
    return verdict;
  }
  verdict.kind = ReplyVerdict::Kind::different;
  TextDifference found;
  found.token = same;
  found.position = begin.prompt.size() + same;
  if (same < expected->size()) found.recorded = (*expected)[same];
  if (same < here.size()) found.here = here[same];
  std::vector<uint32_t> before = begin.prompt;
  before.insert(before.end(), expected->begin(), expected->begin() + static_cast<std::ptrdiff_t>(same));
  weigh(engine, begin, before, found, callbacks.stop);
  verdict.difference = found;
  return verdict;
}

namespace {

std::string decimals(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

/// "' the' (token 278, logit 12.5000)"
std::string token_words(const Engine& engine, const TraceReader& trace, std::optional<uint32_t> token,
                        std::optional<float> logit) {
  if (!token) return "the end of the reply";
  std::string words = "#" + std::to_string(*token);
  if (const trace::Piece* piece = trace.piece(*token))
    words = quoted_name(piece->bytes);
  else if (const std::optional<trace::Piece> here = engine.texts->find(*token))
    words = quoted_name(here->bytes);
  words += " (token " + std::to_string(*token);
  if (logit) words += ", logit " + decimals(double{*logit}, 4);
  return words + ")";
}

std::string difference_words(const Engine& engine, const TraceReader& trace, const ReplyVerdict& verdict) {
  const TextDifference& d = *verdict.difference;
  std::string words = "differs at token " + std::to_string(d.token + 1) + " of " + std::to_string(verdict.tokens) +
                      " (position " + std::to_string(d.position) + "): recorded " +
                      token_words(engine, trace, d.recorded, d.recorded_logit) + ", here " +
                      token_words(engine, trace, d.here, d.here_logit);
  if (!d.lead) return words + ".";
  words += "; the one here leads by " + decimals(*d.lead, 6) + " nats";
  return words +
         (d.is_near_tie() ? ": a near tie, which a device that rounds otherwise may break the other way." : ".");
}

}  // namespace

std::string verdict_words(const Engine& engine, const TraceReader& trace, const ReplyVerdict& verdict) {
  switch (verdict.kind) {
    case ReplyVerdict::Kind::same:
      return "same text, " + std::to_string(verdict.tokens) + " of " + std::to_string(verdict.tokens) + " tokens";
    case ReplyVerdict::Kind::not_checked: return "not checked. " + verdict.reason;
    case ReplyVerdict::Kind::different: return difference_words(engine, trace, verdict);
  }
  return "";
}

}  // namespace canopy
