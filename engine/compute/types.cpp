#include "engine/compute/types.h"

namespace canopy {

const char* to_string(WeightType type) {
  switch (type) {
    case WeightType::f32: return "F32";
    case WeightType::f16: return "F16";
    case WeightType::bf16: return "BF16";
    case WeightType::q8_0: return "Q8_0";
    case WeightType::q4_1: return "Q4_1";
    case WeightType::q4_0: return "Q4_0";
    case WeightType::q5_0: return "Q5_0";
    case WeightType::q5_1: return "Q5_1";
    case WeightType::q2_k: return "Q2_K";
    case WeightType::q3_k: return "Q3_K";
    case WeightType::q4_k: return "Q4_K";
    case WeightType::q5_k: return "Q5_K";
    case WeightType::q6_k: return "Q6_K";
    case WeightType::iq4_nl: return "IQ4_NL";
    case WeightType::iq4_xs: return "IQ4_XS";
    case WeightType::mxfp4: return "MXFP4";
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
    case WeightType::q4_0: return {32, 18};
    case WeightType::q5_0: return {32, 22};
    case WeightType::q5_1: return {32, 24};
    case WeightType::q2_k: return {256, 84};
    case WeightType::q3_k: return {256, 110};
    case WeightType::q4_k: return {256, 144};
    case WeightType::q5_k: return {256, 176};
    case WeightType::q6_k: return {256, 210};
    case WeightType::iq4_nl: return {32, 18};
    case WeightType::iq4_xs: return {256, 136};
    case WeightType::mxfp4: return {32, 17};
  }
  return {};
}

}  // namespace canopy
