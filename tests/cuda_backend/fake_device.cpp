#include "tests/cuda_backend/fake_device.h"

#include <array>
#include <cstdlib>
#include <span>
#include <string>

namespace canopy::test {

using namespace cuda;

const Kernels& fake_kernels() {
  static const std::array<uint64_t, 4> bytes = {kFatbinMagic | uint64_t{1} << 32 | uint64_t{16} << 48, 0,
                                                kFatbinMagic | uint64_t{1} << 32 | uint64_t{16} << 48, 0};
  static const Kernels kernels{std::as_bytes(std::span(bytes)), 13000, {75, 80, 86, 89, 90}};
  return kernels;
}

FakeMachine machine_under_test() {
  FakeMachine machine;
  const char* capability = std::getenv("CANOPY_TEST_CAPABILITY");
  if (capability != nullptr) machine.gpus[0].capability = std::stoi(capability);
  return machine;
}

CudaDeviceOptions fake_device_options(size_t ordinal) {
  const DriverApi api = fake_driver();
  return {api, list_devices(api, fake_kernels()).at(ordinal), fake_kernels().fatbins};
}

}  // namespace canopy::test
