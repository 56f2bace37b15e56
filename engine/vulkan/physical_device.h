#pragma once
// Asking a physical device what it is.

#include <volk.h>

#include <cstdint>
#include <optional>

#include "engine/vulkan/device_report.h"
#include "engine/vulkan/pipeline_cache.h"

namespace canopy::vk {

/// The queue family to compute on, if there is one: the first with compute, as it is the one every driver tests most.
std::optional<uint32_t> compute_queue_family(VkPhysicalDevice device);

/// Everything in DeviceReport, `usable` and `reason` decided.
DeviceReport report_device(VkInstance instance, VkPhysicalDevice device, uint32_t index);

/// Of a Vulkan 1.3 device.
CacheIdentity identity_of(VkPhysicalDevice device);

bool has_extension(VkPhysicalDevice device, const char* name);

}  // namespace canopy::vk
