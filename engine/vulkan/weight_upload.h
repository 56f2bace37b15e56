#pragma once
// Weights on their way to a device: repacked into its memory, or through memory that it copies from.

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "engine/compute/types.h"
#include "engine/vulkan/device_state.h"

namespace canopy::vk {

/// Bytes of the largest buffer that weights and caches are cut into: what one binding reaches and one allocation holds.
uint64_t shard_limit(const DeviceState& state);

/// What Device::expect_weights says.
void expect_weights(DeviceState& state, std::span<const WeightRequest> requests);

/// What Device::make_weight says.
std::unique_ptr<VulkanWeight> upload_weight(DeviceState& state, std::span<const WeightPart> parts, WeightLayout layout,
                                            std::string_view name);

/// What Device::weight_bytes says.
uint64_t weight_bytes(const DeviceState& state, std::span<const WeightPart> parts, WeightLayout layout);

}  // namespace canopy::vk
