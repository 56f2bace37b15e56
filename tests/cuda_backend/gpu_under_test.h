#pragma once
// The CUDA backend on a GPU of this machine, for tests that can run on one.

#include <memory>
#include <string>

#include "engine/compute/device.h"

namespace canopy::test {

/// Opens the GPU that CANOPY_TEST_SELECTOR names ("cuda:1"), or the first; CANOPY_TEST_FAMILY=matrix: with the kernels
/// that it falls back to. Null, and why in `reason`, where this machine has none that can be used.
std::unique_ptr<Device> open_gpu_under_test(std::string& reason);

}  // namespace canopy::test
