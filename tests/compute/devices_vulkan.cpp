// The Vulkan device of the driver that ctest chose. Any message of the validation layers fails the run.

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

// SwiftShader needs seconds to compile a tile of 8 columns; narrower tiles show differences between widths as well.
VulkanDeviceOptions narrow_tiles() {
  VulkanDeviceOptions options;
  options.max_tile = 4;
  return options;
}

}  // namespace

const std::vector<NamedDevice>& devices_under_test() {
  static const std::unique_ptr<Device> device = open_vulkan_device(narrow_tiles());
  static const std::vector<NamedDevice> devices{{"Vulkan", device.get()}};
  return devices;
}

namespace {

class NoValidationMessages : public ::testing::Environment {
 public:
  void TearDown() override {
    for (const auto& message : validation_messages(*devices_under_test().front().device)) {
      ADD_FAILURE() << message.id << ": " << message.text;
    }
  }
};

const auto* const registered = ::testing::AddGlobalTestEnvironment(new NoValidationMessages);

}  // namespace

}  // namespace canopy::test
