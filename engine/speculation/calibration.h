#pragma once
// Calibration: measures how long passes take on this device with this model, within a given time, and keeps the
// tables in files: one for each combination of device, driver, model and kernels.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/speculation/pass_cost.h"

namespace canopy {

/// Runs single passes and returns their duration.
class PassTimer {
 public:
  virtual ~PassTimer() = default;

  /// Milliseconds of one pass of the target as PassCost::verify_ms() counts them. The contents of the cache do not
  /// matter. The first pass of a width may take longer, since it also prepares buffers and pipelines; calibrate()
  /// allows for that.
  virtual double verify_ms(uint32_t width, uint32_t context) = 0;
  /// Milliseconds of one pass of the drafter behind an injection of `backlog` features.
  virtual double draft_ms(uint32_t backlog, uint32_t context) = 0;

  /// Asked before every pass; returning true ends the calibration with Error(cancelled).
  virtual bool stopped() const { return false; }
  /// Current time in seconds, on the clock by which the budget is measured.
  virtual double now();
};

struct CalibrationPlan {
  uint32_t block = 16;          // rows of the drafter's pass, B; without a drafter, tokens that a round may bring
  bool drafts = true;           // false: there is no drafter
  bool by_token = false;        // it drafts token by token: its passes over a few paths are measured, too
  uint32_t max_width = 512;     // rows of the widest pass to measure
  uint32_t tile = 16;           // passes wider than 64 are measured at its multiples
  uint32_t max_backlog = 64;    // most features that one draft injects
  uint32_t max_context = 8192;  // most committed positions that leave room for a pass of max_width
  double budget_s = 90;         // seconds in all; the repeated pass of one row and one draft may exceed it
};

/// Throws Error(bad_input) naming the field: block of at least 2, widths of 1 to 65,536, a tile of 1 to 1,024, a
/// backlog of 1 to 65,536, contexts of at least 16, a positive budget.
void validate(const CalibrationPlan& plan);

struct CalibrationProgress {
  uint32_t done = 0;   // passes
  uint32_t total = 0;  // current plan; falls when widths that cannot win are left out
  double seconds_left = 0;
};

/// The context at which every width is measured, and all contexts, ascending.
uint32_t reference_context(const CalibrationPlan& plan);
std::vector<uint32_t> calibration_contexts(const CalibrationPlan& plan);

/// Measures every width to 64, then tiles, at the reference context, a ladder of widths at the others, and drafts.
/// Widths that cannot win are left out: those beyond two measured widths in a row with T_draft + T_verify(W) > B *
/// T_verify(1). A coarse set of points is measured first, then the rest from narrow to wide; then the points whose
/// times scatter are repeated in turns, so that a drift of the device affects all widths alike. The table is usable
/// whenever the budget ends. Throws Error(cancelled) when the timer's stopped() returns true, and Error(bad_input) when
/// no usable time was measured for one row.
CostTable calibrate(PassTimer& timer, const CalibrationPlan& plan,
                    const std::function<void(const CalibrationProgress&)>& progress = {});

// Files that keep calibrations between launches: one for each combination of device, driver, model and kernels.

/// The combination that a calibration is valid for. It is used only when all fields are equal, except `tuned`.
struct CalibrationKey {
  std::string device;        // UUID
  std::string driver;        // name and version
  std::string model;         // identity of the weights
  std::string drafter;       // the same, with its block size; empty for none
  std::string quantization;  // of the weights as they are kept on the device
  std::string kv_type;
  std::string variants;  // kernels and their version
  /// The variants that timing chose, as "SHAPE (VARIANT)" with "; " in between. Shapes are tuned when they are first
  /// used, so the two lists may name different shapes: only the shapes that both name must have the same variant.
  std::string tuned = {};
  bool operator==(const CalibrationKey&) const = default;
};

/// Folder of the calibrations, inside the cache folder (engine/base/files.h); created when missing.
std::filesystem::path calibration_folder();

/// The file of `key` in `folder`.
std::filesystem::path calibration_path(const std::filesystem::path& folder, const CalibrationKey& key);

struct LoadedCalibration {
  std::optional<CostTable> table;  // without a roofline
  std::string note;                // one sentence with the reason when a file exists but is not used; else empty
};

/// Loads the table for `key`. Never throws because of the file's contents or a read error, since a calibration can be
/// made again.
LoadedCalibration load_calibration(const std::filesystem::path& folder, const CalibrationKey& key);

/// The table in the text of a file for `key`. Throws Error(bad_input) with the reason when it cannot be used.
CostTable parse_calibration(const std::string& text, const CalibrationKey& key);

/// A calibration that was made elsewhere, for whatever it was made.
struct ForeignCalibration {
  CalibrationKey key;
  CostTable table;  // without a roofline
};

/// Reads such a file. Throws bad_input that names the file and says why it cannot be used.
ForeignCalibration read_calibration(const std::filesystem::path& path);

/// The same of a file's text; the message does not name the file.
ForeignCalibration parse_foreign_calibration(const std::string& text);

/// Writes a file for elsewhere, atomically. Throws bad_input where it cannot be written.
void write_calibration(const std::filesystem::path& path, const CalibrationKey& key, const CostTable& table);

/// What was learnt of the drafts of a pair on a device (SpeculationState::learnt()), in a file beside: as it was saved
/// for `key`, nothing where there is none, or one that is damaged.
std::optional<std::string> load_learnt(const std::filesystem::path& folder, const CalibrationKey& key);
/// As save_calibration().
std::string save_learnt(const std::filesystem::path& folder, const CalibrationKey& key, std::string_view learnt);

/// Writes the file of `key` atomically. Returns one sentence when that failed, else an empty string.
std::string save_calibration(const std::filesystem::path& folder, const CalibrationKey& key, const CostTable& table);

}  // namespace canopy
