#include "app/charts/watch_source.h"

namespace canopy::app {
namespace {

/// What passes of the model that wrote the shown rounds need.
PassNeeds needs_of(const ViewModel& view) {
  PassNeeds needs;
  if (!view.rounds.log->is_live()) {
    needs.bytes_per_weight = bytes_per_weight(view.rounds.log->origin());
    return needs;
  }
  if (const auto& costs = view.calibration.costs; costs && !costs->passes.empty()) needs.work = costs->fitted.work();
  if (view.model && view.model->parameters > 0)
    needs.bytes_per_weight =
        static_cast<double>(view.model->weight_bytes) / static_cast<double>(view.model->parameters);
  return needs;
}

/// Whether a recording ran on a processor: by the name of Mesa's software device, as a trace has no type of device.
bool names_a_cpu(const std::string& origin) {
  return origin.find("llvmpipe") != std::string::npos;
}

}  // namespace

void WatchSource::update(const ViewModel& view, const DeviceProfile& device) {
  const RoundsState& rounds = view.rounds;
  // In slow motion the numbers change when the tokens have arrived in the text.
  const size_t newest = rounds.playback.shown, shown = rounds.playback.told() || newest == 0 ? newest : newest - 1;
  const TrailPoint& reply = trail_.up_to(rounds.log, shown, StatisticsTrail::kRoundsAFrame);
  const std::shared_ptr<const RoundRecord> record = shown < rounds.log->rounds() ? rounds.log->round(shown) : nullptr;
  const ArReference plain = ar_reference(view, shown);
  const Elsewhere elsewhere = elsewhere_.up_to(rounds.log, shown, device, needs_of(view), plain.ms());
  WatchQuestion question;
  question.reply = &reply;
  question.shown = record.get();
  question.plain = &plain;
  question.elsewhere = &elsewhere;
  question.live = rounds.log->is_live();
  question.on_cpu = question.live ? view.model && view.model->is_software : names_a_cpu(rounds.log->origin());
  question.now_ms = view.chat.now_ms;
  numbers_ = watch_numbers(question);
  has_line_ = record != nullptr;
  if (!record) return;
  // The costs of the loaded pair hold for its own rounds alone.
  const CostSnapshot* costs = question.live ? view.calibration.costs.get() : nullptr;
  budget_ = budget_view(*record, costs, plain);
  round_ = shown;
  line_ = budget_line(*record, budget_, &elsewhere);
}

}  // namespace canopy::app
