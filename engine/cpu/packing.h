#pragma once
// Weights of files in the forms that the kernels read.

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/compute/types.h"
#include "engine/cpu/kernels.h"

namespace canopy::cpu {

/// The form of a weight [rows, cols] of that type, without its bytes. Q4_0, Q4_1 and Q4_K keep four bits for each
/// element; all others of blocks take eight, with the values and scales they have in the file.
Packed packed_form(WeightType type, uint32_t rows, uint32_t cols);
inline uint64_t packed_bytes(const Packed& weight) {
  return weight.bands * weight.band_bytes;
}

/// Fills bands [first, end) of a weight, which are zeros, on as many threads as there are cores. Passes on what reading
/// the parts throws.
void pack_bands(std::span<const WeightPart> parts, WeightLayout layout, const Packed& form, uint32_t first,
                uint32_t end, std::span<uint8_t> to);

/// The values of a row, bit for bit what dequantize() (engine/format) gives.
void unpack_row(const Packed& weight, uint32_t row, float* to);

}  // namespace canopy::cpu
