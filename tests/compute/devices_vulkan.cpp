// The Vulkan device of the driver that ctest chose. Any message of the validation layers fails the run.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "engine/vulkan/vulkan_device.h"
#include "tests/compute/devices.h"
#include "tests/reference/reference_device.h"

namespace canopy::test {

namespace {

// A kernel is compiled for each width of a tile, on SwiftShader for up to seconds; narrow tiles show differences
// between widths as well. CANOPY_TEST_MAX_TILE (columns) makes them narrower still; "own": the device's.
// CANOPY_TEST_FAMILY: the kernels of another family than the device's own. CANOPY_TEST_SELECTOR: which Vulkan device;
// empty: the best.
VulkanDeviceOptions options_under_test() {
  const char* family = std::getenv("CANOPY_TEST_FAMILY");
  const char* tile = std::getenv("CANOPY_TEST_MAX_TILE");
  const char* selector = std::getenv("CANOPY_TEST_SELECTOR");
  VulkanDeviceOptions options;
  if (selector != nullptr) options.selector = selector;
  if (family != nullptr && *family != '\0') options.family = vk::kernel_family(family).value();
  if (tile == nullptr || *tile == '\0') {
    options.max_tile = 4;
  } else if (std::string(tile) != "own") {
    options.max_tile = static_cast<uint32_t>(std::stoul(tile));
  }
  return options;
}

std::unique_ptr<Device>& vulkan_device() {
  static std::unique_ptr<Device> device = open_vulkan_device(options_under_test());
  return device;
}

// The device is closed before the program's exit, at which the objects of validation layers may be gone.
class NoValidationMessages : public ::testing::Environment {
 public:
  void TearDown() override {
    for (const auto& message : validation_messages(*vulkan_device()))
      ADD_FAILURE() << message.id << ": " << message.text;
    vulkan_device().reset();
  }
};

const auto* const registered = ::testing::AddGlobalTestEnvironment(new NoValidationMessages);

}  // namespace

Device& oracle() {
  static const std::unique_ptr<Device> device =
      make_reference_device(uint64_t{8} << 30, vulkan_device()->info().rounds_to_8_bits);
  return *device;
}

const std::vector<NamedDevice>& devices_under_test() {
  static const std::vector<NamedDevice> devices{{"Vulkan", vulkan_device().get()}};
  return devices;
}

}  // namespace canopy::test
