#pragma once
// How devices that split a matrix product over K cut it: part of the numeric contract, as the order of a row's sum
// follows from it. Shared by the backends that do so and by what predicts their times.

#include <algorithm>
#include <cstdint>

namespace canopy {

/// Rows of a weight that are handed to a workgroup are multiples of this.
inline constexpr uint32_t kProductBand = 64;
/// Chunks have at least so many columns: with fewer, the sums of wide passes would be as much traffic as the weights.
inline constexpr uint32_t kLeastChunk = 1024;
/// Workgroups of one band each that a product should have, so that all of a large GPU works on it.
inline constexpr uint32_t kProductGroups = 512;

/// Columns of a weight [rows, cols] that are summed in one go; sums of chunks are then added in ascending order. A
/// multiple of 256. Depends on the weight's shape alone, never on the width of a pass or on what a device is busy with:
/// the same row has the same bits in every pass.
inline uint32_t chunk_columns(uint32_t rows, uint32_t cols) {
  const uint32_t bands = (rows + kProductBand - 1) / kProductBand;
  const uint32_t wanted = (kProductGroups + bands - 1) / bands;
  const uint32_t chunks = std::clamp(wanted, 1u, std::max(1u, cols / kLeastChunk));
  const uint32_t columns = (cols + chunks - 1) / chunks;
  return (columns + 255) / 256 * 256;
}

/// Chunks of a weight [rows, cols].
inline uint32_t chunk_count(uint32_t rows, uint32_t cols) {
  const uint32_t columns = chunk_columns(rows, cols);
  return (cols + columns - 1) / columns;
}

}  // namespace canopy
