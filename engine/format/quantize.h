#pragma once
// Floats to blocks, for models that are stored wider than the device can hold.

#include <cstddef>
#include <span>

#include "engine/format/tensor_type.h"

namespace canopy {

/// Whether quantize() can write the type: Q8_0 and Q4_K.
bool can_quantize(TensorType type);

/// Writes `values`, whole blocks of one or more rows, as blocks of `type`. Deterministic; dequantize() reads the
/// result.
///
/// Q8_0: no element is off by more than half a step, which is the largest magnitude of its 32 over 127, as a half.
/// Q4_K: scale and minimum of each 32 elements come from a least-squares search, scaled down to six bits each under the
/// two half-precision scales of 256; the quants are then rounded against what those bits really say.
///
/// Threads may write parts of one tensor, whole blocks each, at the same time.
/// Throws bad_input when the type cannot be written, `values` is no whole number of blocks, `blocks` is not exactly
/// their size, a value is infinite or not a number, or so large that the block's half-precision scale cannot express it
/// (about 8.3e6 for Q8_0 and 4e6 for Q4_K). `blocks` is unspecified then.
void quantize(TensorType type, std::span<const float> values, std::span<std::byte> blocks);

}  // namespace canopy
