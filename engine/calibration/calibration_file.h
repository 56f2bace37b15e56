#pragma once
// Calibrations between launches: one file for each combination of device, driver, model and kernels.

#include <filesystem>
#include <optional>
#include <string>

#include "engine/speculation/cost_table.h"

namespace canopy {

/// What a calibration holds for; it is used only where all of it is the same, but for `tuned`.
struct CalibrationKey {
  std::string device;        // UUID
  std::string driver;        // name and version
  std::string model;         // identity of the weights
  std::string drafter;       // the same, with its block size; empty for none
  std::string quantization;  // of the weights as they are kept on the device
  std::string kv_type;
  std::string variants;  // kernels and their version
  /// The variants that timing chose, as "SHAPE (VARIANT)" with "; " in between. Shapes are met one by one: it is enough
  /// that those which both know have the same.
  std::string tuned = {};
  bool operator==(const CalibrationKey&) const = default;
};

/// Where calibrations are: in the cache folder (engine/base/paths.h), created when it is not there.
std::filesystem::path calibration_folder();

/// The file of `key` in `folder`.
std::filesystem::path calibration_path(const std::filesystem::path& folder, const CalibrationKey& key);

struct LoadedCalibration {
  std::optional<CostTable> table;  // without a roofline
  std::string note;                // one sentence when there is a file that is not used, and why; else empty
};

/// Never throws for what is in the file or for why it cannot be read: a calibration can be made again.
LoadedCalibration load_calibration(const std::filesystem::path& folder, const CalibrationKey& key);

/// The table in the text of a file for `key`. Throws Error(bad_input) with the reason when it cannot be used.
CostTable parse_calibration(const std::string& text, const CalibrationKey& key);

/// Replaces the file of `key` whole. Returns one sentence when that failed, else nothing.
std::string save_calibration(const std::filesystem::path& folder, const CalibrationKey& key, const CostTable& table);

}  // namespace canopy
