#include "app/state/plain_decoding.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "app/state/chat_update.h"
#include "app/state/view_model.h"
#include "app/state/words.h"
#include "engine/text/unicode.h"

namespace canopy::app {
namespace {

constexpr uint64_t kFewestDrafts = 4;  // rounds with a draft
constexpr uint64_t kDraftShare = 10;   // one of so many rounds at least has a draft

std::string measured_by(const ArReference& reference) {
  switch (reference.source) {
    case ArSource::beside:
      return "measured with this reply, " + counted(reference.rounds, "plain pass", "plain passes");
    case ArSource::same_text:
      return "measured when this reply was written once more without guesses, " +
             counted(reference.rounds, "pass", "passes");
    case ArSource::plain_rounds: return "measured over " + counted(reference.rounds, "plain pass", "plain passes");
    case ArSource::calibration: return "measured by the calibration";
    case ArSource::forecast: return "predicted for this pass, nothing was measured";
    case ArSource::none: break;
  }
  return "";
}

/// When it was measured; empty where that is not known and for a forecast.
std::string when_words(const ArReference& reference, int64_t now_ms) {
  if (reference.recorded) return "in the recording";
  const std::string age = age_words(reference.at_ms, now_ms);
  return age.empty() && reference.source == ArSource::calibration ? "earlier" : age;
}

}  // namespace

const char* badge_of(const ArReference& reference) {
  return !reference.known() ? "" : reference.measured() ? "measured" : "predicted";
}

std::string age_words(int64_t at_ms, int64_t now_ms) {
  if (at_ms <= 0 || now_ms <= 0) return "";
  const int64_t minutes = std::max<int64_t>(0, now_ms - at_ms) / 60'000;
  if (minutes < 1) return "just now";
  if (minutes < 60) return std::to_string(minutes) + " min ago";
  if (minutes < 48 * 60) return std::to_string(minutes / 60) + " h ago";
  return grouped(static_cast<uint64_t>(minutes / (24 * 60))) + " days ago";
}

std::string ar_origin(const ArReference& reference, int64_t now_ms) {
  if (!reference.known()) return "";
  std::string words = measured_by(reference);
  if (const std::string when = when_words(reference, now_ms); !when.empty()) words += ", " + when;
  return reference.where.empty() ? words : words + "; " + reference.where;
}

std::string ar_age(const ArReference& reference, int64_t now_ms) {
  const std::string badge = badge_of(reference), when = when_words(reference, now_ms);
  return badge.empty() || when.empty() ? badge : badge + " " + when;
}

bool enough_drafted(const RoundStatistics& rounds) {
  const uint64_t drafted = rounds.of(DecodeMode::chain).rounds + rounds.of(DecodeMode::tree).rounds;
  return drafted >= kFewestDrafts && drafted * kDraftShare >= rounds.rounds();
}

namespace {

std::string key_of(const ModelReady& model) {
  std::string key;
  for (const std::string* part :
       {&model.file_name, &model.quantized_to, &model.kv_type, &model.device, &model.driver, &model.kernels_note})
    key += *part + '\n';
  return key;
}

void note_ready(ViewModel& view, const ModelReady& model) {
  std::string key = key_of(model);
  if (key == view.ar.key) return;
  age_served(view.served);
  view.ar = {};
  view.ar.key = std::move(key);
  view.ar.where = model_title(model) + " on " + model.device;
  view.ar.first_round = view.rounds.live->rounds();
}

void note_round(ViewModel& view, const RoundFinished& finished) {
  if (!finished.round || finished.abridged) return;
  view.ar.plain.add(*finished.round, view.chat.now_ms);
  const ArCheck& check = view.checks.check;
  if (check.reply_id == 0 || finished.reply_id != check.reply_id) return;
  if (view.ar.checked_message != check.message) view.ar.check.clear();
  view.ar.checked_message = check.message;
  view.ar.check.add(*finished.round, view.chat.now_ms);
}

ArReference of_rounds(const PlainSpeed& speed, ArSource source) {
  ArReference reference;
  reference.tokens_per_second = speed.tokens_per_second;
  reference.source = source;
  reference.rounds = speed.rounds;
  reference.at_ms = speed.newest_ms;
  return reference;
}

ArReference of_source(double tokens_per_second, ArSource source, int64_t at_ms = 0) {
  ArReference reference;
  if (tokens_per_second <= 0) return reference;
  reference.tokens_per_second = tokens_per_second;
  reference.source = source;
  reference.at_ms = at_ms;
  return reference;
}

/// What the engine reckoned with in that round. Modes with a fixed tree reckon with the calibration as it is, and make
/// no forecast without one; Adaptive works its rounds into it.
ArReference reckoned_in(const RoundLog& log, size_t round) {
  const std::shared_ptr<const RoundRecord> record = log.round(round);
  if (!record) return {};
  const bool calibrated = record->mode == DecodeMode::chain || record->mode == DecodeMode::tree;
  return of_source(record->choice.ar_tokens_per_second, calibrated ? ArSource::calibration : ArSource::forecast);
}

ArReference of_passes(const PlainBeside& plain) {
  ArReference reference = of_source(plain.tokens_per_second(), ArSource::beside);
  reference.rounds = plain.passes;
  return reference;
}

/// Of a round that the loaded model wrote on the loaded device.
ArReference live_reference(const ViewModel& view, const RoundSummary& round, const ReplySummary& reply) {
  const std::optional<PlainSpeed> check =
      view.ar.checked_message == reply.id ? view.ar.check.near(round.context) : std::nullopt;
  if (check) return of_rounds(*check, ArSource::same_text);
  const std::optional<PlainSpeed> plain = view.ar.plain.near(round.context);
  const auto& costs = view.calibration.costs;
  const bool calibrated = costs && !costs->passes.empty();
  if (plain && (!calibrated || plain->newest_ms >= view.ar.calibrated_ms))
    return of_rounds(*plain, ArSource::plain_rounds);
  if (calibrated)
    return of_source(1000 / costs->table.ar_ms(round.context), ArSource::calibration, view.ar.calibrated_ms);
  return {};
}

/// Of a round of a trace, or of one that ran before another model or device was loaded.
ArReference recorded_reference(const RoundLog& log, const RoundSummary& round, const ReplySummary& reply) {
  if (!log.is_live())
    if (const std::optional<PlainSpeed> plain = log.plain().near(round.context))
      return of_rounds(*plain, ArSource::plain_rounds);
  return of_source(reply.ar_tokens_per_second, ArSource::calibration);
}

}  // namespace

void note_ar(ViewModel& view, const Event& event) {
  if (const auto* ready = std::get_if<ModelReady>(&event)) note_ready(view, *ready);
  if (const auto* round = std::get_if<RoundFinished>(&event)) note_round(view, *round);
  if (std::holds_alternative<Calibrated>(event)) view.ar.calibrated_ms = view.chat.now_ms;
}

static ArReference reference_of(const ViewModel& view, const RoundLog& log, size_t round) {
  if (round >= log.rounds()) return {};
  const RoundSummary& summary = log.summary(round);
  const ReplySummary& reply = log.replies()[summary.reply];
  const ServedReply* served = &log == view.rounds.log.get() ? view.watched() : nullptr;
  const bool here = log.is_live() && (served != nullptr ? !served->earlier_model : round >= view.ar.first_round);
  ArReference reference = reply.plain.known() ? of_passes(reply.plain)
                          : here              ? live_reference(view, summary, reply)
                                              : recorded_reference(log, summary, reply);
  if (!reference.known()) reference = reckoned_in(log, round);
  reference.recorded = !log.is_live();
  reference.where = here ? view.ar.where : log.is_live() ? "" : log.origin();
  return reference;
}

ArReference ar_reference(const ViewModel& view, size_t round) {
  return reference_of(view, *view.rounds.log, round);
}

ArReference ar_reference(const ViewModel& view) {
  return ar_reference(view, view.rounds.playback.shown);
}

ArReference newest_ar_reference(const ViewModel& view) {
  const RoundLog& log = *view.rounds.live;
  return log.rounds() == 0 ? ArReference{} : reference_of(view, log, log.rounds() - 1);
}

namespace {

constexpr double kClearly = 1.05;  // a ratio nearer to 1 is none

std::string in_times(double ratio) {
  return fixed(ratio, ratio < 9.95 ? 1 : 0) + "\u00d7";
}

}  // namespace

PlainVerdict plain_verdict(const ReplyFinished& reply, const std::string& device) {
  PlainVerdict verdict;
  if (reply.mode == DecodeMode::ar || reply.tokens_per_second <= 0 || !reply.plain.known()) return verdict;
  const double plain = reply.plain.tokens_per_second();
  verdict.ratio = reply.tokens_per_second / plain;
  const std::string found = verdict.ratio >= kClearly       ? in_times(verdict.ratio) + " faster"
                            : verdict.ratio <= 1 / kClearly ? in_times(1 / verdict.ratio) + " slower"
                                                            : "as fast";
  const std::string both = speed(reply.tokens_per_second) + " tok/s, plain " + speed(plain) + ": " + found;
  verdict.words = {(device.empty() ? "here " : "on " + device + " ") + both, both,
                   found + (found == "as fast" ? " as plain" : " than plain")};
  verdict.why = "With guesses: " + fixed(reply.tokens_per_second, 1) +
                " tok/s over the whole reply. Plain: " + fixed(plain, 1) + " tok/s, the middle of " +
                counted(reply.plain.passes, "plain pass", "plain passes") +
                (reply.plain.own ? " of this very reply." : ", timed right behind this reply.") +
                (device.empty() ? "" : " Both when it was recorded, on " + device + ".");
  return verdict;
}

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
  const bool ended_for_it = reply.result->reason == FinishReason::repeats;  // else it would have gone on
  const bool as_long = check.open_end || ended_for_it || !reply.continued.empty();
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
