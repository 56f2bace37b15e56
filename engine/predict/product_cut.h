#pragma once
// How a product is cut into workgroups, as the backend's own functions choose it for a device.

#include <cstdint>

#include "engine/compute/types.h"
#include "engine/predict/device_profile.h"
#include "engine/predict/kernel_rules.h"

namespace canopy::predict {

/// Of a workgroup.
struct ProductCut {
  double rows = 0;               // of the weight
  double columns = 0;            // rows of the pass
  double columns_in_flight = 0;  // of each of its weight rows, that it has asked for at a time
  double step = 0;               // of these, that are staged at once
  double invocations = 0;
  double shared_bytes = 0;
};

/// The cut of a weight [rows, cols] for a pass of `width` rows; rules that are set (not 0) come first.
ProductCut cut_of(const Weight& weight, uint32_t width, const KernelRules& rules, const DeviceProfile& device);

}  // namespace canopy::predict
