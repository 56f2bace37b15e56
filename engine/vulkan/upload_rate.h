#pragma once
// Measures how fast bytes reach a device's memory when nothing else is done.

#include "engine/vulkan/context.h"

namespace canopy::vk {

/// GB/s (10^9) of copies out of an UploadRing that is filled already; where the host sees the device's memory, of
/// memcpy on all cores into it. The best of several runs, which take some 100 ms and 64 MiB. Throws what
/// Context::submit throws.
double measure_upload(Context& context);

}  // namespace canopy::vk
