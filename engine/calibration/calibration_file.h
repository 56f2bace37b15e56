#pragma once
// Files that keep calibrations between launches: one for each combination of device, driver, model and kernels.

#include <filesystem>
#include <optional>
#include <string>

#include "engine/speculation/cost_table.h"

namespace canopy {

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

/// Folder of the calibrations, inside the cache folder (engine/base/paths.h); created when missing.
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

/// Writes the file of `key` atomically. Returns one sentence when that failed, else an empty string.
std::string save_calibration(const std::filesystem::path& folder, const CalibrationKey& key, const CostTable& table);

}  // namespace canopy
