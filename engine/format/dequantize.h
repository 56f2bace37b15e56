#pragma once
// Stored elements to float on the CPU: the oracle for the kernels' own decoding, what norms are read with, and what
// weights go through whose type has no kernel.

#include <cstddef>
#include <span>
#include <string>

#include "engine/format/tensor_type.h"
#include "engine/format/tensor_view.h"

namespace canopy {

/// Whether dequantize() knows the type, which is also what a weight may be stored in.
bool can_dequantize(TensorType type);

/// "F32, F16, BF16, Q4_0, ...": for messages.
std::string dequantizable_types();

/// Decodes whole blocks into as many floats as they hold. Bit for bit what the formats' reference code (gguf-py) gives:
/// each product and sum is rounded to float, in that code's order. Nothing is judged: scales that are infinite or not a
/// number give elements that are. Threads may decode parts of one tensor, whole blocks each, at the same time.
/// Throws when the type is not known, `out` is no whole number of blocks or `blocks` are not exactly its bytes.
void dequantize(TensorType type, std::span<const std::byte> blocks, std::span<float> out);

}  // namespace canopy
