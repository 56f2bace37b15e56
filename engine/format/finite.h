#pragma once
// Whether a weight's stored elements are numbers. One NaN or infinity in a matrix reaches every logit, and nothing
// later can say where it came from.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "engine/format/tensor_type.h"
#include "engine/format/tensor_view.h"

namespace canopy {

/// The first block whose elements are not all finite, whatever its codes: a scale, or an element stored as a float, is
/// infinite or not a number. `blocks` is whole blocks of a type that dequantize() knows. Integer codes are not looked
/// at.
std::optional<uint64_t> first_block_not_finite(TensorType type, std::span<const std::byte> blocks);

/// Throws bad_input that names the tensor and the row where rows [first, first + count) have such a block. Parts of one
/// tensor may be checked at the same time.
void require_finite(const TensorView& tensor, uint64_t first, uint64_t count);
/// The same for `rows`, the tensor's rows from `first` on as rows_of() gives them.
void require_finite(const TensorView& tensor, uint64_t first, std::span<const std::byte> rows);

}  // namespace canopy
