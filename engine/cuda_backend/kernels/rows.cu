// Ops that copy, choose or shift rows: select, copy_rows, norm_rows, add_bias, pick, and the moves of K/V between
// slots.

#include "engine/cuda_backend/kernels/common.h"

namespace canopy::cuda {

// One warp per row of the output.
CANOPY_KERNEL(select_rows, SelectParams, 32) {
  const uint32_t i = gpu::block_x(), from = Span<const uint32_t>{p.index}[p.first + i];
  for (uint32_t k = gpu::lane(); k < p.in.stride; k += 32) {
    Span<float>{p.out.values}[uint64_t{i} * p.out.stride + k] =
        Span<const float>{p.in.values}[uint64_t{from} * p.in.stride + k];
  }
  for (uint32_t b = gpu::lane(); b < p.in.blocks; b += 32) {
    Span<float>{p.out.squares}[uint64_t{i} * p.out.blocks + b] =
        Span<const float>{p.in.squares}[uint64_t{from} * p.in.blocks + b];
  }
}

CANOPY_KERNEL(copy_rows, CopyRowsParams, 128) {
  const Span<const uint32_t> moves{p.moves};
  const uint64_t from = moves[gpu::block_x() * 2], to = moves[gpu::block_x() * 2 + 1];
  for (uint32_t k = gpu::thread(); k < p.cols; k += gpu::threads()) {
    Span<float>{p.out}[to * p.cols + k] = Span<const float>{p.in}[from * p.cols + k];
  }
}

CANOPY_KERNEL(norm_rows, NormRowsParams, 32) {
  const uint32_t w = gpu::block_x();
  float sum = 0;
  for (uint32_t k = gpu::lane(); k < p.out.cols; k += 32) {
    const float x = Span<const float>{p.in}[uint64_t{w} * p.out.cols + k];
    Span<float>{p.out.values}[uint64_t{w} * p.out.stride + k] = p.norm != 0 ? x * Span<const float>{p.norm}[k] : x;
    sum = fmaf(x, x, sum);
  }
  store_squares(p.out, w, sum);
  pad_row(p.out, w);
}

CANOPY_KERNEL(add_bias, AddBiasParams, 128) {
  for (uint32_t c = gpu::thread(); c < p.cols; c += gpu::threads()) {
    float& x = Span<float>{p.x}[uint64_t{gpu::block_x()} * p.cols + c];
    x = x + Span<const float>{p.bias}[c];
  }
}

CANOPY_KERNEL(pick_logits, PickParams, 64) {
  const uint32_t i = gpu::block_x() * gpu::threads() + gpu::thread();
  if (i >= p.count) return;
  const Span<const uint32_t> pairs{p.pairs};
  const uint32_t row = pairs[i * 2] - p.first_row;  // of rows before, beyond all
  if (row >= p.rows) return;
  Span<float>{p.out}[i] = Span<const float>{p.logits}[uint64_t{row} * p.vocab + pairs[i * 2 + 1]];
}

// All slots are read before one is written: two kernels. Grid: moves, layers * 2.
CANOPY_KERNEL(kv_gather, KvMoveParams, 64) {
  const uint64_t layer = Span<const uint64_t>{p.layers}[gpu::block_y()];
  const uint64_t from = Span<const uint32_t>{p.moves}[gpu::block_x() * 2];
  const uint64_t to = uint64_t{gpu::block_y()} * p.count + gpu::block_x();
  for (uint32_t i = gpu::thread(); i < p.slot_words; i += gpu::threads()) {
    Span<uint32_t>{p.scratch}[to * p.slot_words + i] = Span<const uint32_t>{layer}[from * p.slot_words + i];
  }
}

CANOPY_KERNEL(kv_scatter, KvMoveParams, 64) {
  const uint64_t layer = Span<const uint64_t>{p.layers}[gpu::block_y()];
  const uint64_t to = Span<const uint32_t>{p.moves}[gpu::block_x() * 2 + 1];
  const uint64_t from = uint64_t{gpu::block_y()} * p.count + gpu::block_x();
  for (uint32_t i = gpu::thread(); i < p.slot_words; i += gpu::threads()) {
    Span<uint32_t>{layer}[to * p.slot_words + i] = Span<const uint32_t>{p.scratch}[from * p.slot_words + i];
  }
}

}  // namespace canopy::cuda
