#include "app/state/ar_check.h"

#include <algorithm>
#include <utility>

#include "app/base/figures.h"
#include "app/state/chat_update.h"
#include "app/state/view_model.h"
#include "engine/text/utf8.h"

namespace canopy::app {
namespace {

using CheckPhase = ArCheck::Phase;

/// Compares the tokens that have come so far, and ends the check at the first difference.
void compare(CheckState& state) {
  ArCheck& check = state.check;
  const size_t both = std::min(check.plain.size(), check.expected.size());
  const auto at = std::mismatch(check.plain.begin(), check.plain.begin() + static_cast<std::ptrdiff_t>(both),
                                check.expected.begin());
  const auto same = static_cast<size_t>(at.first - check.plain.begin());
  const bool longer = !check.open_end && check.plain.size() > check.expected.size();
  if (same == both && !longer) return;
  check.difference = same;
  check.phase = CheckPhase::different;
  state.stop = true;
}

void finish(CheckState& state, const ReplyFinished& event) {
  ArCheck& check = state.check;
  state.stop = false;
  if (!check.running()) return;
  if (event.reason == FinishReason::cancelled || event.reason == FinishReason::failed) {
    check.phase = CheckPhase::cancelled;
  } else if (check.plain.size() < check.expected.size()) {
    check.difference = check.plain.size();
    check.phase = CheckPhase::different;
  } else {
    check.phase = CheckPhase::same;
  }
}

void take_tokens(CheckState& state, uint64_t reply, size_t first, const std::vector<uint32_t>& tokens) {
  const bool plain = reply == state.check.reply_id && reply != 0;
  if (plain && !state.check.running()) return;
  std::vector<uint32_t>& known = plain ? state.check.plain : state.tokens[reply];
  if (known.size() != first) return;  // earlier tokens are missing, so nothing can be compared
  known.insert(known.end(), tokens.begin(), tokens.end());
  if (plain) compare(state);
}

/// The tokens of a reply as received in this process; null where they are not known, as of one that was gone on with.
const std::vector<uint32_t>* received(const ViewModel& view, const Message& reply) {
  const auto came = view.checks.tokens.find(reply.id);
  return came != view.checks.tokens.end() && !came->second.empty() && reply.continued.empty() ? &came->second : nullptr;
}

/// All tokens of a reply, as received in this process or as saved with it. Empty where they are not known.
std::vector<uint32_t> tokens_of(const ViewModel& view, const Message& reply) {
  if (const auto* came = received(view, reply)) return *came;
  const TurnTokens& kept = reply.result->tokens;
  if (!view.model || kept.vocabulary != view.model->vocabulary) return {};
  std::vector<uint32_t> all = kept.ids;
  all.insert(all.end(), kept.ending.begin(), kept.ending.end());
  return all;
}

/// Whether the token ids saved with a reply give its text. True when the model's tokens cannot be looked up.
bool spell_the_text(const ViewModel& view, const Message& reply) {
  if (received(view, reply) || !view.model->texts) return true;
  if (reply.thought.told_apart) return true;  // the tokens spell the heads of its messages, too
  std::string bytes;
  for (const uint32_t id : reply.result->tokens.ids) {
    const std::optional<trace::Piece> piece = view.model->texts->find(id);
    if (!piece) return false;
    if (!piece->control) bytes += piece->bytes;
  }
  const std::string text = to_valid_utf8(bytes);
  return text == reply.text || text == " " + reply.text;  // some vocabularies begin every text with a space
}

std::vector<Command> begin(ViewModel& view, uint64_t message) {
  const size_t i = view.messages.find(message);
  if (i == view.messages.size() || !check_obstacle(view, view.messages[i]).empty()) return {};
  const Message& reply = view.messages[i];
  ArCheck check;
  check.phase = CheckPhase::running;
  check.message = message;
  check.reply_id = ++view.last_id;
  check.expected = tokens_of(view, reply);
  check.open_end = reply.result->reason == FinishReason::cancelled;
  Generate command;
  command.reply_id = check.reply_id;
  command.turns = turns_before(view.messages, i, reply.parameters.system_prompt, reply.parameters.left_out);
  command.thinking = reply.parameters.thinking;
  command.sampling = reply.parameters.sampling;
  // One that was gone on with had several limits; it is asked for as a whole.
  const bool as_long = check.open_end || !reply.continued.empty();
  command.max_tokens = as_long ? static_cast<uint32_t>(check.expected.size()) : reply.parameters.max_tokens;
  command.mode = DecodeMode::ar;
  command.rounds = true;
  command.probabilities = false;
  view.checks.check = std::move(check);
  view.checks.stop = false;
  return {std::move(command)};
}

std::string of_tokens(size_t some, size_t all) {
  return grouped(some) + " of " + counted(all, "token", "tokens");
}

}  // namespace

void update(CheckState& state, const Event& event) {
  ArCheck& check = state.check;
  if (const auto* prompt = std::get_if<PrefillProgress>(&event); prompt && prompt->reply_id == check.reply_id) {
    check.prompt_done = prompt->done;
    check.prompt = prompt->total;
  } else if (const auto* start = std::get_if<ReplyStarted>(&event)) {
    if (start->reply_id != check.reply_id) state.tokens[start->reply_id].clear();
    take_tokens(state, start->reply_id, 0, {start->first_token});
  } else if (const auto* round = std::get_if<RoundFinished>(&event)) {
    if (round->round) take_tokens(state, round->reply_id, round->first_index, round->round->emitted);
  } else if (const auto* end = std::get_if<ReplyFinished>(&event)) {
    if (end->reply_id == check.reply_id) finish(state, *end);
  } else if (const auto* failure = std::get_if<Failure>(&event)) {
    const bool gone = failure->kind == ErrorKind::device_lost;
    if (!check.running() || (failure->reply_id != check.reply_id && !gone)) return;
    check.phase = failure->kind == ErrorKind::cancelled ? CheckPhase::cancelled : CheckPhase::failed;
    check.problem = failure->detail.empty() ? failure->title : failure->detail;
  }
}

bool give_way(CheckState& state) {
  if (!state.check.running()) return std::exchange(state.stop, false);
  state.check.phase = CheckPhase::cancelled;
  state.stop = false;
  return true;
}

std::vector<Command> update_check(ViewModel& view, const CheckCommand& command) {
  if (const auto* start = std::get_if<CheckAgainstAr>(&command)) return begin(view, start->message);
  if (std::holds_alternative<CancelCheck>(command) && give_way(view.checks)) return {StopReply{}};
  if (std::holds_alternative<DismissCheck>(command) && !view.checks.check.running()) view.checks.check = {};
  return {};
}

std::string check_obstacle(const ViewModel& view, const Message& reply) {
  if (!reply.result || reply.writing) return "The reply is not finished.";
  if (reply.result->mode == DecodeMode::ar) return "This reply was written by plain decoding.";
  const bool known = received(view, reply) || !reply.result->tokens.ids.empty();
  if (!known || reply.result->reason == FinishReason::failed)
    return "The tokens of this reply are not known: they are not kept with it.";
  if (view.model_state != ModelState::ready || view.busy()) return "Needs a model that is idle.";
  if (model_title(*view.model) != reply.parameters.model || view.model->device != reply.parameters.device ||
      tokens_of(view, reply).empty())
    return "Another model or device is open than the one that wrote this reply.";
  if (!spell_the_text(view, reply)) return "The tokens that are kept with this reply do not spell its text.";
  if (view.recording.running()) return "Stop the recording first: the check would go into it.";
  if (view.checks.check.running()) return "A check is under way.";
  return "";
}

std::string check_words(const ArCheck& check, WindowLayout layout) {
  const size_t all = check.expected.size();
  const bool watch = layout == WindowLayout::watch;
  const std::string plain = watch ? "plain" : "plain decoding";
  switch (check.phase) {
    case CheckPhase::none: return "";
    case CheckPhase::running:
      if (check.plain.empty() && check.prompt > 0)
        return "Checking: reading prompt, " + of_tokens(check.prompt_done, check.prompt);
      return "Checking against " + plain + ": " + of_tokens(std::min(check.plain.size(), all), all);
    case CheckPhase::same:
      return watch ? "The text is the same, word for word, as without guessing."
                   : "Same text as plain decoding: " + of_tokens(all, all);
    case CheckPhase::different:
      return "Differs from " + plain + " at token " + grouped(*check.difference + 1) + " of " + grouped(all);
    case CheckPhase::cancelled:
      return "Check cancelled: " + of_tokens(std::min(check.plain.size(), all), all) + " were the same";
    case CheckPhase::failed: return "The check failed: " + check.problem;
  }
  return "";
}

}  // namespace canopy::app
