#include "app/state/part_commands.h"

#include <algorithm>
#include <utility>

#include "app/state/model_update.h"
#include "app/state/tour.h"

namespace canopy::app {
namespace {

/// Why nothing can be compared now; whether columns need a drafter is the page's to say.
std::string comparison_obstacle(const ViewModel& view) {
  if (view.model_state == ModelState::loading) return "A model is being loaded.";
  return {};
}

}  // namespace

Effects on_calibration_command(ViewModel& view, const CalibrationCommand& command) {
  const bool possible =
      view.model_state == ModelState::ready && view.model && !view.model->drafter.empty() && !view.report.busy();
  Effects effects;
  if (auto asked = update(view.calibration, command, possible)) effects.engine.push_back(*std::move(asked));
  return effects;
}

Effects on_recording_command(ViewModel& view, const RecordingCommand& command) {
  Effects effects;
  if (auto asked = update(view.recording, command, view.model_state == ModelState::ready))
    effects.engine.push_back(*std::move(asked));
  return effects;
}

Effects on_report_command(ViewModel& view, const ReportCommand& command) {
  const bool possible = report_obstacle(view).empty();
  ReportWish wish = update(view.report, command, view.device_selector, possible);
  Effects effects;
  if (wish.engine) effects.engine.push_back(*std::move(wish.engine));
  effects.report = std::move(wish.file);
  return effects;
}

Effects on_comparison_command(ViewModel& view, const ComparisonCommand& command) {
  const ComparisonRoom room{comparison_obstacle(view), view.sweep_file, &view.last_id};
  ComparisonWish wish = update(view.comparison, command, room);
  Effects effects;
  const bool begins = !wish.engine.empty() && std::holds_alternative<Compare>(wish.engine.front());
  // A model that was released is brought back first.
  if (begins && view.model_state == ModelState::released) effects = open_model(view, view.model_path);
  for (Command& each : wish.engine) effects.engine.push_back(std::move(each));
  effects.sweep = std::move(wish.read);
  return effects;
}

void tell_verified(ViewModel& view) {
  const RecordingVerified& result = *view.verify.result;
  if (result.difference.empty() && result.replies > 0)
    view.chat.note = verified_words(result);
  else
    warn(view, result.replies > 0 ? "The recording has another text" : "The recording cannot be checked",
         verified_words(result));
}

void on_densified(ViewModel& view, const TraceDensified& e) {
  view.what_if.densifying = false;
  if (e.cancelled) return;
  if (e.problem.empty())
    view.what_if.dense_trace = e.path;
  else
    warn(view, "The recording got no drafts behind every token", e.problem);
}

Effects on_verify_command(ViewModel& view, const VerifyCommand& command) {
  Effects effects;
  if (auto asked = update_verify(view, command)) effects.engine.push_back(*std::move(asked));
  return effects;
}

Effects on_share_command(ViewModel& view, const ShareCommand& command) {
  Effects effects;
  effects.share = update(view.share, command, view.rounds.log->rounds() > 0);
  return effects;
}

Effects on_rounds_command(ViewModel& view, const RoundsCommand& command) {
  update(view.rounds, command);
  Effects effects;
  if (const auto* open = std::get_if<OpenTrace>(&command)) effects.trace = open->path;
  if (const auto* watch = std::get_if<WatchDemo>(&command)) effects.demo = watch->demo;
  return effects;
}

Effects on_shell_command(ViewModel& view, const ShellCommand& command) {
  update(view.shell, command);
  Effects effects;
  if (const auto* page = std::get_if<ShowPage>(&command); page && page->page != WindowPage::rounds)
    effects.sweep = SweepFileRequest{};
  if (const auto* show = std::get_if<ShowTour>(&command); show && update_tour(view, *show)) effects.demo = 0;
  if (const auto* step = std::get_if<StepTour>(&command)) update_tour(view, *step);
  return effects;
}

bool can_make_dense(const ViewModel& view) {
  return view.model_state == ModelState::ready && view.model && !view.model->drafter.empty() && view.replaying() &&
         view.rounds.log->times().empty() && !view.what_if.densifying;
}

Effects on_what_if_command(ViewModel& view, const WhatIfCommand& command) {
  update(view.what_if, command);
  Effects effects;
  if (const auto* show = std::get_if<ShowAsIf>(&command)) effects.as_if = show->there;
  if (std::holds_alternative<MakeDense>(command) && can_make_dense(view)) {
    view.what_if.densifying = true;
    view.what_if.dense_progress = {};
    effects.engine.push_back(DensifyTrace{view.rounds.trace_path});
  }
  if (std::holds_alternative<StopDense>(command) && view.what_if.densifying) effects.engine.push_back(CancelDensify{});
  if (std::holds_alternative<AddCalibration>(command)) view.shell.layout = WindowLayout::what_if;
  return effects;
}

std::string report_obstacle(const ViewModel& view) {
  if (view.model_state == ModelState::loading) return "A model is being loaded";
  if (view.calibration.busy()) return "A calibration is running";
  if (view.comparison.busy()) return "A comparison is being measured";
  const bool usable = std::ranges::any_of(view.devices, &DeviceChoice::usable);
  return usable ? "" : "There is no device that can be used";
}

}  // namespace canopy::app
