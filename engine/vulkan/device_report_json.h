#pragma once
// What a device is and offers, as JSON: the same for `canopy-cli devices --json` and for reports.

#include <nlohmann/json.hpp>

#include "engine/vulkan/device_report.h"

namespace canopy::vk {

/// Sizes in bytes and invocations; "pinned" is the subgroup size that kernels ask for, 0 without a choice. No uuid.
nlohmann::ordered_json to_json(const DeviceReport& report);

}  // namespace canopy::vk
