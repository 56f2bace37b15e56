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

/// The newest round that may be spoken of: the one on show, or the one before it; nullopt before the first.
std::optional<size_t> newest_with(const Playback& play, bool shown_too) {
  if (shown_too) return play.shown;
  return play.shown > 0 ? std::optional(play.shown - 1) : std::nullopt;
}

std::shared_ptr<const RoundRecord> record_of(const RoundLog& log, std::optional<size_t> round) {
  return round && *round < log.rounds() ? log.round(*round) : nullptr;
}

}  // namespace

void WatchSource::update(const ViewModel& view, const DeviceProfile& device) {
  const std::shared_ptr<RoundLog>& log = view.rounds.log;
  const Playback& play = view.rounds.playback;
  // In slow motion tokens count when they have arrived in the text, and a pass has its price when it has been checked:
  // until then the figures are those of the passes before it. The tour is about one pass, and its figures stand still.
  const bool still = view.shell.tour.shown;
  const std::optional<size_t> counted = newest_with(play, still || play.told()),
                              priced = newest_with(play, still || play.checked());
  const TrailPoint nothing;
  const std::shared_ptr<const RoundRecord> pass = record_of(*log, priced);
  const ArReference plain = priced ? ar_reference(view, *priced) : ArReference();
  const PassNeeds needs = needs_of(view);
  Elsewhere elsewhere;
  // What is predicted already is not predicted from.
  const bool recorded = log->times().empty();
  if (counted && recorded)
    elsewhere = elsewhere_.up_to(log, *counted, device, needs, ar_reference(view, *counted).ms());
  WatchQuestion question;
  question.reply = counted ? &trail_.up_to(log, *counted, StatisticsTrail::kRoundsAFrame) : &nothing;
  question.shown = pass.get();
  question.plain = &plain;
  question.elsewhere = &elsewhere;
  question.live = log->is_live();
  question.times = std::string(log->times());
  question.on_cpu = question.live ? view.model && view.model->is_software : names_a_cpu(log->origin());
  question.now_ms = view.chat.now_ms;
  numbers_ = watch_numbers(question);
  // The costs of the loaded pair hold for its own rounds alone.
  const CostSnapshot* costs = question.live ? view.calibration.costs.get() : nullptr;
  round_ = counted;
  budget_ = {};
  if (const auto told = record_of(*log, counted)) budget_ = budget_view(*told, costs, ar_reference(view, *counted));
  line_.reset();
  if (!pass) return;
  elsewhere.device = &device;
  if (recorded) elsewhere.newest = elsewhere_round(*pass, device, needs, plain.ms());
  line_ = budget_line(*pass, counted == priced ? budget_ : budget_view(*pass, costs, plain),
                      tree_set_by(view, *pass, log->summary(*priced).reply), &elsewhere);
}

}  // namespace canopy::app
