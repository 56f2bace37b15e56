#pragma once
// Choosing one device of those reported. Pure functions.

#include <span>
#include <string>
#include <string_view>

#include "engine/vulkan/device_report.h"

namespace canopy::vk {

/// Position in `reports` of the device that `selector` names: an index (DeviceReport::index), a type ("discrete",
/// "integrated", "virtual", "cpu") or a part of a name, ignoring case. Empty: the best one, i.e. discrete before
/// integrated before virtual before cpu, and the lowest index among equals. A type or part of a name that fits several
/// devices takes the best of those that can be used.
/// Throws unavailable, listing what exists, if nothing fits or what fits cannot be used.
size_t select_device(std::span<const DeviceReport> reports, std::string_view selector);

/// "0: NAME (discrete, DRIVER VERSION)\n1: … — not usable: REASON", for messages and `canopy-cli devices`.
std::string describe_devices(std::span<const DeviceReport> reports);

}  // namespace canopy::vk
