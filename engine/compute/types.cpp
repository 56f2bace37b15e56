#include "engine/compute/types.h"

#include "engine/base/error.h"

namespace canopy {

TensorType stored_as(WeightType type) {
  switch (type) {
    case WeightType::f32: return TensorType::f32;
    case WeightType::f16: return TensorType::f16;
    case WeightType::bf16: return TensorType::bf16;
    case WeightType::q8_0: return TensorType::q8_0;
    case WeightType::q4_1: return TensorType::q4_1;
    case WeightType::q4_0: return TensorType::q4_0;
    case WeightType::q5_0: return TensorType::q5_0;
    case WeightType::q5_1: return TensorType::q5_1;
    case WeightType::q2_k: return TensorType::q2_k;
    case WeightType::q3_k: return TensorType::q3_k;
    case WeightType::q4_k: return TensorType::q4_k;
    case WeightType::q5_k: return TensorType::q5_k;
    case WeightType::q6_k: return TensorType::q6_k;
    case WeightType::iq4_nl: return TensorType::iq4_nl;
    case WeightType::iq4_xs: return TensorType::iq4_xs;
    case WeightType::mxfp4: return TensorType::mxfp4;
  }
  throw bad_input("A weight has no known type.");
}

std::optional<WeightType> weight_type_of(TensorType type) {
  for (uint32_t i = 0; i < kWeightTypes; ++i) {
    if (stored_as(static_cast<WeightType>(i)) == type) return static_cast<WeightType>(i);
  }
  return std::nullopt;
}

std::string to_string(WeightType type) {
  return std::string(to_string(stored_as(type)));
}

std::span<const std::byte> read_rows(const WeightPart& part, uint32_t first, uint32_t count,
                                     std::vector<std::byte>& scratch) {
  const uint64_t row = row_bytes(part);
  const uint64_t begin = part.read ? 0 : row * first;
  const std::span<const std::byte> bytes = part.read ? part.read(first, count, scratch) : part.data;
  if (begin > bytes.size() || row * count > bytes.size() - begin) {
    throw bad_input("A weight's rows " + std::to_string(first) + " to " + std::to_string(uint64_t{first} + count) +
                    " take " + std::to_string(row * count) + " bytes, but its part has only " +
                    std::to_string(bytes.size()) + ".");
  }
  return bytes.subspan(begin, row * count);
}

uint64_t row_bytes(const WeightPart& part) {
  const BlockSize block = block_size(part.type);
  return uint64_t{part.cols} / block.elements * block.bytes;
}

const char* to_string(CacheType type) {
  return type == CacheType::f16 ? "f16" : "f32";
}

BlockSize block_size(WeightType type) {
  const TensorTypeInfo& info = tensor_type_info(stored_as(type));
  return {info.block_elements, info.block_bytes};
}

}  // namespace canopy
