#include "engine/format/tensor_extent.h"

#include <algorithm>

#include "engine/base/checked.h"
#include "engine/base/error.h"

namespace canopy {

uint64_t set_shape(TensorView& tensor, std::span<const uint64_t> shape, const std::string& owner) {
  if (shape.size() > TensorView::max_rank) {
    throw bad_input("The " + owner + " has " + std::to_string(shape.size()) + " dimensions; at most " +
                    std::to_string(TensorView::max_rank) + " are allowed.");
  }
  tensor.rank = static_cast<uint32_t>(shape.size());
  std::ranges::copy(shape, tensor.shape.begin());
  uint64_t elements = 1;
  for (const uint64_t dimension : shape) elements = checked_mul(elements, dimension, "element count of " + owner);
  return tensor_bytes(tensor.type, elements, owner);
}

void place_tensor(TensorView& tensor, uint64_t offset, uint64_t size, std::span<const std::byte> data,
                  const std::string& owner, const std::string& why) {
  if (offset > data.size() || size > data.size() - offset) {
    throw bad_input("The " + owner + " of " + std::to_string(size) + " bytes at offset " + std::to_string(offset) +
                    " lies outside the file, whose data section has " + std::to_string(data.size()) + " bytes." +
                    (why.empty() ? "" : " " + why));
  }
  tensor.bytes = data.subspan(offset, size);
}

}  // namespace canopy
