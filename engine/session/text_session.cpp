#include "engine/session/text_session.h"

#include <algorithm>
#include <bit>
#include <chrono>

#include "engine/base/error.h"
#include "engine/session/reply_text.h"

namespace canopy {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

std::vector<std::string> all_stops(const ChatTemplate& chat, const ReplySettings& settings) {
  std::vector<std::string> stops = chat.stop_strings();
  stops.insert(stops.end(), settings.stop_strings.begin(), settings.stop_strings.end());
  return stops;
}

}  // namespace

double Reply::tokens_per_second() const {
  uint64_t emitted = 0;
  for (const RoundRecord& round : rounds) emitted += round.emitted.size();
  return decode_ms > 0 ? 1000.0 * static_cast<double>(emitted) / decode_ms : 0;
}

double Reply::tau() const {
  uint64_t emitted = 0;
  for (const RoundRecord& round : rounds) emitted += round.emitted.size();
  return rounds.empty() ? 0 : static_cast<double>(emitted) / static_cast<double>(rounds.size());
}

/// The state of one reply while it is written.
class TextSession::Writer {
 public:
  Writer(TextSession& session, std::span<const uint32_t> prompt, const ReplySettings& settings,
         const ReplyCallbacks& callbacks)
      : session_(session),
        model_(session.model_),
        settings_(settings),
        callbacks_(callbacks),
        sampler_(settings.sampling, model_.config().vocab),
        text_(*session.text_.tokenizer, all_stops(*session.text_.chat, settings)),
        history_(prompt.begin(), prompt.end()) {
    check(prompt);
    reply_.prompt_tokens = static_cast<uint32_t>(prompt.size());
  }

  Reply write() {
    const auto start = Clock::now();
    std::optional<uint32_t> token = prefill();
    reply_.prefill_ms = milliseconds_since(start);
    if (!token) reply_.reason = FinishReason::cancelled;
    while (token && !accept(*token)) token = round();
    finish();
    return std::move(reply_);
  }

 private:
  void check(std::span<const uint32_t> prompt) const {
    const uint32_t context = model_.limits().context;
    if (prompt.empty()) throw bad_input("The prompt is empty; it needs at least one token.");
    if (settings_.max_tokens == 0) throw bad_input("The token limit of a reply is 0; allowed: 1 or more.");
    if (prompt.size() > context) {
      throw bad_input("The conversation has " + std::to_string(prompt.size()) + " tokens, but the context holds only " +
                      std::to_string(context) + ". Start a new conversation, or load the model with a longer context.");
    }
    for (const uint32_t id : prompt) {
      if (id >= model_.config().vocab) {
        throw bad_input("The prompt holds token " + std::to_string(id) + "; allowed: below " +
                        std::to_string(model_.config().vocab) + ".");
      }
    }
  }

  bool keep_going() const { return !callbacks_.keep_going || callbacks_.keep_going(); }

  /// Reads the part of the prompt that is not in the cache. The reply's first token, or nothing when cancelled.
  std::optional<uint32_t> prefill() {
    std::vector<uint32_t>& committed = session_.committed_;
    const auto total = static_cast<uint32_t>(history_.size());
    // The last token is always computed: its row gives the first token of the reply.
    const auto end = history_.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(committed.size(), total - 1));
    const auto shared = std::mismatch(history_.begin(), end, committed.begin()).first - history_.begin();
    committed.resize(static_cast<size_t>(shared));
    reply_.reused_tokens = static_cast<uint32_t>(shared);
    if (callbacks_.prefill) callbacks_.prefill(reply_.reused_tokens, total);
    while (true) {
      const auto first = static_cast<uint32_t>(committed.size());
      // Powers of two: every width has kernels of its own, and a device compiles those of a width when it first meets
      // it.
      const uint32_t count = std::min(session_.prefill_chunk_, std::bit_floor(total - first));
      const bool last = first + count == total;
      if (!pass({history_.data() + first, count}, last)) return std::nullopt;
      if (callbacks_.prefill) callbacks_.prefill(first + count, total);
      if (last) return choose();
    }
  }

  /// Decodes one token: the root's row and the target's answer to it.
  std::optional<uint32_t> round() {
    if (session_.committed_.size() >= model_.limits().context) {
      reply_.reason = FinishReason::context_full;
      return std::nullopt;
    }
    const auto start = Clock::now();
    RoundRecord record;
    record.round = static_cast<uint32_t>(reply_.rounds.size());
    record.context = static_cast<uint32_t>(session_.committed_.size());
    if (!pass({&history_.back(), 1}, true)) {
      reply_.reason = FinishReason::cancelled;
      return std::nullopt;
    }
    record.ms.verify = milliseconds_since(start);
    const auto chosen_from = Clock::now();
    const uint32_t token = choose();
    record.ms.walk = milliseconds_since(chosen_from);
    record.emitted = {token};
    record.ms.other = std::max(0.0, milliseconds_since(start) - record.ms.verify - record.ms.walk);
    reply_.decode_ms += record.ms.total();
    reply_.rounds.push_back(std::move(record));
    return token;
  }

  /// Runs tokens behind the committed text and commits them. False when cancelled; they are not committed then.
  bool pass(std::span<const uint32_t> tokens, bool wants_head) {
    if (!keep_going()) return false;
    batch_.clear();
    auto position = static_cast<uint32_t>(session_.committed_.size());
    for (const uint32_t token : tokens) batch_.add_text(token, position++);
    PassOutputs outputs;
    if (wants_head) {
      outputs.head = settings_.sampling.is_plain_greedy() ? HeadOutput::argmax : HeadOutput::logits;
      outputs.rows = {batch_.width() - 1};
    }
    result_ = model_.run(batch_, outputs, callbacks_.keep_going);
    if (!result_.completed) return false;
    session_.committed_.insert(session_.committed_.end(), tokens.begin(), tokens.end());
    return true;
  }

  /// The target's own next token from the row just computed.
  uint32_t choose() {
    if (!settings_.sampling.is_plain_greedy()) {
      return sampler_.sample(result_.logits, history_, settings_.turn, reply_.ids.size());
    }
    if (result_.ids.at(0) >= model_.config().vocab) {
      throw bad_input("The model's logits are not numbers at position " + std::to_string(history_.size()) +
                      ": its weights are damaged, or the device computes wrongly.");
    }
    return result_.ids[0];
  }

  /// Adds a token to the reply. True when it ends it.
  bool accept(uint32_t token) {
    reply_.ids.push_back(token);
    history_.push_back(token);
    const std::vector<uint32_t>& stops = session_.text_.stop_ids;
    const bool is_stop = std::binary_search(stops.begin(), stops.end(), token);
    const std::string shown = is_stop ? std::string() : text_.push(token);
    const bool stops_here = is_stop || text_.stopped();
    const bool ended = stops_here || reply_.ids.size() >= settings_.max_tokens;
    if (ended) reply_.reason = stops_here ? FinishReason::stop_token : FinishReason::max_tokens;
    report(shown);
    return ended;
  }

  void report(std::string_view shown) const {
    if (!callbacks_.token) return;
    callbacks_.token({shown, static_cast<uint32_t>(reply_.ids.size()),
                      static_cast<uint32_t>(session_.committed_.size()), reply_.tokens_per_second()});
  }

  void finish() {
    const std::string rest = text_.finish();
    if (!rest.empty()) report(rest);
    reply_.text = text_.text();
  }

  TextSession& session_;
  Model& model_;
  const ReplySettings& settings_;
  const ReplyCallbacks& callbacks_;
  Sampler sampler_;
  ReplyText text_;
  std::vector<uint32_t> history_;  // prompt and reply
  RowBatch batch_;
  PassResult result_;
  Reply reply_;
};

TextSession::TextSession(Model& model, const TextModel& text) : model_(model), text_(text) {
  constexpr uint32_t software_chunk = 32;
  const uint32_t widest = model.limits().max_width;
  prefill_chunk_ = std::bit_floor(model.device().info().is_software ? std::min(software_chunk, widest) : widest);
}

Reply TextSession::reply(std::span<const uint32_t> prompt, const ReplySettings& settings,
                         const ReplyCallbacks& callbacks) {
  return Writer(*this, prompt, settings, callbacks).write();
}

}  // namespace canopy
