#pragma once
// How weights lie in the memory of an NVIDIA GPU (kernels/weights.h reads them). Rows are cut into bands of 64; unit u
// of row r, 16 bytes, is at (band * units + u) * 64 + r % 64, so that the lanes of a warp, which have neighbouring
// rows, read whole lines. One plane has the codes, 32 columns of a row in one to eight units; block types have a plane
// of scales, packed as in files, and codes of 5 and 6 bits one of the upper bits. Codes of 2 and 3 bits take 4. Rows
// are padded to whole bands, columns to whole steps of 128, with zeros.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/compute/types.h"
#include "engine/compute/weight_parts.h"

namespace canopy::cuda {

/// The kernels' name of it: "q4_k".
const char* kernel_suffix(WeightType type);

struct PlaneLayout {
  uint32_t rows = 0, cols = 0;                               // of the matrix
  uint32_t stored_rows = 0, stored_cols = 0;                 // with padding
  uint32_t code_units = 0, scale_units = 0, high_units = 0;  // of a row

  uint64_t code_bytes() const { return uint64_t{stored_rows} * code_units * 16; }
  uint64_t scale_bytes() const { return uint64_t{stored_rows} * scale_units * 16; }
  uint64_t high_bytes() const { return uint64_t{stored_rows} * high_units * 16; }
  uint64_t bytes() const { return code_bytes() + scale_bytes() + high_bytes(); }
};

/// The bytes of some bands' planes.
struct PlaneBytes {
  std::span<std::byte> codes, scales, highs;
};

/// Throws bad_input as joined_extent() does.
PlaneLayout plane_layout(std::span<const WeightPart> parts, WeightLayout layout);

/// Fills the planes of bands [first_band, first_band + bands) on all cores; the bytes are theirs, zeroed or not.
void fill_planes(std::span<const WeightPart> parts, WeightLayout layout, const PlaneLayout& planes, uint32_t first_band,
                 uint32_t bands, const PlaneBytes& to);

}  // namespace canopy::cuda
