#pragma once
// The report of a device that a user can send: what it is, whether it keeps the numeric contract, and what passes take
// there, as JSON (docs/measurements.md). It holds no path, no name of a file or a user, and no text.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/compute/types.h"
#include "engine/session/measurement.h"
#include "engine/session/self_test.h"
#include "engine/speculation/cost_table.h"

namespace canopy {

/// Raised by every change of a field's meaning.
inline constexpr uint32_t kMeasuredReportVersion = 1;

/// The shape that is measured where no model is opened or named.
inline constexpr const char* kReportedShape = "smollm2-135m-q4_k";

/// A model that was measured, or the reason why it was not.
struct MeasuredModel {
  std::string shape;   // "qwen3-8b-q4_k"
  bool random = true;  // weights; false: those of a file
  uint64_t parameters = 0;
  CacheType cache_type = CacheType::f16;
  uint32_t block = 0;  // rows of the drafter's pass; 0 without one
  std::optional<SelfTestReport> self_test;
  std::optional<ModelMeasurement> measurement;
  std::optional<CostTable> calibration;  // of an earlier run, or made for the report
  std::string kernels;                   // DeviceInfo::kernels after it
  std::string skipped;                   // why there is no measurement, as a sentence
};

struct MeasuredReport {
  std::string version, commit;    // of Canopy
  nlohmann::ordered_json device;  // as `canopy-cli devices --json` has it; null for one that is not listed there
  DeviceInfo info;
  MemoryInfo memory;
  uint32_t cores = 0;  // of the host
  std::vector<MeasuredModel> models;
};

/// "matrix": the family of kernels that DeviceInfo::kernels begins with.
std::string kernel_family_of(const std::string& kernels);

nlohmann::ordered_json to_json(const MeasuredReport& report);

}  // namespace canopy
