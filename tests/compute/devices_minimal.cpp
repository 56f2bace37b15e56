// The smallest device that the baseline allows: lowered limits, no optional features, the kernels of a GPU. All cases
// of ops run on it.

#include <gtest/gtest.h>

#include "engine/vulkan/vulkan_device.h"
#include "tests/compute/devices.h"
#include "tests/reference/reference_device.h"

namespace canopy::test {

Device& oracle() {
  static const std::unique_ptr<Device> device = make_reference_device();
  return *device;
}

const std::vector<NamedDevice>& devices_under_test() {
  static const std::unique_ptr<Device> device = [] {
    VulkanDeviceOptions options;
    options.context.baseline = true;
    options.as_software = false;
    options.texel_fetch = false;
    return open_vulkan_device(options);
  }();
  static const std::vector<NamedDevice> devices{{"Minimal", device.get()}};
  return devices;
}

}  // namespace canopy::test
