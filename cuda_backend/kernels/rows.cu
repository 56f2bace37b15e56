// Ops that copy, choose, mix or shift rows: select, copy_rows, norm_rows, norm_add, add_bias, conv_rows, pick,
// cap_logits, and the moves of K/V between slots.

#include "cuda_backend/kernels/common.h"

namespace canopy::cuda {

// One warp per row of the output.
CANOPY_KERNEL(select_rows, SelectParams, 32) {
  const uint32_t i = gpu::block_x(), from = Span<const uint32_t>{p.index}[p.first + i];
  for (uint32_t k = gpu::lane(); k < p.in.stride; k += 32) {
    Span<float>{p.out.values}[uint64_t{i} * p.out.stride + k] =
        Span<const float>{p.in.values}[uint64_t{from} * p.in.stride + k];
    Span<uint16_t>{p.out.halves}[uint64_t{i} * p.out.stride + k] =
        Span<const uint16_t>{p.in.halves}[uint64_t{from} * p.in.stride + k];
  }
  if (gpu::lane() == 0) Span<float>{p.out.units}[i] = Span<const float>{p.in.units}[from];
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
  store_halves(p.out, w, store_squares(p.out, w, sum));
  pad_row(p.out, w);
}

/// The sum of squares of what a row's thread has, over its block: those of a warp in the order of sum_of_warp, then the
/// warps in order. `room`: a number for each warp.
CANOPY_DEVICE float sum_of_block(float own, const gpu::Shared<float>& room) {
  const float of_warp = sum_of_warp(own);
  gpu::sync();  // the last sum has been read
  if (gpu::lane() == 0) room[gpu::warp()] = of_warp;
  gpu::sync();
  float all = 0;
  for (uint32_t w = 0; w < gpu::threads() / 32; ++w) all = all + room[w];
  return all;
}

// A block per row.
CANOPY_KERNEL(norm_add, NormAddParams, kNormAddThreads) {
  const uint64_t w = gpu::block_x(), row = w * p.out.cols;
  const gpu::Shared<float> room(0, kNormAddThreads / 32);
  const Span<const float> in{p.in}, weight{p.weight}, norm{p.norm};
  const Span<float> x{p.x}, out{p.out.values}, aux{p.aux};
  float sum = 0;
  for (uint32_t k = gpu::thread(); k < p.out.cols; k += gpu::threads()) sum = fmaf(in[row + k], in[row + k], sum);
  const float factor = 1.0f / sqrtf(sum_of_block(sum, room) / static_cast<float>(p.out.cols) + p.eps);
  sum = 0;
  for (uint32_t k = gpu::thread(); k < p.out.cols; k += gpu::threads()) {
    const float value = fmaf(in[row + k] * factor, weight[k], x[row + k]) * p.x_scale;
    x[row + k] = value;
    out[w * p.out.stride + k] = value * norm[k];
    if (p.aux != 0) aux[w * p.aux_stride + p.aux_offset + k] = p.aux_scale * value;
    sum = fmaf(value, value, sum);
  }
  const float all = sum_of_block(sum, room);
  const Span<float> squares{p.out.squares};
  store_halves(p.out, w, all, gpu::thread(), gpu::threads());
  for (uint32_t b = gpu::thread(); b < p.out.blocks; b += gpu::threads()) {
    squares[w * p.out.blocks + b] = b == 0 ? all : 0.0f;
  }
  if (gpu::warp() == 0) pad_row(p.out, gpu::block_x());
}

CANOPY_KERNEL(cap_logits, CapLogitsParams, 256) {
  const uint32_t t = gpu::block_x() * gpu::threads() + gpu::thread();
  if (t >= p.vocab) return;
  float& logit = Span<float>{p.logits}[uint64_t{gpu::block_y()} * p.vocab + t];
  logit = p.cap * tanhf(logit / p.cap);
}

CANOPY_KERNEL(add_bias, AddBiasParams, 128) {
  for (uint32_t c = gpu::thread(); c < p.cols; c += gpu::threads()) {
    float& x = Span<float>{p.x}[uint64_t{gpu::block_x()} * p.cols + c];
    x = x + Span<const float>{p.bias}[c];
  }
}

// A block for each row.
CANOPY_KERNEL(conv_rows, ConvRowsParams, 128) {
  const uint32_t w = gpu::block_x(), groups = p.cols / p.group;
  const Span<const float> in{p.in}, base{p.base}, kernel{p.kernel};
  for (uint32_t c = gpu::thread(); c < p.cols; c += gpu::threads()) {
    float& x = Span<float>{p.x}[uint64_t{w} * p.cols + c];
    float sum = x;
    for (uint32_t j = 0; j < p.taps && j <= w; ++j) {
      const uint32_t tap = p.side * p.taps + j;
      const float factor =
          base[uint64_t{tap} * p.cols + c] + kernel[(uint64_t{w} * 2 * p.taps + tap) * groups + c / p.group];
      sum = fmaf(factor, in[uint64_t{w - j} * p.cols + c], sum);
    }
    x = sum;
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
