#include "app/state/work_under_way.h"

#include "app/base/figures.h"

namespace canopy::app {

std::optional<Work> recording_work(const ViewModel& view) {
  if (view.verify.running) {
    const VerifyProgress& p = view.verify.progress;
    const std::string which = p.replies > 1 ? " " + grouped(p.reply + 1) + " of " + grouped(p.replies) : "";
    return Work{{"Checking reply" + which, p.done, p.total, false, -1}, VerifyCommand(StopVerifying{})};
  }
  if (!view.what_if.densifying) return std::nullopt;
  const DensifyProgress& p = view.what_if.dense_progress;
  return Work{{"Drafting behind every token", p.done, p.total, false, -1}, WhatIfCommand(StopDense{})};
}

std::optional<Work> work_under_way(const ViewModel& view) {
  if (view.model_state == ModelState::loading) return Work{view.loading, CancelLoading{}};
  if (view.reply_state == ReplyState::reading_prompt)
    return Work{{"", view.prompt.done, view.prompt.total, false, view.prompt.seconds_left}, StopWriting{}};
  if (view.report.busy()) {
    const LoadProgress& step = view.report.step;
    const std::string stage = step.stage.empty() ? "Reporting the device" : step.stage;
    return Work{{stage, step.done, step.total, step.in_bytes, step.seconds_left}, ReportCommand(StopReport{})};
  }
  if (view.comparison.busy()) {
    const ComparisonProgress& p = view.comparison.progress;
    return Work{{p.stage, p.done, p.total, false, p.seconds_left}, ComparisonCommand(StopMeasuring{})};
  }
  if (auto work = recording_work(view)) return work;
  if (!view.calibration.busy()) return std::nullopt;
  const CalibrationProgress& p = view.calibration.progress;
  return Work{{"Measuring passes", p.done, p.total, false, p.seconds_left}, CalibrationCommand(StopCalibration{})};
}

}  // namespace canopy::app
