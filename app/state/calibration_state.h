#pragma once
// What is known of the costs of passes and of the drafter, and the calibration that measures them. Pure.

#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "engine/client/engine_client.h"

namespace canopy::app {

/// Seconds that a calibration may take.
inline constexpr double kCalibrationSeconds = 90;

struct CalibrationState {
  enum class Phase { idle, waiting, running, cancelling };  // waiting: for its first pass, perhaps behind a reply
  Phase phase = Phase::idle;
  CalibrationProgress progress;
  std::shared_ptr<const CostSnapshot> costs;     // of the loaded pair; null where nothing was measured
  std::shared_ptr<const LearntSnapshot> learnt;  // null before the first reply in mode Adaptive
  std::string note;                              // how the last one ended, where it ended early

  bool busy() const { return phase != Phase::idle; }
  /// In [0, 1]; negative before the first pass.
  float fraction() const;
};

struct StartCalibration {
  double seconds = kCalibrationSeconds;
};
struct StopCalibration {};

using CalibrationCommand = std::variant<StartCalibration, StopCalibration>;

/// Folds an event of the engine in; most change nothing.
void update(CalibrationState& state, const Event& event);

/// possible: a pair of models is loaded. What the engine is to do; nothing for a command that makes no sense now.
std::optional<Command> update(CalibrationState& state, const CalibrationCommand& command, bool possible);

}  // namespace canopy::app
