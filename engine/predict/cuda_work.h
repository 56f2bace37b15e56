#pragma once
// What ops do on an NVIDIA GPU with the kernels of the CUDA backend, cut as that backend's own functions cut them.

#include "engine/compute/ops.h"
#include "engine/predict/device_profile.h"
#include "engine/predict/work_time.h"

namespace canopy::predict {

/// Throws bad_input for a device that has no compute capability.
Work cuda_work_of(const Op& op, const DeviceProfile& device);

}  // namespace canopy::predict
