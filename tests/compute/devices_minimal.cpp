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

namespace {

std::unique_ptr<Device>& minimal_device() {
  static std::unique_ptr<Device> device = [] {
    VulkanDeviceOptions options;
    options.context.baseline = true;
    options.as_software = false;
    options.family = vk::KernelFamily::fma;
    return open_vulkan_device(options);
  }();
  return device;
}

// Closed before the program's exit, at which the objects of validation layers may be gone (they are since 1.4.309).
class CloseMinimalDevice : public ::testing::Environment {
 public:
  void TearDown() override { minimal_device().reset(); }
};
const auto* const closing = ::testing::AddGlobalTestEnvironment(new CloseMinimalDevice);

}  // namespace

const std::vector<NamedDevice>& devices_under_test() {
  static const std::vector<NamedDevice> devices{{"Minimal", minimal_device().get()}};
  return devices;
}

}  // namespace canopy::test
