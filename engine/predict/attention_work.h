#pragma once
// The work of attention: in the kernels of GPUs partial results of chunks of positions and their merge, cut as the
// backend's plan says; in the others a workgroup for some rows of a K/V head.

#include "engine/compute/ops.h"
#include "engine/predict/device_profile.h"
#include "engine/predict/kernel_rules.h"
#include "engine/predict/work_time.h"

namespace canopy::predict {

Work work_of_attention(const AttentionArgs& args, const KernelRules& rules, const DeviceProfile& device);

}  // namespace canopy::predict
