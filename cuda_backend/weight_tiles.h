#pragma once
// How weights lie in the memory of an NVIDIA GPU (kernels/params.h has the bits, kernels/weights.h reads them): tiles
// of 16 rows and 256 columns, those of 16 rows one after the other, so that what a warp reads is one run of bytes. No
// tile takes more than its blocks in the file, but for one or two bytes for each 16 rows of Q3_K and IQ4_XS, whose
// factors take 8 bits each.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cuda_backend/kernels/params.h"
#include "engine/compute/types.h"
#include "engine/compute/weights.h"

namespace canopy::cuda {

/// The kernels' name of it: "q4_k".
const char* kernel_suffix(WeightType type);
/// What its tiles are made of.
const TileShape& tile_shape(WeightType type);

struct TileLayout {
  uint32_t rows = 0, cols = 0;  // of the matrix
  TileShape shape;
  float unit = 1;  // of a quantized weight in tiles: a power of two

  WeightParams params(uint64_t address) const { return {address, rows, cols, unit}; }
  uint32_t groups() const { return params(0).groups(); }
  /// Of 16 rows.
  uint64_t group_bytes() const { return uint64_t{params(0).supers()} * shape.bytes(); }
  uint64_t bytes() const { return groups() * group_bytes(); }
};

/// Throws bad_input as joined_extent() does.
TileLayout tile_layout(std::span<const WeightPart> parts, WeightLayout layout);

/// Fills the tiles of rows [16 group, 16 (group + 1)); the bytes are theirs, zeroed or not. `scratch` is for the parts'
/// readers. Returns the largest scale in them.
float fill_group(std::span<const WeightPart> parts, WeightLayout layout, const TileLayout& tiles, uint32_t group,
                 std::span<std::byte> to, std::vector<std::byte>& scratch);

// The unit of a weight depends on its largest scale, which is known when all of it is written. Some groups tell what it
// probably is; where others have a scale that is far larger, the weight is written again.

/// Whether tiles whose largest scale is this have the right unit.
bool fits_unit(float largest);
/// The right one, where the largest scale is this in `unit`.
float unit_for(float unit, float largest);
/// That of a few groups.
float likely_unit(std::span<const WeightPart> parts, WeightLayout layout, const TileLayout& tiles);

}  // namespace canopy::cuda
