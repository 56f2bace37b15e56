// The CUDA backend on the made-up GPU, for the cases of the ops.

#include "engine/cuda_backend/cuda_device.h"
#include "tests/compute/devices.h"
#include "tests/cuda_backend/fake_driver.h"
#include "tests/reference/reference_device.h"

namespace canopy::test {

Device& oracle() {
  static const std::unique_ptr<Device> device = make_reference_device();
  return *device;
}

const std::vector<NamedDevice>& devices_under_test() {
  static const std::unique_ptr<Device> device = [] {
    use_machine({});
    const cuda::DriverApi api = fake_driver();
    return open_cuda_device({api, cuda::list_devices(api, 13000).at(0), nullptr});
  }();
  static const std::vector<NamedDevice> devices{{"Cuda", device.get()}};
  return devices;
}

}  // namespace canopy::test
