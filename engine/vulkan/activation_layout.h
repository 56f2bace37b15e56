#pragma once
// The layout of activations in memory (shaders/activations.glsl is the same in GLSL), and how a pass's rows are cut
// into the column tiles of the matrix products.

#include <algorithm>
#include <cstdint>

namespace canopy::vk {

/// Sums that make up the sum of squares of a row of `cols` elements, one for each 64 (SQUARE_BLOCK of
/// shaders/product.glsl).
inline uint32_t square_blocks(uint32_t cols) {
  return (cols + 63) / 64;
}

/// Width of the tiles that `width` rows are cut into: as equal as can be, at most max_tile.
inline uint32_t tile_width(uint32_t width, uint32_t max_tile) {
  const uint32_t tiles = (width + max_tile - 1) / max_tile;
  return (width + tiles - 1) / tiles;
}

/// All tiles are equally wide, so that one kernel, and where it can one dispatch, computes them; the last may have
/// columns that nobody asked for.
struct ActivationLayout {
  uint32_t width = 0;
  uint32_t cols = 0;
  uint32_t tile = 1;

  uint32_t tiles() const { return (width + tile - 1) / tile; }
  /// Floats from one tile to the next; a multiple of 64.
  uint64_t tile_stride() const { return (uint64_t{tile} * ((cols + 3) / 4 * 4) + 63) / 64 * 64; }
  uint64_t index(uint32_t row, uint32_t k) const {
    const uint32_t t = row / tile;
    return t * tile_stride() + uint64_t{k / 4} * 4 * tile + (row - t * tile) * 4 + k % 4;
  }
  uint64_t floats() const { return tiles() * tile_stride(); }
};

/// Bytes that hold activations of any width up to max_width.
inline uint64_t activation_buffer_bytes(uint32_t max_width, uint32_t cols, uint32_t max_tile) {
  const uint64_t tiles = (max_width + max_tile - 1) / max_tile;
  return ((max_width + tiles) * (cols + 3) + tiles * 64) * 4;
}

}  // namespace canopy::vk
