// The CUDA backend on a GPU of this machine, for the cases of the ops. Where there is none, no case runs, and why is
// printed: ctest names the program as skipped by it.

#include <iostream>
#include <memory>

#include "tests/compute/devices.h"
#include "tests/cuda_backend/gpu_under_test.h"
#include "tests/reference/reference_device.h"

namespace canopy::test {

Device& oracle() {
  static const std::unique_ptr<Device> device = make_reference_device();
  return *device;
}

const std::vector<NamedDevice>& devices_under_test() {
  static const std::vector<NamedDevice> devices = [] {
    std::string reason;
    // Not closed: the driver may be gone by the time that a program's statics are.
    static Device* const device = open_gpu_under_test(reason).release();
    if (device != nullptr) return std::vector<NamedDevice>{{"Cuda", device}};
    std::cout << "No NVIDIA GPU to test: " << reason << "\n";
    return std::vector<NamedDevice>();
  }();
  return devices;
}

}  // namespace canopy::test
