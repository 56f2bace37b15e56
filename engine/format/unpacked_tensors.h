#pragma once
// The matrices that the tensors of a quantized Hugging Face folder stand for.

#include <span>
#include <vector>

#include "engine/format/quantization_hf.h"
#include "engine/format/tensor_view.h"

namespace canopy {

/// Puts codes, scales and zeros together to matrices "NAME.weight", in the place of their codes; all other tensors stay
/// as they are. Only the small tensors that say how columns are grouped are read here. Throws bad_input where a part of
/// a matrix is missing or does not fit the others, and where a folder has such parts without saying how they were made.
std::vector<TensorView> unpacked_tensors(std::span<const TensorView> found, const HfQuantization& quantization);

}  // namespace canopy
