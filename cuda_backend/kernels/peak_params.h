#pragma once
// The arguments of the kernels that measure what a GPU reaches (peak.cu).

#include <cstdint>

namespace canopy::cuda {

/// Units of 16 bytes that a thread of peak_read reads.
inline constexpr uint32_t kPeakReadUnits = 16;

struct PeakReadParams {
  uint64_t from = 0, out = 0;
  uint32_t never = 0;  // no thread's sum
};

/// Of the kernels that repeat a loop.
struct PeakLoopParams {
  uint64_t out = 0;
  uint32_t loops = 0;
  float factor = 0.5f, summand = 1, never = -1;
};

/// Sums of a warp in peak_matrix, each added to twice in a loop: by 16 rows, 8 columns and 16 of the depth.
inline constexpr uint32_t kPeakMatrixChains = 8;
/// Products of a warpgroup in a loop of peak_warpgroups, of 64 rows and columns and 16 of the depth, and the bytes of
/// shared memory that their columns take.
inline constexpr uint32_t kPeakWarpgroupProducts = 8, kPeakWarpgroupBytes = 64 * 16 * 2;

}  // namespace canopy::cuda
