#pragma once
// The size of a tensor in a file in bytes, and the check that its bytes lie within the file.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "engine/format/tensor_view.h"

namespace canopy {

/// Sets rank and shape, outermost dimension first, and returns the bytes of all elements. The type must be set. Throws
/// bad_input naming `owner` for more than max_rank dimensions, an element count that overflows, and elements that are
/// no whole blocks of the type.
uint64_t set_shape(TensorView& tensor, std::span<const uint64_t> shape, const std::string& owner);

/// Points a tensor at its `size` bytes, from `offset` of the file's data section on. Throws bad_input naming `owner`
/// where they do not lie in it, with `why` behind it, a sentence.
void place_tensor(TensorView& tensor, uint64_t offset, uint64_t size, std::span<const std::byte> data,
                  const std::string& owner, const std::string& why = "");

}  // namespace canopy
