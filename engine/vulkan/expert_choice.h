#pragma once
// Which variant of a product with experts runs: the one that a test forces, else the one that timing chose, else that
// of a rule. A choice changes no bit.

#include "engine/vulkan/device_state.h"

namespace canopy::vk {

/// Of expert_swiglu, with a weight of all experts, for `width` rows of a pass.
ExpertVariant choose_experts(DeviceState& state, const VulkanWeight& weight, const ExpertCounts& experts,
                             uint32_t width);
/// By rule, with tiles of so many columns as another product has: 1, if each pair is by itself.
ExpertVariant experts_like(const DeviceState& state, const VulkanWeight& weight, const ExpertCounts& experts,
                           uint32_t width, std::optional<uint32_t> columns);

}  // namespace canopy::vk
