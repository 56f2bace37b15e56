#pragma once
// The measurements of a device: the calibration, which learns what passes cost, and the report that the user may send.

#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "engine/session/engine_client.h"

namespace canopy::app {

// The known costs of passes, the values learnt of the drafter, and the state of a calibration, which measures costs.
// Pure: no clock, no engine.

/// Seconds that a calibration may take.
inline constexpr double kCalibrationSeconds = 90;

struct CalibrationState {
  enum class Phase { idle, waiting, running, cancelling };  // waiting: for its first pass, perhaps until a reply ends
  Phase phase = Phase::idle;
  CalibrationProgress progress;
  std::shared_ptr<const CostSnapshot> costs;     // of the loaded pair; null where costs were never measured
  std::shared_ptr<const LearntSnapshot> learnt;  // null before the first reply in mode Adaptive
  std::string note;                              // why the last calibration ended early; else empty
  CostDrift drift;                               // of the passes since `costs` came from these
  bool when_idle = false;  // the one under way was begun by itself, and goes as soon as the user does anything
  int64_t tried_ms = 0;    // when one was last begun by itself; 0: never for this pair
  bool dismissed = false;  // the user does not want to hear of the age of `costs`

  bool busy() const { return phase != Phase::idle; }
  /// Whether the costs are to be measured anew: the passes of the last replies took other times, or other programs were
  /// at work when they were measured.
  bool is_stale() const { return costs && (costs->table.under().under_load() || drift.is_far()); }
  /// In [0, 1]; negative before the first pass.
  float fraction() const;
};

struct StartCalibration {
  double seconds = kCalibrationSeconds;
};
struct StopCalibration {};
struct DismissStaleCosts {};  // until others are measured
struct MeasureWhenIdle {      // later: whether costs that are stale are measured by themselves
  bool on = true;
};

using CalibrationCommand = std::variant<StartCalibration, StopCalibration, DismissStaleCosts, MeasureWhenIdle>;

/// Why the costs are to be measured anew, as a sentence; empty where they are not.
std::string stale_words(const CalibrationState& state);
/// The same for a narrow line.
std::string brief_stale_words(const CalibrationState& state);
/// That they were measured on a machine that did something else as well, as a sentence; empty where they were not.
std::string load_words(const CalibrationState& state);

// When stale costs are measured by themselves.

inline constexpr int64_t kQuietMs = 3 * 60'000;          // without a reply or input
inline constexpr int64_t kMeasuredAgainMs = 86'400'000;  // costs that are younger stay
inline constexpr int64_t kTriedAgainMs = 3'600'000;      // after one that was interrupted or refused
inline constexpr double kMostRereadMs = 5000;            // that the next reply may take longer for it

/// The moment from which on they are, if nobody does anything since `quiet_since_ms`; none while they are not stale, or
/// something is measured. All on one clock, since 1970.
std::optional<int64_t> remeasure_due_ms(const CalibrationState& state, int64_t quiet_since_ms);

/// Begins that measurement.
Calibrate begin_remeasuring(CalibrationState& state, int64_t now_ms);
/// Ends it where it is under way; nothing where it is not.
std::optional<Command> interrupt_remeasuring(CalibrationState& state);

/// Applies an event of the engine. Most events change nothing.
void update(CalibrationState& state, const Event& event);

/// Applies a command of the user. possible: a pair of models is loaded. Returns the command for the engine; nullopt for
/// a command that is not allowed now.
std::optional<Command> update(CalibrationState& state, const CalibrationCommand& command, bool possible);

// "Report this device": the box, the measurement that the engine makes for it, and the file that the user may send.
// Pure: no clock, no engine, no disk.

/// Seconds that the passes of a report are timed for.
inline constexpr double kReportSeconds = 60;

struct ReportState {
  enum class Phase { idle, waiting, running, cancelling };  // waiting: for its first step, perhaps until a reply ends
  bool box_shown = false;
  Phase phase = Phase::idle;
  LoadProgress step;
  std::shared_ptr<const DeviceReported> report;  // the last one; null before the first
  std::string note;                              // why the last measurement gave none; else empty
  std::string saved;                             // path that `report` was written to; empty: it was not yet
  std::string problem;                           // why it could not be written, as a sentence; else empty

  bool busy() const { return phase != Phase::idle; }
  /// In [0, 1]; negative where it is not known.
  float fraction() const;
};

struct ShowReport {
  bool shown = true;
};
struct StartReport {};
struct StopReport {};
struct SaveReport {
  std::string path;  // "~/" is the home folder; gets the ending .json if it has none
};
using ReportCommand = std::variant<ShowReport, StartReport, StopReport, SaveReport>;

/// Text to write to a file.
struct ReportFile {
  std::string path;
  std::shared_ptr<const std::string> text;
};

/// Applies an event of the engine. Most events change nothing.
void update(ReportState& state, const Event& event);

/// What a command of the user asks of the engine or the disk.
struct ReportWish {
  std::optional<Command> engine = {};
  std::optional<ReportFile> file = {};
};
/// Applies a command of the user. `device` is the one that is chosen; `possible`: there is one, and nothing is loading.
ReportWish update(ReportState& state, const ReportCommand& command, const std::string& device, bool possible);

/// Takes what came of writing ReportWish::file; `problem` is empty where it was written.
void end_save(ReportState& state, const std::string& path, const std::string& problem);

/// "canopy-report-nvidia-h200-2026-11-24.json" for a device's name and the time (milliseconds since 1970, UTC), the day
/// by local time.
std::string report_name(const std::string& device, int64_t now_ms);

}  // namespace canopy::app
