#pragma once
// The known costs of passes, the values learnt of the drafter, and the state of a calibration, which measures costs.
// Pure: no clock, no engine.

#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "engine/client/engine_client.h"

namespace canopy::app {

/// Seconds that a calibration may take.
inline constexpr double kCalibrationSeconds = 90;

struct CalibrationState {
  enum class Phase { idle, waiting, running, cancelling };  // waiting: for its first pass, perhaps until a reply ends
  Phase phase = Phase::idle;
  CalibrationProgress progress;
  std::shared_ptr<const CostSnapshot> costs;     // of the loaded pair; null where costs were never measured
  std::shared_ptr<const LearntSnapshot> learnt;  // null before the first reply in mode Adaptive
  std::string note;                              // why the last calibration ended early; else empty

  bool busy() const { return phase != Phase::idle; }
  /// In [0, 1]; negative before the first pass.
  float fraction() const;
};

struct StartCalibration {
  double seconds = kCalibrationSeconds;
};
struct StopCalibration {};

using CalibrationCommand = std::variant<StartCalibration, StopCalibration>;

/// Applies an event of the engine. Most events change nothing.
void update(CalibrationState& state, const Event& event);

/// Applies a command of the user. possible: a pair of models is loaded. Returns the command for the engine; nullopt for
/// a command that is not allowed now.
std::optional<Command> update(CalibrationState& state, const CalibrationCommand& command, bool possible);

}  // namespace canopy::app
