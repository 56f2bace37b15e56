#pragma once
// The report of a device that a user can send: what it is, whether it keeps the numeric contract, and what passes take
// there, measured and as JSON (docs/measurements.md). It holds no path, no name of a file or a user, and no text.

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/compute/types.h"
#include "engine/session/engine.h"
#include "engine/session/measurement.h"
#include "engine/session/self_test.h"
#include "engine/speculation/pass_cost.h"

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

// Makes the report of a device: of an opened model, or of one of random weights that is made on the device.

struct MeasuringCallbacks {
  std::function<void(const LoadProgress&)> progress;
  std::stop_token stop;
};

/// The device and the program; no model yet.
MeasuredReport describe_device(const Device& device, const std::string& commit);

/// Rows that passes must have room for in a model that the plan is to be measured with.
uint32_t widest_pass(const MeasurementPlan& plan);
/// Positions of the cache: enough for the longest context of the plan that the model has.
uint32_t context_for(const MeasurementPlan& plan, const ModelConfig& config);

/// Passes of an opened model, and what is known of it. Its sequence is cleared. Throws cancelled and device_lost.
MeasuredModel measure_engine(Engine& engine, const MeasurementPlan& plan, const MeasuringCallbacks& callbacks);

/// Makes the named shape with random weights, and a drafter for it where there is memory for both, checks exactness and
/// measures passes and rounds, up to the longest context of the plan that memory holds. A shape that does not fit at
/// all is skipped, with the reason. Throws bad_input for
/// a name that there is no shape of, cancelled and device_lost.
MeasuredModel measure_shape(Device& device, const std::string& name, CacheType cache, const MeasurementPlan& plan,
                            const MeasuringCallbacks& callbacks);

/// The report as it is written to a file.
std::string report_text(const MeasuredReport& report);

}  // namespace canopy
