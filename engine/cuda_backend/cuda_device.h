#pragma once
// The CUDA backend of the device interface.

#include <cstddef>
#include <memory>
#include <span>

#include "engine/compute/device.h"
#include "engine/cuda_backend/device_facts.h"
#include "engine/cuda_backend/driver_api.h"

namespace canopy {

struct CudaDeviceOptions {
  cuda::DriverApi api = {};
  cuda::DeviceFacts facts;             // of the device to open
  std::span<const std::byte> kernels;  // fat binaries, one after the other (embedded_kernels.h)
};

/// The device belongs to the thread that opens it. Throws unavailable, out_of_memory or device_lost.
std::unique_ptr<Device> open_cuda_device(const CudaDeviceOptions& options);

}  // namespace canopy
