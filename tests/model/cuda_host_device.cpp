// The CUDA backend on a made-up GPU, for a program of tests of passes.

#include "cuda_backend/cuda_device.h"
#include "tests/cuda_backend/fake_device.h"
#include "tests/model/device_under_test.h"

namespace canopy::test {
namespace {

std::unique_ptr<Device> open_cuda_host() {
  use_machine(machine_under_test());
  return open_cuda_device(fake_device_options());
}

const bool has_made_up_gpu = (open_made_up_gpu = open_cuda_host, true);

}  // namespace
}  // namespace canopy::test
