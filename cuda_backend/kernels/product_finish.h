#pragma once
// What a block does with the sums of its tile, when they are complete: the op's own part.

#include "cuda_backend/kernels/product.h"

namespace canopy::cuda {

/// The block's part of a stacked product: of which weight, and which of its blocks.
struct RowTile {
  uint32_t weight, tile, first_out;

  CANOPY_DEVICE RowTile(const ProductParams& p, uint32_t block)
      : weight(block < p.row_tiles[0] ? 0 : 1),
        tile(block - weight * p.row_tiles[0]),
        first_out(weight * p.weights[0].rows) {}
};

/// The sums of `rows` rows of a weight and `count` rows of the pass, in shared memory.
struct TileSums {
  gpu::Shared<float> data;
  uint32_t stride;      // of a row of the weight
  uint32_t rows;        // a multiple of kTileRows, or where squares are summed kSquareBlock
  uint32_t weight_row;  // the first, in its weight
  uint32_t weight_end;  // rows of the weight
  uint32_t first_out;   // what the weight's first row is of all the product's outputs
  uint32_t first;       // row of the pass
  uint32_t count;

  CANOPY_DEVICE float& at(uint32_t r, uint32_t n) const { return data[r * stride + n]; }
  CANOPY_DEVICE bool has(uint32_t r) const { return weight_row + r < weight_end; }
};

CANOPY_DEVICE void finish_store(const ProductParams& p, const TileSums& sums) {
  const Span<float> out{p.out};
  const uint32_t offset = p.out_offset + sums.first_out + sums.weight_row;
  for (uint32_t i = gpu::thread(); i < sums.rows * sums.count; i += gpu::threads()) {
    const uint32_t n = i / sums.rows, r = i % sums.rows;
    if (sums.has(r)) out[uint64_t{sums.first + n} * p.out_stride + offset + r] = sums.at(r, n);
  }
}

/// x += sums; what the next norm's activations and their squares are, and aux.
CANOPY_DEVICE void finish_add(const ProductParams& p, const TileSums& sums) {
  const ActivationsParams& out = p.out_activations;
  const Span<float> x{p.out}, squares{out.squares}, aux{p.aux};
  const Span<const float> norm{p.norm};
  for (uint32_t i = gpu::thread(); i < sums.rows * sums.count; i += gpu::threads()) {
    const uint32_t n = i / sums.rows, r = i % sums.rows, row = sums.weight_row + r;
    const uint64_t w = sums.first + n;
    float value = 0;
    if (sums.has(r)) {
      value = x[w * sums.weight_end + row] + sums.at(r, n);
      x[w * sums.weight_end + row] = value;
      store_activation(out, w, row, value * norm[row], next_unit(out, w));
      if (p.aux != 0) aux[w * p.aux_stride + p.aux_offset + row] = value;
    }
    sums.at(r, n) = value;
  }
  gpu::sync();
  const uint32_t blocks = sums.rows / kSquareBlock;
  for (uint32_t i = gpu::thread(); i < blocks * sums.count; i += gpu::threads()) {
    const uint32_t n = i / blocks, block = i % blocks;
    if (!sums.has(block * kSquareBlock)) continue;
    float sum = 0;
    for (uint32_t r = block * kSquareBlock; r < (block + 1) * kSquareBlock; ++r) {
      sum = fmaf(sums.at(r, n), sums.at(r, n), sum);
    }
    squares[uint64_t{sums.first + n} * out.blocks + sums.weight_row / kSquareBlock + block] = sum;
  }
}

/// The factor that a gate goes through is 1 / (1 + exp(-steep)).
CANOPY_DEVICE float steep(const ProductParams& p, float gate) {
  return p.gelu != 0 ? 1.59576912f * (gate + 0.044715f * gate * gate * gate) : gate;
}

/// Even rows of the weight are gates, odd ones what they gate.
CANOPY_DEVICE void finish_swiglu(const ProductParams& p, const TileSums& sums) {
  const uint32_t pairs = sums.rows / 2;
  for (uint32_t i = gpu::thread(); i < pairs * sums.count; i += gpu::threads()) {
    const uint32_t n = i / pairs, pair = i % pairs;
    if (!sums.has(2 * pair)) continue;
    const float gate = sums.at(2 * pair, n), up = sums.at(2 * pair + 1, n);
    store_activation(p.out_activations, sums.first + n, sums.weight_row / 2 + pair,
                     gate / (1.0f + expf(-steep(p, gate))) * up, 1);
  }
}

/// Leaves the sums as projections; a head is finished by the block that brings its last rows. `done`: two words of
/// shared memory for the heads that this block finishes. `room`: floats of shared memory, kMostHeadDim for each warp at
/// most; the sums may lie in it.
CANOPY_DEVICE void finish_heads(const ProductParams& p, const TileSums& sums, uint32_t pass_tile,
                                const gpu::Shared<uint32_t>& done, uint32_t room) {
  const uint32_t head_dim = p.heads.cache.head_dim, heads = p.heads.heads + 2 * p.heads.cache.kv_heads;
  const uint32_t row = p.out_offset + sums.first_out + sums.weight_row;
  const uint32_t left = sums.weight_end - sums.weight_row, end = row + (sums.rows < left ? sums.rows : left);
  finish_store(p, sums);
  gpu::fence();
  gpu::sync();
  const uint32_t first_head = row / head_dim, last_head = (end - 1) / head_dim;  // at most 65, as heads have 8 rows
  if (gpu::thread() == 0) {
    uint64_t mask = 0;
    for (uint32_t head = first_head; head <= last_head; ++head) {
      const uint32_t from = head * head_dim, to = from + head_dim;
      const uint32_t brought = (to < end ? to : end) - (from > row ? from : row);
      uint32_t* const counter = gpu::element<uint32_t>(p.head_counters, pass_tile * heads + head);
      if (gpu::atomic_add(counter, brought) + brought != head_dim) continue;
      *counter = 0;
      mask |= uint64_t{1} << (head - first_head);
    }
    done[0] = static_cast<uint32_t>(mask);
    done[1] = static_cast<uint32_t>(mask >> 32);
  }
  gpu::sync();
  const uint64_t mask = done[0] | uint64_t{done[1]} << 32;
  if (mask == 0) return;
  gpu::fence();
  const gpu::Shared<float> values(room + gpu::warp() * head_dim * 4, head_dim);
  const uint32_t pairs = (last_head - first_head + 1) * sums.count;
  for (uint32_t i = gpu::warp(); i < pairs; i += gpu::threads() / 32) {
    const uint32_t head = i / sums.count;
    if ((mask >> head & 1u) != 0) finish_head(p.heads, first_head + head, sums.first + i % sums.count, values);
  }
}

CANOPY_DEVICE void finish_tile(const ProductParams& p, const TileSums& sums, uint32_t pass_tile,
                               const gpu::Shared<uint32_t>& done, uint32_t room) {
  switch (p.kind) {
    case ProductKind::store: return finish_store(p, sums);
    case ProductKind::add: return finish_add(p, sums);
    case ProductKind::swiglu: return finish_swiglu(p, sums);
    case ProductKind::heads: return finish_heads(p, sums, pass_tile, done, room);
  }
}

}  // namespace canopy::cuda
