// Products of a weight with the rows of a pass, on tensor cores. A block has a band of 64 rows of the weight, up to 64
// rows of the pass and one chunk of the weight's columns; four warps have 16 rows of the weight each.
//
// The numeric contract: a row's sums are made of the same instructions in the same order at every width. Columns are
// worked on 128 at a time; lane q of a quad has the 32 columns of block q, four of which go into an instruction. Chunks
// are added in ascending order by the block that comes last, as a counter tells, which also does the op's own part.

#include "engine/cuda_backend/kernels/weights.h"

namespace canopy::cuda {
namespace {

constexpr uint32_t kThreads = 128;
/// Halves of a staged row of the pass: each block of 32 is followed by 8 unused, so that the lanes of a warp read from
/// different banks of shared memory.
constexpr uint32_t kBlockHalves = 40, kRowHalves = 4 * kBlockHalves;

/// Shared memory of a block with tiles of COLUMNS rows of the pass. The sums take the place of the staged rows.
template <uint32_t COLUMNS>
struct Layout {
  static constexpr uint32_t kStagedWords = COLUMNS * kRowHalves / 2;
  static constexpr uint32_t kSumsStride = COLUMNS + 1;
  static constexpr uint32_t kSumsWords = kBand * kSumsStride;
  static constexpr uint32_t kFirstWords = kStagedWords > kSumsWords ? kStagedWords : kSumsWords;
};

/// The factors of the norm of the tile's rows, 0 for rows that the pass does not have.
template <uint32_t COLUMNS>
CANOPY_DEVICE void make_factors(const ProductParams& p, uint32_t first, const gpu::Shared<float>& factors) {
  for (uint32_t n = gpu::warp(); n < COLUMNS; n += kThreads / 32) {
    const uint32_t row = first + n;
    float factor = row < p.width ? 1.0f : 0.0f;
    if (p.norm_eps > 0 && row < p.width) factor = norm_factor(p.in, row, p.norm_eps);
    if (gpu::lane() == 0) factors[n] = factor;
  }
}

template <uint32_t COLUMNS>
CANOPY_DEVICE void stage(const ProductParams& p, uint32_t first, uint32_t k0, const gpu::Shared<float>& factors,
                         const gpu::Shared<uint32_t>& staged) {
  const Span<const float> in{p.in.values};
  for (uint32_t i = gpu::thread(); i < COLUMNS * kStep / 2; i += kThreads) {
    const uint32_t n = i / (kStep / 2), k = i % (kStep / 2) * 2;
    uint32_t pair = 0;
    if (first + n < p.width) {
      const uint64_t at = uint64_t{first + n} * p.in.stride + k0 + k;
      pair = gpu::pack_halves(in[at] * factors[n], in[at + 1] * factors[n]);
    }
    staged[(n * kRowHalves + k / 32 * kBlockHalves + k % 32) / 2] = pair;
  }
}

/// 32 columns of two rows of the weight, 8 apart.
template <class Format>
struct Weights {
  Block<Format> rows[2];

  CANOPY_DEVICE void load(const WeightParams& weight, uint32_t row, uint32_t block) {
    rows[0].load(weight, row, block);
    rows[1].load(weight, row + 8, block);
  }
  CANOPY_DEVICE uint32_t pair(uint32_t half, uint32_t i) const {
    return gpu::pack_halves(rows[half].element(i), rows[half].element(i + 1));
  }
};

template <class Format, uint32_t TILES>
CANOPY_DEVICE void add_step(const Weights<Format>& weights, const gpu::Shared<uint32_t>& staged,
                            float (&sums)[TILES][4]) {
  const uint32_t g = gpu::lane() / 4, q = gpu::lane() % 4;
  CANOPY_UNROLL
  for (uint32_t t = 0; t < 8; ++t) {
    const uint32_t a[4] = {weights.pair(0, 4 * t), weights.pair(1, 4 * t), weights.pair(0, 4 * t + 2),
                           weights.pair(1, 4 * t + 2)};
    CANOPY_UNROLL
    for (uint32_t tile = 0; tile < TILES; ++tile) {
      const uint32_t at = ((tile * 8 + g) * kRowHalves + q * kBlockHalves + 4 * t) / 2;
      const uint32_t b[2] = {staged[at], staged[at + 1]};
      gpu::multiply(sums[tile], a, b);
    }
  }
}

/// Leaves this chunk's sums and takes those of all chunks where this block is the last of its tile.
template <uint32_t COLUMNS>
CANOPY_DEVICE bool gather_chunks(const ProductParams& p, const gpu::Shared<float>& sums,
                                 const gpu::Shared<uint32_t>& flag) {
  constexpr uint32_t stride = Layout<COLUMNS>::kSumsStride, elements = kBand * COLUMNS;
  const uint32_t chunks = (p.weight.stored_cols + p.chunk - 1) / p.chunk;
  if (chunks == 1) return true;
  const uint32_t tile = gpu::block_y() * gpu::blocks_x() + gpu::block_x();
  const Span<float> partials{p.partials};
  const uint64_t first = uint64_t{tile} * chunks * elements;
  for (uint32_t i = gpu::thread(); i < elements; i += kThreads) {
    partials[first + uint64_t{gpu::block_z()} * elements + i] = sums[i / COLUMNS * stride + i % COLUMNS];
  }
  gpu::fence();
  gpu::sync();
  uint32_t* const counter = gpu::element<uint32_t>(p.counters, tile);
  if (gpu::thread() == 0) flag[0] = gpu::atomic_add(counter, 1);
  gpu::sync();
  if (flag[0] != chunks - 1) return false;
  gpu::fence();
  for (uint32_t i = gpu::thread(); i < elements; i += kThreads) {
    float sum = partials[first + i];
    for (uint32_t c = 1; c < chunks; ++c) sum = sum + partials[first + uint64_t{c} * elements + i];
    sums[i / COLUMNS * stride + i % COLUMNS] = sum;
  }
  if (gpu::thread() == 0) *counter = 0;
  gpu::sync();
  return true;
}

template <uint32_t COLUMNS>
CANOPY_DEVICE void finish_store(const ProductParams& p, uint32_t first, const gpu::Shared<float>& sums) {
  const Span<float> out{p.out};
  for (uint32_t i = gpu::thread(); i < kBand * COLUMNS; i += kThreads) {
    const uint32_t n = i / kBand, r = gpu::block_x() * kBand + i % kBand;
    if (first + n >= p.width || r >= p.weight.rows) continue;
    out[uint64_t{first + n} * p.out_stride + p.out_offset + r] = sums[i % kBand * Layout<COLUMNS>::kSumsStride + n];
  }
}

template <uint32_t COLUMNS>
CANOPY_DEVICE void finish_add(const ProductParams& p, uint32_t first, const gpu::Shared<float>& sums) {
  constexpr uint32_t stride = Layout<COLUMNS>::kSumsStride;
  const Span<float> x{p.out}, out{p.out_activations.values}, squares{p.out_activations.squares}, aux{p.aux};
  const Span<const float> norm{p.norm};
  for (uint32_t i = gpu::thread(); i < kBand * COLUMNS; i += kThreads) {
    const uint32_t n = i / kBand, r = gpu::block_x() * kBand + i % kBand;
    float value = 0;
    if (first + n < p.width && r < p.weight.rows) {
      const uint64_t at = uint64_t{first + n} * p.weight.rows + r;
      value = x[at] + sums[i % kBand * stride + n];
      x[at] = value;
      out[uint64_t{first + n} * p.out_activations.stride + r] = value * norm[r];
      if (p.aux != 0) aux[uint64_t{first + n} * p.aux_stride + p.aux_offset + r] = value;
    }
    sums[i % kBand * stride + n] = value;
  }
  gpu::sync();
  for (uint32_t n = gpu::thread(); n < COLUMNS && first + n < p.width; n += kThreads) {
    float sum = 0;
    for (uint32_t r = 0; r < kBand; ++r) sum = fmaf(sums[r * stride + n], sums[r * stride + n], sum);
    squares[uint64_t{first + n} * p.out_activations.blocks + gpu::block_x()] = sum;
  }
}

template <uint32_t COLUMNS>
CANOPY_DEVICE void finish_swiglu(const ProductParams& p, uint32_t first, const gpu::Shared<float>& sums) {
  constexpr uint32_t stride = Layout<COLUMNS>::kSumsStride, pairs = kBand / 2;
  const Span<float> out{p.out_activations.values};
  for (uint32_t i = gpu::thread(); i < pairs * COLUMNS; i += kThreads) {
    const uint32_t n = i / pairs, pair = gpu::block_x() * pairs + i % pairs;
    if (first + n >= p.width || 2 * pair >= p.weight.rows) continue;
    const float gate = sums[(i % pairs * 2) * stride + n], up = sums[(i % pairs * 2 + 1) * stride + n];
    out[uint64_t{first + n} * p.out_activations.stride + pair] = gate / (1.0f + expf(-gate)) * up;
  }
}

template <class Format, uint32_t TILES>
CANOPY_DEVICE void product(const ProductParams& p) {
  constexpr uint32_t columns = TILES * 8, stride = Layout<columns>::kSumsStride;
  const gpu::Shared<uint32_t> staged(0, Layout<columns>::kStagedWords);
  const gpu::Shared<float> sums_shared(0, Layout<columns>::kSumsWords);
  const gpu::Shared<float> factors(Layout<columns>::kFirstWords * 4, columns);
  const gpu::Shared<uint32_t> flag(Layout<columns>::kFirstWords * 4 + columns * 4, 1);
  const uint32_t first = gpu::block_y() * columns, g = gpu::lane() / 4, q = gpu::lane() % 4;
  const uint32_t row = gpu::block_x() * kBand + gpu::warp() * 16 + g;
  const uint32_t begin = gpu::block_z() * p.chunk;
  const uint32_t end = begin + p.chunk < p.weight.stored_cols ? begin + p.chunk : p.weight.stored_cols;
  make_factors<columns>(p, first, factors);
  float sums[TILES][4] = {};
  Weights<Format> weights;
  for (uint32_t k0 = begin; k0 < end; k0 += kStep) {
    weights.load(p.weight, row, k0 / 32 + q);
    gpu::sync();  // the step before has been read, the factors are there
    stage<columns>(p, first, k0, factors, staged);
    gpu::sync();
    add_step<Format, TILES>(weights, staged, sums);
  }
  gpu::sync();
  CANOPY_UNROLL
  for (uint32_t tile = 0; tile < TILES; ++tile) {
    for (uint32_t i = 0; i < 4; ++i) {
      sums_shared[(gpu::warp() * 16 + g + i / 2 * 8) * stride + tile * 8 + 2 * q + i % 2] = sums[tile][i];
    }
  }
  gpu::sync();
  if (!gather_chunks<columns>(p, sums_shared, flag)) return;
  if (p.kind == ProductKind::store) finish_store<columns>(p, first, sums_shared);
  if (p.kind == ProductKind::add) finish_add<columns>(p, first, sums_shared);
  if (p.kind == ProductKind::swiglu) finish_swiglu<columns>(p, first, sums_shared);
}

}  // namespace

#define CANOPY_PRODUCT(NAME, Format)                       \
  CANOPY_KERNEL(product_##NAME##_8, ProductParams, 128) {  \
    product<Format, 1>(p);                                 \
  }                                                        \
  CANOPY_KERNEL(product_##NAME##_16, ProductParams, 128) { \
    product<Format, 2>(p);                                 \
  }                                                        \
  CANOPY_KERNEL(product_##NAME##_32, ProductParams, 128) { \
    product<Format, 4>(p);                                 \
  }                                                        \
  CANOPY_KERNEL(product_##NAME##_64, ProductParams, 128) { \
    product<Format, 8>(p);                                 \
  }

CANOPY_WEIGHT_FORMATS(CANOPY_PRODUCT)

}  // namespace canopy::cuda
