#pragma once
// What a device can do at most: the yardstick for its kernels, measured instead of looked up.

#include "engine/compute/types.h"

namespace canopy::vk {

class Context;

/// Multiply-add and read rate, each the best of several kernels and runs. Takes about a second and, for that long, up
/// to 256 MiB of device memory (64 MiB on a software device, a quarter of what is free at most). Device timestamps
/// where the queue has them, else wall time. Throws what Context::run throws.
DevicePeak measure_peak(Context& context);

}  // namespace canopy::vk
