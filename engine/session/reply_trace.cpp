#include "engine/session/reply_trace.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/mapped_file.h"
#include "engine/base/text.h"
#include "engine/session/reply_writer.h"
#include "engine/speculation/beam_draft.h"

namespace canopy {

TraceHeader trace_header(const Engine& loaded) {
  const ModelReady model = loaded.describe();
  TraceHeader header;
  header.target = {model.name,         model.file_name,    model.architecture,
                   model.quantization, model.quantized_to, loaded.target_sizes};
  if (loaded.block() > 0) {
    const ModelConfig& drafter =
        loaded.draft_model != nullptr ? loaded.draft_model->config() : loaded.drafter->layers_config();
    header.drafter =
        TraceModel{drafter.name, model.drafter, drafter.architecture, drafter.quantization, "", loaded.drafter_sizes};
  }
  if (const size_t passes = loaded.speculation->table().verify_points().size(); passes > 0) {
    header.calibration =
        calibration_path({}, loaded.calibration_key()).filename().string() + ", " + std::to_string(passes) + " passes";
  }
  header.device = model.device;
  header.driver = model.driver;
  header.backend = model.backend;
  header.kv_type = model.kv_type;
  header.context = model.context;
  header.variants = loaded.model->device().info().kernels;
  return header;
}

TraceReplyBegin trace_begin(std::span<const uint32_t> prompt, const ReplySettings& settings) {
  TraceReplyBegin begin;
  begin.turn = settings.turn;
  begin.mode = settings.mode;
  if (settings.mode == DecodeMode::adaptive) begin.policy = to_string(settings.policy);
  if (settings.mode == DecodeMode::tree) begin.budget = settings.budget;
  begin.max_tokens = settings.max_tokens;
  begin.sampling = settings.sampling;
  begin.stop_strings = settings.stop_strings;
  begin.prompt.assign(prompt.begin(), prompt.end());
  // For a trace, a reply that goes on is one to a prompt that ends in what was begun.
  begin.begun_tokens = static_cast<uint32_t>(settings.begun.size());
  begin.prompt.insert(begin.prompt.end(), settings.begun.begin(), settings.begun.end());
  return begin;
}

ReplyTrace::ReplyTrace(const std::filesystem::path& path, const Engine& model, bool redact)
    : model_(model), writer_(path, trace_header(model), trace_pieces(*model.text.tokenizer), redact) {}

Reply ReplyTrace::record(std::span<const uint32_t> prompt, ReplySettings settings, ReplyCallbacks callbacks) {
  if (!settings.accept_rates.empty()) {
    throw bad_input("A reply that accepts by given rates is no text of the model, and is not recorded.");
  }
  settings.probabilities = true;
  settings.drafts = true;
  // Nothing of earlier replies goes into a file that is shared, and a re-run could not find it again.
  settings.sources &= static_cast<DraftSources>(~(kFromRecycling | kFromEarlier));
  size_t begun_bytes = std::string::npos;  // until the reply has started nothing of it is new
  callbacks.started = [this, &begun_bytes, then = std::move(callbacks.started)](const ReplyStart& start) {
    begun_bytes = start.begun_bytes;
    writer_.prefilled({start.reused_tokens, start.prefill_ms, start.first_token});
    if (then) then(start);
  };
  callbacks.drafting = [this, then = std::move(callbacks.drafting)](const TraceDrafting& drafting) {
    writer_.drafting(drafting);
    if (then) then(drafting);
  };
  callbacks.round = [this, then = std::move(callbacks.round)](const RoundRecord& round) {
    writer_.append(round);
    if (then) then(round);
  };
  writer_.begin(trace_begin(prompt, settings));
  Reply reply;
  try {
    reply = model_.reply(prompt, settings, callbacks);
  } catch (...) {
    writer_.end({.reason = FinishReason::failed});
    throw;
  }
  writer_.end({reply.reason, static_cast<uint32_t>(reply.ids.size() - settings.begun.size()), reply.decode_ms,
               reply.text.substr(std::min(begun_bytes, reply.text.size()))});
  return reply;
}

void ReplyTrace::add(std::span<const uint32_t> prompt, const ReplySettings& settings,
                     const std::optional<ReplyStart>& started, const std::optional<TraceDrafting>& drafting,
                     const Reply& reply) {
  writer_.begin(trace_begin(prompt, settings));
  if (started) writer_.prefilled({started->reused_tokens, started->prefill_ms, started->first_token});
  if (drafting) writer_.drafting(*drafting);
  for (const RoundRecord& round : reply.rounds) writer_.append(round);
  writer_.end(
      {reply.reason, static_cast<uint32_t>(reply.ids.size() - settings.begun.size()), reply.decode_ms, reply.text});
}

namespace {

[[noreturn]] void refuse_text(const std::string& what) {
  throw bad_input("Drafts behind every token cannot be made: " + what);
}

void check_text(const Engine& model, std::span<const uint32_t> text) {
  if (model.drafter == nullptr || model.drafter->by_token()) refuse_text("there is no DFlash drafter.");
  const uint32_t context = model.model->limits().context;
  if (text.size() > size_t{context} + 1) {
    refuse_text("the text has " + std::to_string(text.size()) + " tokens, but the context holds only " +
                std::to_string(context) + ".");
  }
  for (const uint32_t token : text) {
    if (token >= model.model->config().vocab) {
      refuse_text("the text holds token " + std::to_string(token) + "; allowed: below " +
                  std::to_string(model.model->config().vocab) + ".");
    }
  }
}

/// The tokens of a reply's prompt and of the reply.
std::vector<uint32_t> text_of(const TraceReader& trace, const TraceReply& reply) {
  std::vector<uint32_t> text = reply.begin.prompt;
  if (!reply.prefill || !reply.prefill->first_token) return text;
  text.push_back(*reply.prefill->first_token);
  for (size_t i = 0; i < reply.rounds; ++i) {
    const RoundRecord record = trace.round(reply.first_round + i);
    text.insert(text.end(), record.emitted.begin(), record.emitted.end());
  }
  return text;
}

void require_same(const std::string& what, const std::string& recorded, const std::string& loaded) {
  if (recorded == loaded) return;
  refuse_text("the trace was recorded with " + what + " \"" + printable(recorded) + "\"; loaded is \"" +
              printable(loaded) + "\".");
}

/// Traces keep the last component of a name, and that of the file where a model has none.
void require_same_name(const std::string& what, const std::string& recorded, const std::string& loaded) {
  if (recorded.empty() || loaded.empty()) return;
  require_same(what, recorded, loaded.substr(loaded.find_last_of("/\\") + 1));
}

/// Names alone can be alike, and a renamed file is the same model: what counts is what the drafts depend on.
void check_pair(const TraceHeader& header, const Engine& model) {
  if (header.redacted) refuse_text("the trace is redacted, so its tokens are not known.");
  const ModelConfig& config = model.model->config();
  require_same("a model of the architecture", header.target.architecture, config.architecture);
  require_same("weights of the type", header.target.quantization, config.quantization);
  require_same_name("the model", header.target.name, config.name);
  if (header.target.sizes) {
    require_same("a model of so many parameters", std::to_string(header.target.sizes->parameters),
                 std::to_string(config.parameters));
  }
  if (!header.drafter || model.drafter == nullptr) return;  // recorded without one; or said where drafts are asked for
  const ModelConfig& drafter = model.drafter->layers_config();
  require_same("drafter weights of the type", header.drafter->quantization, drafter.quantization);
  require_same_name("the drafter", header.drafter->name, drafter.name);
  if (header.drafter->sizes) {
    require_same("a drafter of so many parameters", std::to_string(header.drafter->sizes->parameters),
                 std::to_string(drafter.parameters));
    require_same("a drafter's block of", std::to_string(header.drafter->sizes->block),
                 std::to_string(model.drafter_sizes->block));
  }
}

/// Whether the lists that both have are the same.
bool same_bits(const BlockDraft& made, const BlockDraft& recorded) {
  if (made.candidates != recorded.candidates || made.is_by_token() != recorded.is_by_token()) return false;
  std::vector<uint32_t> places;  // of the recorded lists among those made
  for (uint32_t i = 0; i < recorded.lists(); ++i) {
    uint32_t place = i;
    if (i > 0 && recorded.is_by_token()) {
      const uint32_t parent = places[recorded.behind[i] / recorded.candidates];
      const uint32_t token = recorded.tokens[recorded.behind[i]];
      place = parent == BlockDraft::none ? parent : made.list_behind(parent, token);
    }
    if (place >= made.lists()) place = BlockDraft::none;
    places.push_back(place);
    if (place == BlockDraft::none) continue;
    const DepthCandidates a = made.list(place), b = recorded.list(i);
    if (!std::ranges::equal(a.tokens, b.tokens) || !std::ranges::equal(a.logits, b.logits)) return false;
    if (a.log_sum_exp != b.log_sum_exp) return false;
  }
  return true;
}

/// Recorded rounds by their context, with what their trees show of the drafts.
class RecordedRounds {
 public:
  RecordedRounds(const TraceReader& trace, size_t reply) : trace_(trace), reply_(trace.replies()[reply]) {}

  /// The most probable next token that the drafter gave behind so many positions; nothing where no round tells, or the
  /// text had a say in its tree.
  /// Asked for in ascending order.
  std::optional<uint32_t> best_at(uint32_t committed) {
    while (next_ < reply_.rounds) {
      if (!record_) record_ = trace_.round(reply_.first_round + next_);
      if (record_->context > committed) return std::nullopt;
      if (record_->context == committed) return tells() ? std::optional(best()) : std::nullopt;
      record_.reset();
      ++next_;
    }
    return std::nullopt;
  }

 private:
  bool tells() const {
    const auto of_text = [](const RoundNode& row) { return (row.node.sources & kFreeSources) != 0; };
    return record_->nodes.size() > 1 && std::ranges::none_of(record_->nodes, of_text);
  }

  uint32_t best() const {
    const RoundNode* best = &record_->nodes[1];
    for (const RoundNode& row : record_->nodes) {
      if (row.node.depth == 1 && row.node.rank == 0) best = &row;
    }
    return best->node.token;
  }

  const TraceReader& trace_;
  const TraceReply& reply_;
  size_t next_ = 0;
  std::optional<RoundRecord> record_;
};

/// Adds the drafts of one reply.
class ReplyDensifier {
 public:
  ReplyDensifier(const Engine& model, const TraceReader& trace, uint32_t reply, TraceWriter& writer,
                 DenseReport& report)
      : model_(model), trace_(trace), reply_(reply), writer_(writer), report_(report), rounds_(trace, reply) {}

  void run(std::span<const uint32_t> text, uint32_t first, const DenseCallbacks& callbacks) {
    const auto take = [this](uint32_t committed, const BlockDraft& draft) { this->take(committed, draft); };
    draft_behind_every_root(model_, text, first, take, callbacks);
    const DeviceInfo& device = model_.model->device().info();
    const auto positions = static_cast<uint32_t>(text.size() - 1 - first);
    writer_.add_dense({reply_, first, positions, device.name, device.driver, device.kernels});
    if (!writer_.problem().empty()) throw bad_input(writer_.problem());
    ++report_.replies;
  }

 private:
  void take(uint32_t committed, const BlockDraft& draft) {
    compare_with_round(committed, draft);
    const std::shared_ptr<const KeptDraft> recorded = trace_.draft(reply_, committed);
    if (recorded != nullptr) {
      ++report_.compared;
      report_.same += same_bits(draft, recorded->block) ? 1 : 0;
      if (recorded->block.depths >= draft.depths) return;
    }
    writer_.add_draft(reply_, committed, {draft, {}});
    if (!writer_.problem().empty()) throw bad_input(writer_.problem());
    ++report_.added;
  }

  /// Another device may round a close decision the other way; another model decides otherwise everywhere.
  void compare_with_round(uint32_t committed, const BlockDraft& draft) {
    constexpr uint32_t enough = 8;
    const std::optional<uint32_t> best = rounds_.best_at(committed);
    if (!best) return;
    ++seen_;
    unlike_ += *best != draft.tokens.front() ? 1 : 0;
    if (seen_ < enough || 2 * unlike_ < seen_) return;
    refuse_text(
        "of the first " + std::to_string(seen_) + " recorded guesses, " + std::to_string(unlike_) +
        " have another most probable token than what this drafter guesses; it must be another model or drafter.");
  }

  const Engine& model_;
  const TraceReader& trace_;
  uint32_t reply_;
  TraceWriter& writer_;
  DenseReport& report_;
  RecordedRounds rounds_;
  uint32_t seen_ = 0, unlike_ = 0;
};

}  // namespace

void draft_behind_every_root(const Engine& model, std::span<const uint32_t> text, uint32_t first,
                             const std::function<void(uint32_t, const BlockDraft&)>& take,
                             const DenseCallbacks& callbacks) {
  check_text(model, text);
  if (text.size() < 2 || first + 1 >= text.size()) return;  // no root that a token follows
  if (first == 0) refuse_text("there is no prompt.");
  const auto end = static_cast<uint32_t>(text.size() - 1);  // the last token is no root that is asked for
  const uint32_t context = model.model->limits().context;
  Sequence& sequence = model.resident->begin(text.first(first), true);
  const auto draft_here = [&] {
    const uint32_t committed = sequence.length();
    if (committed < first || committed + 1 >= context) return true;
    const uint32_t depths = std::min(model.drafter->max_depth(), context - committed - 1);
    DraftWish wish{depths};
    wish.nodes = kMostPaths;  // for trees of any width
    const std::optional<Draft> draft = sequence.draft(text[committed], wish, callbacks.stop);
    if (draft) take(committed, *draft);
    return draft.has_value();
  };
  const uint32_t chunk = prefill_chunk(*model.model);
  const auto stopped = [] { throw cancelled("The guesses behind every token were cancelled."); };
  while (sequence.length() + 1 < end) {
    const uint32_t at = sequence.length();
    const bool is_prompt = at < first;
    const uint32_t count = std::min(chunk, std::bit_floor((is_prompt ? first : end - 1) - at));
    const std::span<const uint32_t> tokens = text.subspan(at, count);
    ForwardInput input = sequence.text(tokens);
    input.aux_hidden_states = true;
    const ForwardOutput pass = model.model->forward(input, callbacks.stop);
    if (!pass.completed()) stopped();
    const bool whole = is_prompt ? sequence.append(tokens, pass, callbacks.stop) && draft_here()
                                 : sequence.append_each(tokens, pass, draft_here, callbacks.stop);
    if (!whole) stopped();
    if (callbacks.progress) callbacks.progress(sequence.length(), end);
  }
}

DenseReport densify(const Engine& model, const std::filesystem::path& path, const DenseCallbacks& callbacks) {
  DenseReport report;
  const TraceReader trace = TraceReader::open(path);
  with_context("The trace " + shown(path), [&] {
    check_pair(trace.header(), model);
    if (trace.replies().empty()) refuse_text("it has no reply.");
    TraceWriter writer(trace, trace_pieces(*model.text.tokenizer));
    const uint64_t before = writer.bytes();
    uint64_t total = 0, done = 0;
    std::vector<std::vector<uint32_t>> texts;
    for (const TraceReply& reply : trace.replies()) {
      texts.push_back(text_of(trace, reply));
      total += texts.back().size();
    }
    for (uint32_t i = 0; i < texts.size(); ++i) {
      const TraceReply& reply = trace.replies()[i];
      const auto first = static_cast<uint32_t>(reply.begin.prompt.size());
      if (reply.dense) {
        ++report.dense_before;
      } else if (texts[i].size() > size_t{first} + 1) {
        DenseCallbacks own = callbacks;
        own.progress = [&](uint64_t here, uint64_t) {
          if (callbacks.progress) callbacks.progress(done + here, total);
        };
        ReplyDensifier(model, trace, i, writer, report).run(texts[i], first, own);
      }
      done += texts[i].size();
    }
    writer.finish();
    report.bytes = writer.bytes() - before;
  });
  return report;
}

}  // namespace canopy
