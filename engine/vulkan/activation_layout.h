#pragma once
// The layout of activations in memory (shaders/activations.glsl is the same in GLSL), and how a pass's rows are cut
// into the column tiles of the matrix products.

#include <algorithm>
#include <cstdint>

namespace canopy::vk {

/// The floats of one uniform binding, and the number of bindings that a product reads its activations through.
inline constexpr uint32_t kUniformFloats = 16384;
inline constexpr uint32_t kUniformBytes = kUniformFloats * 4;
inline constexpr uint32_t kUniformBindings = 8;
inline constexpr uint32_t kSegment = 256;  // columns of a weight that are summed before they join the total

/// Sums that make up the sum of squares of a row of `cols` elements, one for each 64 (SQUARE_BLOCK of
/// shaders/product.glsl).
inline uint32_t square_blocks(uint32_t cols) {
  return (cols + 63) / 64;
}

/// Segments of `cols` one binding can hold for a tile of `tile` columns; at least 1 for tile <= 64.
inline uint32_t segments_per_binding(uint32_t tile) {
  return kUniformFloats / (kSegment * tile);
}

/// Width of the tiles that `width` rows are cut into: as equal as can be, at most max_tile, and narrow enough that the
/// activations of a tile fit the uniform bindings. 0 when not even one column fits.
inline uint32_t tile_width(uint32_t width, uint32_t cols, uint32_t max_tile) {
  const uint32_t segments = (cols + kSegment - 1) / kSegment;
  const uint32_t per_binding = (segments + kUniformBindings - 1) / kUniformBindings;
  const uint32_t limit = std::min(max_tile, kUniformFloats / kSegment / per_binding);
  if (limit == 0) return 0;
  const uint32_t tiles = (width + limit - 1) / limit;
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

/// Bytes that hold activations of any width up to max_width, with a whole uniform binding readable from any tile's
/// start.
inline uint64_t activation_buffer_bytes(uint32_t max_width, uint32_t cols, uint32_t max_tile) {
  const uint32_t segments = (cols + kSegment - 1) / kSegment;
  const uint32_t per_binding = (segments + kUniformBindings - 1) / kUniformBindings;
  const uint32_t limit = std::max(1u, std::min(max_tile, kUniformFloats / kSegment / per_binding));
  const uint64_t tiles = (max_width + limit - 1) / limit;
  return ((max_width + tiles) * (cols + 3) + tiles * 64) * 4 + kUniformBytes;
}

}  // namespace canopy::vk
