#pragma once
// Matrices of 8-bit floats (E4M3: 4 bits of exponent, 3 of mantissa, no infinity) with a scale for all of them, for
// each row, or for each block of rows and columns: weight = scale * element.

#include <string>

#include "engine/format/packed_matrix.h"
#include "engine/format/quantization_hf.h"

namespace canopy {

/// The matrix of `elements`, F8_E4M3 [R, C], and `scales`: one element, [R], [R, 1], or one a block as
/// quantization.block says. Called inverse in files of DeepSeek, they are multiplied with all the same. Rows are made
/// in F16, as an element has 4 significant bits: of the noise that FP8 has by itself that adds 0.8% (root mean square,
/// of normally distributed weights in blocks of 128 by 128), where BF16 adds 6% and Q8_0 21%. Who wants Q8_0 says so
/// when loading (quantize_on_load.h). Throws bad_input where the two do not fit each other.
TensorView fp8_matrix(const TensorView& elements, const TensorView& scales, const HfQuantization& quantization);

}  // namespace canopy
