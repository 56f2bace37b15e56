#pragma once
// The device that a test program runs its ops on. It depends on the file linked in: the Vulkan device of the driver
// that ctest chose (VK_DRIVER_FILES), or a second reference device, which tests the cases themselves.

#include <string>
#include <vector>

#include "engine/compute/device.h"

namespace canopy::test {

struct NamedDevice {
  std::string name;  // letters, digits and underscores, as it is a part of test names
  Device* device;    // exists until all tests have run
};
const std::vector<NamedDevice>& devices_under_test();

/// The reference device that results are compared with.
Device& oracle();

}  // namespace canopy::test
