#pragma once
// The table behind tensor_type.h, for code that wants block sizes while compiling: decoders take their block types from
// here, so that no size is written down twice.

#include <algorithm>
#include <array>
#include <cstdint>

#include "engine/format/tensor_type.h"

namespace canopy {

// Bytes of a block: scales first, then the packed elements (ggml's block structs).
inline constexpr std::array tensor_types = std::to_array<TensorTypeInfo>({
    {TensorType::f32, "F32", 1, 4},
    {TensorType::f16, "F16", 1, 2},
    {TensorType::q4_0, "Q4_0", 32, 2 + 16},
    {TensorType::q4_1, "Q4_1", 32, 2 + 2 + 16},
    {TensorType::q5_0, "Q5_0", 32, 2 + 4 + 16},
    {TensorType::q5_1, "Q5_1", 32, 2 + 2 + 4 + 16},
    {TensorType::q8_0, "Q8_0", 32, 2 + 32},
    {TensorType::q8_1, "Q8_1", 32, 2 + 2 + 32},
    {TensorType::q2_k, "Q2_K", 256, 2 + 2 + 16 + 64},
    {TensorType::q3_k, "Q3_K", 256, 2 + 64 + 32 + 12},
    {TensorType::q4_k, "Q4_K", 256, 2 + 2 + 12 + 128},
    {TensorType::q5_k, "Q5_K", 256, 2 + 2 + 12 + 32 + 128},
    {TensorType::q6_k, "Q6_K", 256, 2 + 128 + 64 + 16},
    {TensorType::q8_k, "Q8_K", 256, 4 + 256 + 32},
    {TensorType::iq2_xxs, "IQ2_XXS", 256, 2 + 64},
    {TensorType::iq2_xs, "IQ2_XS", 256, 2 + 64 + 8},
    {TensorType::iq3_xxs, "IQ3_XXS", 256, 2 + 64 + 32},
    {TensorType::iq1_s, "IQ1_S", 256, 2 + 32 + 16},
    {TensorType::iq4_nl, "IQ4_NL", 32, 2 + 16},
    {TensorType::iq3_s, "IQ3_S", 256, 2 + 64 + 32 + 8 + 4},
    {TensorType::iq2_s, "IQ2_S", 256, 2 + 64 + 16},
    {TensorType::iq4_xs, "IQ4_XS", 256, 2 + 2 + 4 + 128},
    {TensorType::i8, "I8", 1, 1},
    {TensorType::i16, "I16", 1, 2},
    {TensorType::i32, "I32", 1, 4},
    {TensorType::i64, "I64", 1, 8},
    {TensorType::f64, "F64", 1, 8},
    {TensorType::iq1_m, "IQ1_M", 256, 32 + 16 + 8},
    {TensorType::bf16, "BF16", 1, 2},
    {TensorType::tq1_0, "TQ1_0", 256, 2 + 4 + 48},
    {TensorType::tq2_0, "TQ2_0", 256, 2 + 64},
    {TensorType::mxfp4, "MXFP4", 32, 1 + 16},
    {TensorType::nvfp4, "NVFP4", 64, 4 + 32},
    {TensorType::q1_0, "Q1_0", 128, 2 + 16},
    {TensorType::q2_0, "Q2_0", 64, 2 + 16},
    {TensorType::boolean, "BOOL", 1, 1},
    {TensorType::u8, "U8", 1, 1},
    {TensorType::u16, "U16", 1, 2},
    {TensorType::u32, "U32", 1, 4},
    {TensorType::u64, "U64", 1, 8},
    {TensorType::f8_e4m3, "F8_E4M3", 1, 1},
    {TensorType::f8_e5m2, "F8_E5M2", 1, 1},
    {TensorType::f8_e8m0, "F8_E8M0", 1, 1},
    {TensorType::f4, "F4", 2, 1},
    {TensorType::f6_e2m3, "F6_E2M3", 4, 3},
    {TensorType::f6_e3m2, "F6_E3M2", 4, 3},
    {TensorType::c64, "C64", 1, 8},
});

constexpr bool tensor_types_are_sorted() {
  for (size_t i = 1; i < tensor_types.size(); ++i) {
    if (tensor_types[i - 1].type >= tensor_types[i].type) return false;
  }
  return true;
}
static_assert(tensor_types_are_sorted(), "find_tensor_type() searches by bisection");

/// The entry with this id, or null.
constexpr const TensorTypeInfo* find_tensor_type(uint32_t id) {
  const auto found = std::ranges::lower_bound(
      tensor_types, id, {}, [](const TensorTypeInfo& info) { return static_cast<uint32_t>(info.type); });
  return found != tensor_types.end() && static_cast<uint32_t>(found->type) == id ? &*found : nullptr;
}

}  // namespace canopy
