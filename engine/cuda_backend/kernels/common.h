#pragma once
// What several kernels share.

#include "engine/compute/rows.h"
#include "engine/cuda_backend/kernels/params.h"
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

/// Writes the whole sum of squares of a row as its first block and zeros as the others. For one warp.
CANOPY_DEVICE void store_squares(const ActivationsParams& out, uint32_t row, float lane_sum) {
  const float all = gpu::ordered_sum(lane_sum);
  const Span<float> squares{out.squares};
  for (uint32_t b = gpu::lane(); b < out.blocks; b += 32) squares[uint64_t{row} * out.blocks + b] = b == 0 ? all : 0.0f;
}

/// Zeros behind the columns of a row of activations. For one warp.
CANOPY_DEVICE void pad_row(const ActivationsParams& out, uint32_t row) {
  const Span<float> values{out.values};
  for (uint32_t k = out.cols + gpu::lane(); k < out.stride; k += 32) values[uint64_t{row} * out.stride + k] = 0.0f;
}

/// 1 / sqrt(mean of squares + eps) of a row, for one warp: blocks dealt to lanes, lanes added in order.
CANOPY_DEVICE float norm_factor(const ActivationsParams& in, uint32_t row, float eps) {
  const Span<const float> squares{in.squares};
  float sum = 0;
  for (uint32_t b = gpu::lane(); b < in.blocks; b += 32) sum = sum + squares[uint64_t{row} * in.blocks + b];
  const float mean = gpu::ordered_sum(sum) / static_cast<float>(in.cols) + eps;
  return 1.0f / sqrtf(mean);
}

}  // namespace canopy::cuda
