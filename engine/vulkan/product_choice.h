#pragma once
// Which variant of a matrix product runs: the one that a test forces, else the one that timing chose, else that of a
// rule. A choice changes no bit.

#include "engine/vulkan/device_state.h"

namespace canopy::vk {

/// Whether compiling variants of the weight's kernels costs more than they gain.
bool is_small(const VulkanWeight& weight);

/// For `width` rows of a pass.
ProductVariant choose_product(DeviceState& state, ProductOp op, const VulkanWeight& weight, uint32_t width);

}  // namespace canopy::vk
