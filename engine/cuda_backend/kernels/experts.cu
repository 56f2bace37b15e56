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

/// The sums of a block's rows in shared memory, those of its chunks of columns behind each other.
struct ChunkSums {
  uint32_t rows, first, end, chunks;  // first: of the block's rows in the expert, which has `end`
  gpu::Shared<float> sums;

  CANOPY_DEVICE explicit ChunkSums(const ProductParams& p)
      : rows(p.row_warps * kTileRows),
        first(gpu::block_x() * rows),
        end(p.weights[0].rows),
        chunks(gpu::threads() / 32 / p.row_warps),
        sums(NarrowRoom::kHead, chunks * rows) {}
  CANOPY_DEVICE float whole(uint32_t r) const {
    float sum = sums[r];
    for (uint32_t c = 1; c < chunks; ++c) sum = sum + sums[c * rows + r];
    return sum;
  }
};

/// The first chunk's sums take in the biases of their rows.
CANOPY_CALLED void add_bias(const ExpertParams& p, uint32_t expert) {
  const ChunkSums all(p.product);
  for (uint32_t r = gpu::thread(); r < all.rows && all.first + r < all.end; r += gpu::threads()) {
    all.sums[r] = all.sums[r] + Span<const float>{p.bias}[uint64_t{expert} * all.end + all.first + r];
  }
  gpu::sync();
}

/// Gates and what they gate within limits. What is no number stays so.
CANOPY_CALLED void finish_clamped(const ExpertParams& p, uint32_t pair) {
  const ChunkSums all(p.product);
  const Span<float> out{p.product.out_activations.values};
  for (uint32_t f = gpu::thread(); f < all.rows / 2 && all.first + 2 * f < all.end; f += gpu::threads()) {
    float gate = all.whole(2 * f), up = all.whole(2 * f + 1);
    gate = gate > p.limit ? p.limit : gate;
    up = up > p.limit ? p.limit : up < -p.limit ? -p.limit : up;
    out[uint64_t{pair} * p.product.out_activations.stride + all.first / 2 + f] =
        (up + 1.0f) * (gate / (1.0f + expf(-kGateSlope * gate)));
  }
}

template <class F>
CANOPY_DEVICE void expert_product(const ExpertParams& p) {
  gpu::wait_for_earlier();
  const uint32_t pair = gpu::block_y();
  const uint32_t expert = Span<const uint32_t>{p.chosen}[pair];
  WeightParams weight = p.product.weights[0];
  weight.tiles += uint64_t{expert} * p.expert_bytes;
  narrow_product<F>(p.product, weight, gpu::block_x(), RowOfPair{pair / p.row_pairs});
  if (p.bias != 0) add_bias(p, expert);
  if (p.limit > 0) {
    finish_clamped(p, pair);
  } else {
    finish_narrow(p.product, pair);
  }
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
