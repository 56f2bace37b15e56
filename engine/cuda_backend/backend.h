#pragma once
// CUDA as one of the backends.

#include <functional>

#include "engine/compute/backend.h"
#include "engine/cuda_backend/driver_library.h"
#include "engine/cuda_backend/embedded_kernels.h"

namespace canopy {

/// `driver` and `kernels`: made up in tests; NVIDIA's and those of this program by default.
Backend cuda_backend(
    std::function<cuda::FoundDriver()> driver = [] { return cuda::find_driver(); },
    const cuda::EmbeddedKernels& kernels = cuda::embedded_kernels());

}  // namespace canopy
