#include "engine/compute/types.h"

namespace canopy {

const char* to_string(WeightType type) {
  switch (type) {
    case WeightType::f32: return "F32";
    case WeightType::f16: return "F16";
    case WeightType::bf16: return "BF16";
    case WeightType::q8_0: return "Q8_0";
    case WeightType::q4_1: return "Q4_1";
  }
  return "?";
}

const char* to_string(CacheType type) {
  return type == CacheType::f16 ? "f16" : "f32";
}

BlockSize block_size(WeightType type) {
  switch (type) {
    case WeightType::f32: return {1, 4};
    case WeightType::f16: return {1, 2};
    case WeightType::bf16: return {1, 2};
    case WeightType::q8_0: return {32, 34};
    case WeightType::q4_1: return {32, 20};
  }
  return {};
}

}  // namespace canopy
