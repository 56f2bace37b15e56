#pragma once
// The time of a recorded op on a processor, with the kernels of engine/cpu.

#include <utility>

#include "engine/compute/ops.h"
#include "engine/whatif/device_profile.h"
#include "engine/whatif/kernel_rules.h"
#include "engine/whatif/kernel_work.h"

namespace canopy::predict {

/// What an op does, its units of work as `workgroups`, and the time that takes on all cores together: bytes of weights,
/// keys and values at the rate that the cores with work bring, vector instructions as the loops of
/// engine/cpu/kernels.cpp have them, and threads that wait for each other. Weights are read once, K/V once for all
/// rows. Throws bad_input for kernels that are no processor's, and where the processor has no such instructions.
std::pair<Work, WorkTime> processor_work(const Op& op, Kernels kernels, const DeviceProfile& device);

}  // namespace canopy::predict
