#pragma once
// The kernels that this program has in it (cmake/CanopyCuda.cmake).

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace canopy::cuda {

/// What each fat binary begins with.
inline constexpr uint32_t kFatbinMagic = 0xBA55ED50u;

struct EmbeddedKernels {
  std::span<const std::byte> fatbins = {};  // one after the other; empty in a build without nvcc
  int least_driver = 0;                     // the oldest driver that runs them: 13000 is CUDA 13.0
  std::vector<int> architectures = {};      // compute capabilities, ascending: 89 is 8.9; the last also as PTX
};

const EmbeddedKernels& embedded_kernels();

/// The beginning of each fat binary of `joined`, which the driver loads as a module; the bytes stay the caller's.
/// Throws bad_input where the bytes are something else.
std::vector<const void*> split_fatbins(std::span<const std::byte> joined);

}  // namespace canopy::cuda
