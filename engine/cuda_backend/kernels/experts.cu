// Products of rows with the experts that they have chosen. A pair is a row and one of its experts; its product is that
// of narrow products with one row (kernels/product_narrow.h), so it does not depend on which other pairs there are.
// Grid: blocks of an expert's rows, pairs.
//
// Which expert a pair has is written by the kernel before: unlike other products, none of the weights is asked for
// earlier.

#include "engine/cuda_backend/kernels/product_narrow.h"

namespace canopy::cuda {
namespace {

/// A single row of the activations.
struct RowOfPair {
  uint32_t row;
  CANOPY_DEVICE void factors(const ProductParams& p, const gpu::Shared<float>& to) const {
    if (gpu::warp() != 0) return;
    const float factor = p.norm_eps > 0 ? norm_factor(p.in, row, p.norm_eps) : 1.0f;
    if (gpu::lane() == 0) to[0] = factor;
  }
  CANOPY_DEVICE uint32_t first() const { return row; }
};

template <class F>
CANOPY_DEVICE void expert_product(const ExpertParams& p) {
  gpu::wait_for_earlier();
  const uint32_t pair = gpu::block_y();
  WeightParams weight = p.product.weights[0];
  weight.tiles += uint64_t{Span<const uint32_t>{p.chosen}[pair]} * p.expert_bytes;
  narrow_product<F>(p.product, weight, gpu::block_x(), RowOfPair{pair / p.row_pairs});
  finish_narrow(p.product, pair);
}

}  // namespace

#define CANOPY_EXPERTS(NAME, F)                                   \
  CANOPY_STREAMING_KERNEL(experts_##NAME, ExpertParams, 256, 2) { \
    expert_product<F>(p);                                         \
  }

CANOPY_WEIGHT_FORMATS(CANOPY_EXPERTS)

/// x += the products by their shares, in order, then the shared expert's by its own; activations = x * norm, and their
/// squares. Grid: blocks of 256 columns, rows. A warp has the columns of one sum of squares.
CANOPY_KERNEL(expert_add, ExpertAddParams, 256) {
  const uint32_t row = gpu::block_y(), cols = p.out.cols, k = gpu::block_x() * gpu::threads() + gpu::thread();
  float value = 0;
  if (k < cols) {
    const Span<const float> products{p.products}, shares{p.shares};
    float sum = 0;
    const uint64_t first_share = uint64_t{row} * (p.used + (p.shared != 0 ? 1 : 0));
    for (uint32_t i = 0; i < p.used; ++i) {
      sum = fmaf(shares[first_share + i], products[(uint64_t{row} * p.used + i) * cols + k], sum);
    }
    if (p.shared != 0)
      sum = fmaf(shares[first_share + p.used], Span<const float>{p.shared}[uint64_t{row} * cols + k], sum);
    float& x = Span<float>{p.x}[uint64_t{row} * cols + k];
    value = x + sum;
    x = value;
    Span<float>{p.out.values}[uint64_t{row} * p.out.stride + k] = value * Span<const float>{p.norm}[k];
    if (p.aux != 0) Span<float>{p.aux}[uint64_t{row} * p.aux_stride + p.aux_offset + k] = value;
  }
  const float squares = sum_of_warp(value * value);
  const uint32_t block = k / kSquareBlock;
  if (gpu::lane() == 0 && block < p.out.blocks)
    Span<float>{p.out.squares}[uint64_t{row} * p.out.blocks + block] = squares;
}

}  // namespace canopy::cuda
