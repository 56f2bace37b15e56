#pragma once
// Conversion between the weight types of devices and the tensor types of files.

#include <optional>

#include "engine/base/error.h"
#include "engine/compute/types.h"
#include "engine/format/tensor_type.h"

namespace canopy {

inline TensorType stored_as(WeightType type) {
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

/// Nothing for types that no device keeps.
inline std::optional<WeightType> weight_type_of(TensorType type) {
  for (uint32_t i = 0; i < kWeightTypes; ++i) {
    if (stored_as(static_cast<WeightType>(i)) == type) return static_cast<WeightType>(i);
  }
  return std::nullopt;
}

}  // namespace canopy
