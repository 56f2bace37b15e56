#pragma once
// The devices a test program runs its ops on. What is linked decides: the Vulkan device of the driver that ctest chose
// (VK_DRIVER_FILES), or a second reference device, which tests the cases themselves.

#include <string>
#include <vector>

#include "engine/compute/device.h"

namespace canopy::test {

struct NamedDevice {
  std::string name;  // letters, digits and underscores: a part of a test's name
  Device* device;    // lives as long as the program
};
const std::vector<NamedDevice>& devices_under_test();

/// The oracle they are compared with.
Device& oracle();

}  // namespace canopy::test
