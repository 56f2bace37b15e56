// The device of the models' tests, for the cases of the ops in the same program.

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "tests/compute/devices.h"
#include "tests/model/device_under_test.h"
#include "tests/reference/reference_device.h"

namespace canopy::test {

Device& oracle() {
  static const std::unique_ptr<Device> device =
      make_reference_device(uint64_t{8} << 30, device_under_test().info().rounds_to_8_bits);
  return *device;
}

const std::vector<NamedDevice>& devices_under_test() {
  static const std::vector<NamedDevice> devices = [] {
    const char* kind = std::getenv("CANOPY_TEST_DEVICE");
    const std::string name = kind == nullptr ? "" : kind;
    if (name == "vulkan") return std::vector<NamedDevice>{{"Vulkan", &device_under_test()}};
    if (name == "cuda") return std::vector<NamedDevice>{{"Cuda", &device_under_test()}};
    return std::vector<NamedDevice>();
  }();
  return devices;
}

}  // namespace canopy::test
