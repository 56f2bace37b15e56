#pragma once
// Stored elements to float on the CPU: the oracle for the kernels' own decoding, and what norms are read with.

#include <cstddef>
#include <span>
#include <string>

#include "engine/format/tensor_type.h"
#include "engine/format/tensor_view.h"

namespace canopy {

/// Whether dequantize() knows the type, which is also what a weight may be stored in.
bool can_dequantize(TensorType type);

/// "F32, F16, Q4_1, ...": for messages.
std::string dequantizable_types();

/// Decodes whole blocks into as many floats as they hold. Exact in the sense of the formats' reference code: scale
/// times integer, then plus minimum, each rounded to float. Throws when the type is not known or the sizes disagree.
void dequantize(TensorType type, std::span<const std::byte> blocks, std::span<float> out);

}  // namespace canopy
