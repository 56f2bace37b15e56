#pragma once
// Choosing one Vulkan device of those reported. Pure functions.

#include <span>
#include <string_view>
#include <vector>

#include "engine/compute/device_choice.h"
#include "engine/vulkan/device_report.h"

namespace canopy::vk {

/// The reports as choose_device() takes them, by their indices.
std::vector<ListedDevice> listed(std::span<const DeviceReport> reports);

/// Position in `reports` of the device that `selector` names, as choose_device() says.
size_t select_device(std::span<const DeviceReport> reports, std::string_view selector);

}  // namespace canopy::vk
