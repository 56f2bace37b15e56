#pragma once
// Devices of the made-up driver, for programs that have both in them.

#include <cstddef>

#include "cuda_backend/cuda_device.h"
#include "cuda_backend/driver.h"
#include "tests/cuda_backend/fake_driver.h"

namespace canopy::test {

/// Two empty fat binaries, which the driver takes for the kernels of the host; they suit every GPU.
const cuda::Kernels& fake_kernels();
/// With the GPU that CANOPY_TEST_CAPABILITY says.
FakeMachine machine_under_test();
/// Of a GPU of the machine in use. It must be one that can be used.
CudaDeviceOptions fake_device_options(size_t ordinal = 0);

}  // namespace canopy::test
