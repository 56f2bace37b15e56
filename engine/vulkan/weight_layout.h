#pragma once
// The layout of a weight matrix in device memory (shaders/weights.glsl reads it). Rows are cut into bands of 64, so
// that a workgroup reads its rows' weights in one forward run. In a band, units of 16 bytes: unit u of row r at index
// u * 64 + r; block types add one word of scale per block of 32 at index block * 64 + r (q4_1: scale and minimum as two
// halves; q8_0: the scale as f32). Other block types lie in bands of words (word_layout.h). Rows are padded to whole
// bands, columns to a multiple of 32, with zeros. Large matrices are cut by rows.

#include <cstdint>
#include <span>
#include <vector>

#include "engine/compute/types.h"
#include "engine/compute/weight_parts.h"

namespace canopy::vk {

inline constexpr uint32_t kBandRows = 64;

/// Columns that one 16-byte unit holds; not for the types of word_layout.h.
uint32_t columns_per_unit(WeightType type);

/// A run of rows kept in one pair of buffers.
struct WeightShardLayout {
  uint32_t first_row = 0;
  uint32_t rows = 0;
  uint32_t stored_rows = 0;
  uint64_t unit_bytes = 0;
  uint64_t scale_bytes = 0;  // 0 for types without scales

  uint64_t bands() const { return stored_rows / kBandRows; }
  uint64_t band_unit_bytes() const { return unit_bytes / bands(); }
  uint64_t band_scale_bytes() const { return scale_bytes / bands(); }
};

/// Cuts rows so that no buffer exceeds `max_bytes`. Shards start at whole bands.
std::vector<WeightShardLayout> shard_rows(WeightType type, WeightExtent extent, uint64_t max_bytes);

}  // namespace canopy::vk
