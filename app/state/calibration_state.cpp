#include "app/state/calibration_state.h"

#include <algorithm>

namespace canopy::app {
namespace {

using Phase = CalibrationState::Phase;

void end(CalibrationState& state, std::string note) {
  state.phase = Phase::idle;
  state.progress = {};
  state.note = std::move(note);
}

void on_failure(CalibrationState& state, const Failure& failure) {
  // A failure of a reply does not end a calibration that waits for that reply. No load can fail meanwhile.
  if (!state.busy() || failure.reply_id != 0) return;
  if (failure.kind == ErrorKind::cancelled)
    end(state, "Cancelled: what was measured before stays in use.");
  else
    end(state, failure.title + ". " + failure.detail);
}

}  // namespace

float CalibrationState::fraction() const {
  if (phase == Phase::idle || phase == Phase::waiting || progress.total == 0) return -1.0f;
  return std::clamp(static_cast<float>(progress.done) / static_cast<float>(progress.total), 0.0f, 1.0f);
}

void update(CalibrationState& state, const Event& event) {
  if (const auto* ready = std::get_if<ModelReady>(&event)) {
    state = {};
    state.costs = ready->costs;
  } else if (const auto* progress = std::get_if<CalibrationProgress>(&event)) {
    if (!state.busy()) return;
    state.progress = *progress;
    if (state.phase == Phase::waiting) state.phase = Phase::running;
  } else if (const auto* done = std::get_if<Calibrated>(&event)) {
    state.costs = done->costs;
    end(state, {});
  } else if (const auto* learnt = std::get_if<Learnt>(&event)) {
    state.learnt = learnt->learnt;
  } else if (const auto* failure = std::get_if<Failure>(&event)) {
    on_failure(state, *failure);
  }
}

std::optional<Command> update(CalibrationState& state, const CalibrationCommand& command, bool possible) {
  if (const auto* start = std::get_if<StartCalibration>(&command)) {
    if (!possible || state.busy()) return std::nullopt;
    state.phase = Phase::waiting;
    state.progress = {};
    state.note.clear();
    return Calibrate{start->seconds};
  }
  if (!state.busy() || state.phase == Phase::cancelling) return std::nullopt;
  state.phase = Phase::cancelling;
  return CancelCalibration{};
}

}  // namespace canopy::app
