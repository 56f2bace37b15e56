#pragma once
// The layout of activations in memory; shaders/activations.glsl is the same in GLSL.

#include <cstdint>

namespace canopy::vk {

/// Sums that make up the sum of squares of a row of `cols` elements, one for each 64 (SQUARE_BLOCK of
/// shaders/product.glsl).
inline uint32_t square_blocks(uint32_t cols) {
  return (cols + 63) / 64;
}

/// Floats from one row to the next.
inline uint32_t activation_stride(uint32_t cols) {
  return (cols + 63) / 64 * 64;
}

}  // namespace canopy::vk
