// What a GPU reaches when it does nothing else: reading memory, and multiply-adds and products on tensor cores that
// wait for nothing but each other.

#include "cuda_backend/kernels/params.h"
#include "cuda_backend/kernels/product.h"

namespace canopy::cuda {
namespace {

/// `kChains` sums of a thread, each multiplied and added to `kSteps` times in a loop.
template <uint32_t kChains, uint32_t kSteps>
CANOPY_DEVICE void peak_fma_chains(const PeakLoopParams& p) {
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

/// Halves around 1, of which no two lanes have the same, so that tensor cores switch as many bits as in products.
template <uint32_t COUNT>
CANOPY_DEVICE void fill_with_halves(uint32_t (&words)[COUNT]) {
  CANOPY_UNROLL
  for (uint32_t i = 0; i < COUNT; ++i) words[i] = 0x3B553A95u + (gpu::lane() << 3) + (gpu::lane() << 18) + i;
}

}  // namespace

/// The instructions of products of quantized weights, whose operands are in registers already.
CANOPY_KERNEL(peak_matrix, PeakLoopParams, 256) {
  uint32_t a[2][4], b[2][2];
  CANOPY_UNROLL
  for (uint32_t half = 0; half < 2; ++half) {
    fill_with_halves(a[half]);
    fill_with_halves(b[half]);
  }
  float sums[kPeakMatrixChains][4];
  CANOPY_UNROLL
  for (uint32_t c = 0; c < kPeakMatrixChains; ++c) {
    CANOPY_UNROLL
    for (uint32_t e = 0; e < 4; ++e) sums[c][e] = static_cast<float>(c);  // or the compiler might add but one of them
  }
  const float lower[2] = {1, 1};
  for (uint32_t loop = 0; loop < p.loops; ++loop) {
    CANOPY_UNROLL
    for (uint32_t c = 0; c < kPeakMatrixChains; ++c) {
      if constexpr (adds_slowly(gpu::kArchitecture)) {
        gpu::keep(a[0][0]);  // sums of halves begin from zero, so the compiler would make them once
        multiply_raised(sums[c], a, b, lower);
      } else {
        CANOPY_UNROLL
        for (uint32_t half = 0; half < 2; ++half) gpu::multiply(sums[c], a[half], b[half]);
      }
    }
  }
  float all = 0;
  CANOPY_UNROLL
  for (uint32_t c = 0; c < kPeakMatrixChains; ++c) all = all + (sums[c][0] + sums[c][1]) + (sums[c][2] + sums[c][3]);
  if (all == p.never) Span<float>{p.out}[0] = all;
}

/// The same by warpgroups.
CANOPY_KERNEL(peak_warpgroups, PeakLoopParams, 256) {
  if constexpr (gpu::kHasWarpgroups) {
    constexpr uint32_t apart = kPeakWarpgroupBytes / 2;
    uint32_t a[4];
    fill_with_halves(a);
    const gpu::Shared<uint32_t> b(0, kPeakWarpgroupBytes / 4);
    for (uint32_t i = gpu::thread(); i < kPeakWarpgroupBytes / 4; i += gpu::threads()) b[i] = a[i % 4];
    gpu::show_to_warpgroups();
    gpu::sync();
    const uint32_t operand = gpu::warpgroup_operand(0, apart);
    float sums[8][4] = {};
    for (uint32_t loop = 0; loop < p.loops; ++loop) {
      gpu::begin_warpgroup_products();
      CANOPY_UNROLL
      for (uint32_t i = 0; i < kPeakWarpgroupProducts; ++i) gpu::begin_warpgroup_product(sums, a, operand);
      gpu::end_warpgroup_products();
      gpu::wait_for_warpgroup_products<0>();
    }
    float all = 0;
    CANOPY_UNROLL
    for (uint32_t c = 0; c < 8; ++c) all = all + (sums[c][0] + sums[c][1]) + (sums[c][2] + sums[c][3]);
    if (all == p.never) Span<float>{p.out}[0] = all;
  }
}

CANOPY_KERNEL(peak_fma_8, PeakLoopParams, 256) {
  peak_fma_chains<8, 4>(p);
}
CANOPY_KERNEL(peak_fma_16, PeakLoopParams, 256) {
  peak_fma_chains<16, 4>(p);
}
CANOPY_KERNEL(peak_fma_32, PeakLoopParams, 256) {
  peak_fma_chains<32, 4>(p);
}
CANOPY_KERNEL(peak_fma_plain, PeakLoopParams, 256) {
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
