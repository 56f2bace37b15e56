#pragma once
// The predicted time of a model's passes on a device.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/predict/device_profile.h"
#include "engine/predict/kernel_rules.h"
#include "engine/predict/recorded_model.h"
#include "engine/predict/work_time.h"

namespace canopy::predict {

/// Ops of a pass that are alike, with the time of one.
struct OpPrediction {
  std::string name;    // "linear_add"
  std::string shapes;  // "4 x Q4_K [4096, 4096]"
  uint32_t count = 0;
  std::string kernel;       // its name, where kernels have names of their own
  double registers = 0;     // of a thread
  double shared_bytes = 0;  // of a workgroup
  double workgroups = 0;
  WorkTime each;
};

struct PassPrediction {
  uint32_t width = 0;
  double ms = 0;              // all of it, as the host sees it
  double host_ms = 0;         // of which submissions and the bus
  uint64_t weight_bytes = 0;  // that the ops need, once each
  std::vector<OpPrediction> ops;
};

/// context: positions before the pass.
PassPrediction predict_pass(RecordedModel& model, const DeviceProfile& device, const KernelRules& rules, uint32_t width,
                            uint32_t context);

/// Milliseconds of some ops on the device, the host's part left out.
double predict_ops_ms(const OpList& ops, const DeviceProfile& device, const KernelRules& rules);

/// Weight bytes over time and the device's peak bandwidth.
double bandwidth_share(const PassPrediction& pass, const DeviceProfile& device);

/// 1, 2, 3, 4, 6, 8, 12 ... 128.
std::span<const uint32_t> usual_widths();

}  // namespace canopy::predict
