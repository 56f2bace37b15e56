#pragma once
// Makes the report of a device (measured_report.h): of an opened model, or of one of random weights that is made on the
// device.

#include <functional>
#include <stop_token>
#include <string>

#include "engine/session/engine.h"
#include "engine/session/measured_report.h"

namespace canopy {

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
