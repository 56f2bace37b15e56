// The reference device as the device under test: checks the cases, which must pass when both sides are the same.

#include "tests/compute/devices.h"
#include "tests/reference/reference_device.h"

namespace canopy::test {

Device& oracle() {
  static const std::unique_ptr<Device> device = make_reference_device();
  return *device;
}

const std::vector<NamedDevice>& devices_under_test() {
  static const std::unique_ptr<Device> device = make_reference_device();
  static const std::vector<NamedDevice> devices{{"Reference", device.get()}};
  return devices;
}

}  // namespace canopy::test
