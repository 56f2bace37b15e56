// Products of rows with the experts that they have chosen. A pair is a row and one of its experts. A block computes
// some pairs of one expert: each by itself, or those of a tile (kernels/route.cu), whose weights are then read and
// decoded once. Its sums are those of narrow and wide products, in the same order, so they do not depend on which other
// pairs there are. Grid: blocks of an expert's rows, tiles.
//
// Which expert a pair has is written by kernels before: unlike other products, none of the weights is asked for
// earlier.

#include "cuda_backend/kernels/product.h"

namespace canopy::cuda {
namespace {

/// The pairs of a block: where they stand among all, and which rows of activations they have; both are in shared
/// memory.
struct PairTile {
  uint32_t expert = 0, count = 0;
  gpu::Shared<uint32_t> rows, pairs;

  /// None where `count` is 0.
  CANOPY_DEVICE explicit PairTile(const ExpertParams& p)
      : rows(p.tile_at, p.product.width), pairs(p.tile_at + p.product.width * 4, p.product.width) {
    uint32_t first = gpu::block_y();
    if (p.tiles == 0) {
      expert = Span<const uint32_t>{p.chosen}[first];
      count = 1;
    } else {
      const ExpertTile tile = Span<const ExpertTile>{p.tiles}[first];
      expert = tile.expert;
      count = tile.count;
      first = tile.first;
    }
    if (gpu::thread() < count) {
      const uint32_t pair = p.tiles == 0 ? first : Span<const uint32_t>{p.order}[first + gpu::thread()];
      pairs[gpu::thread()] = pair;
      rows[gpu::thread()] = pair / p.row_pairs;
    }
    gpu::sync();
  }

  /// The row of activations of a column of the tile.
  CANOPY_DEVICE uint32_t row(uint32_t n) const { return rows[n]; }
  /// Behind its end that of the last.
  CANOPY_DEVICE uint32_t row(const ProductParams&, uint32_t n) const { return rows[n < count ? n : count - 1]; }
  CANOPY_DEVICE void factors(const ProductParams& p, const gpu::Shared<float>& to) const {
    for (uint32_t n = gpu::warp(); n < p.width; n += gpu::threads() / 32) {
      make_factor(p, row(p, n), true, to[n]);
    }
  }
};

/// The sums of a block's rows and pairs in shared memory, those of its chunks of columns behind each other.
struct PairSums {
  const ExpertParams& p;
  PairTile tile;
  uint32_t rows, first, end;  // first: of the block's rows in the expert, which has `end`
  uint32_t chunks, stride;
  gpu::Shared<float> sums, factors;

  CANOPY_DEVICE PairSums(const ExpertParams& params, const PairTile& pairs, uint32_t block_rows, uint32_t at,
                         uint32_t chunk_count, uint32_t row_stride)
      : p(params),
        tile(pairs),
        rows(block_rows),
        first(gpu::block_x() * rows),
        end(p.product.weights[0].rows),
        chunks(chunk_count),
        stride(row_stride),
        sums(at, chunks * rows * stride),
        factors(0, p.product.width) {}

  CANOPY_DEVICE float whole(uint32_t r, uint32_t n) const {
    float sum = sums[r * stride + n];
    for (uint32_t c = 1; c < chunks; ++c) sum = sum + sums[(c * rows + r) * stride + n];
    sum = sum * factors[n];
    return p.bias != 0 ? sum + Span<const float>{p.bias}[uint64_t{tile.expert} * end + first + r] : sum;
  }
};

CANOPY_DEVICE void store_pairs(const PairSums& sums) {
  const Span<float> out{sums.p.product.out};
  for (uint32_t i = gpu::thread(); i < sums.rows * sums.tile.count; i += gpu::threads()) {
    const uint32_t n = i / sums.rows, r = i % sums.rows;
    if (sums.first + r >= sums.end) continue;
    out[uint64_t{sums.tile.pairs[n]} * sums.p.product.out_stride + sums.first + r] = sums.whole(r, n);
  }
}

/// Even rows are gates, odd ones what they gate; within limits where there are any. What is no number stays so.
CANOPY_DEVICE float gated(float gate, float up, float limit, bool is_gelu) {
  if (!(limit > 0)) {
    const float steep = is_gelu ? 1.59576912f * (gate + 0.044715f * gate * gate * gate) : gate;
    return gate / (1.0f + expf(-steep)) * up;
  }
  gate = gate > limit ? limit : gate;
  up = up > limit ? limit : up < -limit ? -limit : up;
  return (up + 1.0f) * (gate / (1.0f + expf(-kGateSlope * gate)));
}

CANOPY_DEVICE void gate_pairs(const PairSums& sums) {
  const uint32_t halves = sums.rows / 2;
  for (uint32_t i = gpu::thread(); i < halves * sums.tile.count; i += gpu::threads()) {
    const uint32_t n = i / halves, f = i % halves;
    if (sums.first + 2 * f >= sums.end) continue;
    store_activation(sums.p.product.out_activations, sums.tile.pairs[n], sums.first / 2 + f,
                     gated(sums.whole(2 * f, n), sums.whole(2 * f + 1, n), sums.p.limit, sums.p.product.gelu != 0), 1);
  }
}

/// `sums` by value: an object that a called function refers to lies in local memory.
CANOPY_CALLED void finish_pairs(PairSums sums) {
  if (sums.p.product.kind == ProductKind::swiglu) {
    gate_pairs(sums);
  } else {
    store_pairs(sums);
  }
}

/// The first expert's weight, moved to another's.
CANOPY_DEVICE WeightParams weight_of(const ExpertParams& p, uint32_t expert) {
  WeightParams weight = p.product.weights[0];
  weight.tiles += uint64_t{expert} * p.expert_bytes;
  return weight;
}

/// Up to eight pairs: warps have their own rows of the weight and chunks of its columns.
template <class F>
CANOPY_DEVICE void narrow_pairs(const ExpertParams& p) {
  gpu::wait_for_earlier();
  const PairTile tile(p);
  if (tile.count == 0) return;
  const WeightParams weight = weight_of(p, tile.expert);
  narrow_product<F>(p.product, weight, gpu::block_x(), tile);
  const uint32_t row_warps = p.product.row_warps, chunks = gpu::threads() / 32 / row_warps;
  finish_pairs({p, tile, row_warps * kTileRows, NarrowRoom::kHead, chunks, p.product.width | 1u});
}

/// Up to 16 pairs: a block has all columns of its rows, as there are other blocks enough.
template <class F>
struct WidePairs : WideProduct<F, WideShape<2, wide_warps(F::kCodeBytes, 16)>, PairTile> {
  using Product = WideProduct<F, WideShape<2, wide_warps(F::kCodeBytes, 16)>, PairTile>;
  static constexpr uint32_t kStride = Product::kColumns + 1;

  /// Leaves the whole sums in shared memory from byte `at` on. Every lane meets its own sums there alone. Where copies
  /// or sums as halves take registers, there are too few for a chunk's sums, which then lie behind the whole ones.
  CANOPY_DEVICE void sum_all(uint32_t at) {
    constexpr uint32_t behind = Product::kRows * kStride;
    const gpu::Shared<float> totals(at, behind * expert_sums(gpu::kArchitecture));
    float own[Product::kSums];
    const auto of_chunk = [&](uint32_t i) -> float& {
      if constexpr (expert_sums(gpu::kArchitecture) == 1) return own[i];
      return totals[behind + Product::place(i, kStride)];
    };
    const WeightParams& weight = this->weight;
    this->begin(gpu::block_x(), {0, weight.steps()});
    uint32_t step = 0, stage_number = 0;
    for (uint32_t chunk = 0; step < weight.steps(); ++chunk) {
      const ChunkSteps range = chunk_steps(this->p, weight, chunk);
      CANOPY_UNROLL
      for (uint32_t i = 0; i < Product::kSums; ++i) of_chunk(i) = 0;
      for (uint32_t segment = 0; segment < 2; ++segment) {
        const uint32_t end = segment == 0 ? range.middle : range.end;
        CANOPY_UNROLL
        for (uint32_t i = 0; i < Product::kSums; ++i) this->sum(i) = 0;
        for (; step < end; step += Product::kSteps) this->add_stage(step, stage_number);
        CANOPY_UNROLL
        for (uint32_t i = 0; i < Product::kSums; ++i) of_chunk(i) = of_chunk(i) + this->sum(i) * weight.unit;
      }
      CANOPY_UNROLL
      for (uint32_t i = 0; i < Product::kSums; ++i) {
        float& total = totals[Product::place(i, kStride)];
        total = chunk == 0 ? of_chunk(i) : total + of_chunk(i);
      }
    }
    gpu::sync();
  }
};

template <class F>
CANOPY_DEVICE void wide_pairs(const ExpertParams& p) {
  gpu::wait_for_earlier();
  const PairTile tile(p);
  if (tile.count == 0) return;
  const WeightParams weight = weight_of(p, tile.expert);
  WidePairs<F> product{{p.product, weight, tile}};
  product.sum_all(p.totals_at);
  finish_pairs({p, tile, WidePairs<F>::Product::kRows, p.totals_at, 1, WidePairs<F>::kStride});
}

}  // namespace

#define CANOPY_EXPERTS(NAME, F)                                        \
  CANOPY_STREAMING_KERNEL(experts_##NAME, ExpertParams, 256, 2) {      \
    narrow_pairs<F>(p);                                                \
  }                                                                    \
  CANOPY_STREAMING_KERNEL(experts_##NAME##_16, ExpertParams, 128, 4) { \
    wide_pairs<F>(p);                                                  \
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
    store_activation(p.out, row, k, value * Span<const float>{p.norm}[k], next_unit(p.out, row));
    if (p.aux != 0) Span<float>{p.aux}[uint64_t{row} * p.aux_stride + p.aux_offset + k] = value;
  }
  const float squares = sum_of_warp(value * value);
  const uint32_t block = k / kSquareBlock;
  if (gpu::lane() == 0 && block < p.out.blocks)
    Span<float>{p.out.squares}[uint64_t{row} * p.out.blocks + block] = squares;
}

}  // namespace canopy::cuda
