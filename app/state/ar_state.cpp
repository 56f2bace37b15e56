#include "app/state/ar_state.h"

#include <memory>
#include <optional>

#include "app/state/view_model.h"

namespace canopy::app {
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
  const bool here = log.is_live() && round >= view.ar.first_round;
  ArReference reference = here ? live_reference(view, summary, reply) : recorded_reference(log, summary, reply);
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

}  // namespace canopy::app
