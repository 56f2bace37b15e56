#pragma once
// The CUDA backend of the device interface.

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "cuda_backend/driver.h"
#include "engine/compute/backend.h"

namespace canopy {

struct CudaDeviceOptions {
  cuda::DriverApi api = {};
  cuda::DeviceFacts facts;             // of the device to open
  std::span<const std::byte> kernels;  // fat binaries, one after the other (cuda::Kernels)
};

/// The device belongs to the thread that opens it. Throws unavailable, out_of_memory or device_lost.
std::unique_ptr<Device> open_cuda_device(const CudaDeviceOptions& options);

/// CUDA as one of the backends. `driver` and `kernels`, which are asked for where there is a driver: made up in tests;
/// NVIDIA's and those of this program by default.
Backend cuda_backend(
    std::function<cuda::FoundDriver()> driver = [] { return cuda::find_driver(); },
    std::function<const cuda::Kernels&()> kernels = cuda::installed_kernels);

}  // namespace canopy
