#pragma once
// Rows of a tensor in another type than the file's: decoded, or quantized on load.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/compute/types.h"
#include "engine/format/tensor_view.h"

namespace canopy {

/// Whether rows of `cols` elements can become `to`: F32 always, Q8_0 and Q4_K where they are whole blocks.
bool can_convert_rows(uint64_t cols, WeightType to);

/// Writes rows [first, first + count) of a [R, C] tensor, whose type can be decoded, as row-major blocks of `to` into
/// `blocks`, resized to fit. The same bits as quantize() of the whole decoded tensor. Needs one row of floats beside
/// the result; several threads may convert parts of one tensor.
/// Throws bad_input, naming tensor and row, where a value cannot be written in that type.
void convert_rows(const TensorView& tensor, uint32_t first, uint32_t count, WeightType to,
                  std::vector<std::byte>& blocks);
/// The same of `rows`, the tensor's rows from `first` on as rows_of() gives them.
void convert_rows(const TensorView& tensor, uint32_t first, std::span<const std::byte> rows, WeightType to,
                  std::vector<std::byte>& blocks);

}  // namespace canopy
