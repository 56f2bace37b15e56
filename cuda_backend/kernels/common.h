#pragma once
// What several kernels share.

#include "cuda_backend/kernels/params.h"
#include "engine/compute/rows.h"
#include "gpu.h"

namespace canopy::cuda {

/// An array in device memory.
template <class T>
struct Span {
  uint64_t address;
  CANOPY_DEVICE T& operator[](uint64_t index) const { return *gpu::element<T>(address, index); }
};

struct alignas(16) Unit {
  uint32_t words[4];
};
struct alignas(8) WordPair {
  uint32_t first, second;
};

/// Whether this block is the last of `count` that come to a counter, which is then 0 again. What the other blocks wrote
/// before they came is visible to it. To be called by all threads; `flag` is a shared word that nothing else uses.
CANOPY_DEVICE bool comes_last(uint64_t counters, uint32_t counter, uint32_t count, const gpu::Shared<uint32_t>& flag) {
  gpu::fence();
  gpu::sync();
  if (gpu::thread() == 0) {
    uint32_t* const to = gpu::element<uint32_t>(counters, counter);
    flag[0] = gpu::atomic_add(to, 1);
    if (flag[0] == count - 1) *to = 0;
  }
  gpu::sync();
  const bool last = flag[0] == count - 1;
  if (last) gpu::fence();
  return last;
}

/// Waits for the first of `stages` groups of copies, for a warp.
CANOPY_DEVICE void wait_for_stage(uint32_t stages) {
  if (stages >= 4) {
    gpu::wait_for_copies<3>();
  } else if (stages == 3) {
    gpu::wait_for_copies<2>();
  } else if (stages == 2) {
    gpu::wait_for_copies<1>();
  } else {
    gpu::wait_for_copies<0>();
  }
  gpu::sync_warp();
}

/// The largest of the numbers of all threads. `room`: one number for each warp, free again afterwards.
CANOPY_DEVICE uint64_t largest_of_block(uint64_t own, const gpu::Shared<uint64_t>& room) {
  CANOPY_UNROLL
  for (uint32_t mask = 16; mask > 0; mask /= 2) {
    const uint64_t other = gpu::shuffle_xor(own, mask);
    own = other > own ? other : own;
  }
  if (gpu::lane() == 0) room[gpu::warp()] = own;
  gpu::sync();
  for (uint32_t w = 0; w < gpu::threads() / 32; ++w) own = room[w] > own ? room[w] : own;
  gpu::sync();
  return own;
}

/// The sum over the lanes of a warp, in an order that is the same for all rows and widths; every lane gets it.
CANOPY_DEVICE float sum_of_warp(float own) {
  CANOPY_UNROLL
  for (uint32_t mask = 1; mask < 32; mask *= 2) own = own + gpu::shuffle_xor(own, mask);
  return own;
}

/// Writes the whole sum of squares of a row as its first block and zeros as the others, and returns it. For one warp.
CANOPY_DEVICE float store_squares(const ActivationsParams& out, uint32_t row, float lane_sum) {
  const float all = sum_of_warp(lane_sum);
  const Span<float> squares{out.squares};
  for (uint32_t b = gpu::lane(); b < out.blocks; b += 32) squares[uint64_t{row} * out.blocks + b] = b == 0 ? all : 0.0f;
  return all;
}

/// The half that stands for a value; the largest where there is none so large.
CANOPY_DEVICE uint16_t half_of(float value, float unit) {
  constexpr float most = 65504;
  const float x = value * inverse_of_unit(unit);
  return static_cast<uint16_t>(gpu::pack_halves(x > most ? most : x < -most ? -most : x, 0.0f));
}

/// Writes the half of an element of a row whose halves have the unit `unit`; the first one's writer leaves it there.
CANOPY_DEVICE void store_half(const ActivationsParams& out, uint64_t row, uint32_t k, float value, float unit) {
  Span<uint16_t>{out.halves}[row * out.stride + half_place(k)] = half_of(value, unit);
  if (k == 0) Span<float>{out.units}[row] = unit;
}
CANOPY_DEVICE void store_activation(const ActivationsParams& out, uint64_t row, uint32_t k, float value, float unit) {
  Span<float>{out.values}[row * out.stride + k] = value;
  store_half(out, row, k, value, unit);
}

/// The unit of a row of which nothing is known but what it was when a norm read it last; as if its elements had been
/// around 1 where none has.
CANOPY_DEVICE float next_unit(const ActivationsParams& out, uint64_t row) {
  const float unit = Span<const float>{out.next_units}[row];
  return unit > 0 ? unit : unit_of(1);
}

/// Makes the halves of a row of which the values are there, and the sum of their squares known before the weight of a
/// norm. For `count` threads, of which this is `first`.
CANOPY_DEVICE void store_halves(const ActivationsParams& out, uint64_t row, float squares, uint32_t first = gpu::lane(),
                                uint32_t count = 32) {
  const float unit = unit_of_squares(squares / static_cast<float>(out.cols));
  for (uint32_t k = first; k < out.cols; k += count) {
    store_half(out, row, k, Span<const float>{out.values}[row * out.stride + k], unit);
  }
}

/// Zeros behind the columns of a row of activations. For one warp.
CANOPY_DEVICE void pad_row(const ActivationsParams& out, uint64_t row) {
  for (uint32_t k = out.cols + gpu::lane(); k < out.stride; k += 32) {
    Span<float>{out.values}[row * out.stride + k] = 0.0f;
    Span<uint16_t>{out.halves}[row * out.stride + half_place(k)] = 0;
  }
}

/// 1 / sqrt(mean of squares + eps) of a row, for one warp: blocks dealt to lanes.
CANOPY_DEVICE float norm_factor(const ActivationsParams& in, uint32_t row, float eps) {
  const Span<const float> squares{in.squares};
  float sum = 0;
  for (uint32_t b = gpu::lane(); b < in.blocks; b += 32) sum = sum + squares[uint64_t{row} * in.blocks + b];
  const float mean = sum_of_warp(sum) / static_cast<float>(in.cols) + eps;
  return 1.0f / sqrtf(mean);
}

}  // namespace canopy::cuda
