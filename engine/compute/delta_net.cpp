#include "engine/compute/delta_net.h"

#include "engine/base/error.h"

namespace canopy {

std::string describe(const DeltaShape& shape) {
  return std::to_string(shape.key_heads) + " key heads of " + std::to_string(shape.key_dim) + ", " +
         std::to_string(shape.value_heads) + " value heads of " + std::to_string(shape.value_dim) + ", " +
         std::to_string(shape.taps) + " taps";
}

void check_delta_shape(const DeltaShape& shape, const char* op) {
  const auto is_dim = [](uint32_t dim, uint32_t most) { return dim > 0 && dim % 4 == 0 && dim <= most; };
  const bool heads_fit = shape.key_heads > 0 && shape.value_heads > 0 && shape.value_heads % shape.key_heads == 0;
  if (heads_fit && is_dim(shape.key_dim, DeltaShape::kMostKeyDim) &&
      is_dim(shape.value_dim, DeltaShape::kMostValueDim) && shape.taps >= 2 && shape.taps <= DeltaShape::kMostTaps) {
    return;
  }
  throw bad_input(std::string(op) + " is asked for " + describe(shape) +
                  "; allowed: value heads a multiple of the key heads, key heads of 4 to " +
                  std::to_string(DeltaShape::kMostKeyDim) + " and value heads of 4 to " +
                  std::to_string(DeltaShape::kMostValueDim) + " elements, multiples of 4, and 2 to " +
                  std::to_string(DeltaShape::kMostTaps) + " taps.");
}

}  // namespace canopy
