#pragma once
// Matrices of 4-bit codes as GPTQ and AWQ store them: weight = scale * (code - zero), where scale and zero belong to a
// group of columns of a row. The codes of 8 columns (GPTQ) or of 8 rows (AWQ) share a word of 32 bits.

#include <memory>
#include <string>

#include "engine/format/packed_matrix.h"
#include "engine/format/quantization_hf.h"

namespace canopy {

/// The tensors of one matrix [R, C] with G groups of columns; `columns` may be null.
struct FourBitTensors {
  const TensorView* codes = nullptr;    // qweight: I32 [C/8, R] (GPTQ) or [C, R/8] (AWQ)
  const TensorView* zeros = nullptr;    // qzeros: I32 [G, R/8]
  const TensorView* scales = nullptr;   // scales: F16, BF16 or F32 [G, R]
  const TensorView* columns = nullptr;  // g_idx: I32 [C], the group of each column
};

/// The matrix under that name. Its type holds the codes themselves where that loses nothing or next to nothing; errors
/// are in steps from a code to the next, of which the codes' own noise is 0.29:
///   Q4_0 where all zeros are 8, exactly;
///   Q4_1 else, with scale * zero rounded to a half: off by less than 0.0074 (root mean square 0.0012), as are weights
///     that programs for these files compute in halves (0.0005);
///   the type of the scales where a block of 32 columns has several groups (columns in an order of their own,
///     "act-order"), or where scales are no halves: bit for bit the weight that those programs compute. Q8_0 would be
///     off by up to 0.07 (0.015), Q4_1 by 0.86 (0.23); who wants Q8_0 says so when loading (quantize_on_load.h).
/// Throws bad_input where tensors do not fit each other.
TensorView four_bit_matrix(std::string name, const FourBitTensors& tensors, const HfQuantization& quantization);

}  // namespace canopy
