#include "engine/format/packed_matrix.h"

namespace canopy {

uint64_t row_bytes(const TensorView& tensor) {
  return tensor_bytes(tensor.type, tensor.cols(), tensor.name);
}

std::span<const std::byte> rows_of(const TensorView& tensor, uint64_t first, uint64_t count,
                                   std::vector<std::byte>& scratch) {
  const uint64_t row = row_bytes(tensor);
  if (!tensor.packed) return tensor.bytes.subspan(row * first, row * count);
  scratch.resize(row * count);
  tensor.packed->make_rows(first, count, scratch);
  return scratch;
}

}  // namespace canopy
