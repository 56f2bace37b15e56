#pragma once
// Vulkan as one of the backends.

#include <functional>
#include <vector>

#include "engine/compute/backend.h"
#include "engine/vulkan/device_report.h"

namespace canopy {

/// `list`: the devices, for tests that make them up; those of the loader by default.
Backend vulkan_backend(std::function<std::vector<vk::DeviceReport>()> list = {});

}  // namespace canopy
