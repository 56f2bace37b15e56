// What a GPU reaches when it does nothing else: reading memory, and multiply-adds that wait for nothing but each other.

#include "engine/cuda_backend/kernels/common.h"

namespace canopy::cuda {
namespace {

/// `kChains` sums of a thread, each multiplied and added to `kSteps` times in a loop.
template <uint32_t kChains, uint32_t kSteps>
CANOPY_DEVICE void peak_fma_chains(const PeakFmaParams& p) {
  float sums[kChains];
  CANOPY_UNROLL
  for (uint32_t c = 0; c < kChains; ++c) sums[c] = static_cast<float>(gpu::thread() % 4 + c);
  for (uint32_t loop = 0; loop < p.loops; ++loop) {
    CANOPY_UNROLL
    for (uint32_t step = 0; step < kSteps; ++step) {
      CANOPY_UNROLL
      for (uint32_t c = 0; c < kChains; ++c) sums[c] = fmaf(sums[c], p.factor, p.summand);
    }
  }
  float all = 0;
  CANOPY_UNROLL
  for (uint32_t c = 0; c < kChains; ++c) all = all + sums[c];
  // Never so: the sums stay near 2. But the compiler does not know.
  if (all == p.never) Span<float>{p.out}[0] = all;
}

}  // namespace

CANOPY_KERNEL(peak_fma_8, PeakFmaParams, 256) {
  peak_fma_chains<8, 4>(p);
}
CANOPY_KERNEL(peak_fma_16, PeakFmaParams, 256) {
  peak_fma_chains<16, 4>(p);
}
CANOPY_KERNEL(peak_fma_32, PeakFmaParams, 256) {
  peak_fma_chains<32, 4>(p);
}
CANOPY_KERNEL(peak_fma_plain, PeakFmaParams, 256) {
  peak_fma_chains<32, 1>(p);
}

/// Each block reads kPeakReadUnits times 256 units that lie together.
CANOPY_KERNEL(peak_read, PeakReadParams, 256) {
  const Span<const Unit> from{p.from};
  const uint64_t first = uint64_t{gpu::block_x()} * kPeakReadUnits * 256 + gpu::thread();
  uint32_t all = 0;
  CANOPY_UNROLL
  for (uint32_t i = 0; i < kPeakReadUnits; ++i) {
    const Unit unit = from[first + i * 256];
    all += unit.words[0] + unit.words[1] + unit.words[2] + unit.words[3];
  }
  if (all == p.never) Span<uint32_t>{p.out}[0] = all;
}

}  // namespace canopy::cuda
