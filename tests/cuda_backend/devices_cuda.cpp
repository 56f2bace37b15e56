// The CUDA backend on the made-up GPU, for the cases of the ops. CANOPY_TEST_CAPABILITY: 89 for one of compute
// capability 8.9; 9.0 else.

#include "cuda_backend/cuda_device.h"
#include "tests/compute/devices.h"
#include "tests/cuda_backend/fake_device.h"
#include "tests/reference/reference_device.h"

namespace canopy::test {

Device& oracle() {
  static const std::unique_ptr<Device> device = make_reference_device();
  return *device;
}

const std::vector<NamedDevice>& devices_under_test() {
  static const std::unique_ptr<Device> device = [] {
    use_machine(machine_under_test());
    return open_cuda_device(fake_device_options());
  }();
  static const std::vector<NamedDevice> devices{{"Cuda", device.get()}};
  return devices;
}

}  // namespace canopy::test
