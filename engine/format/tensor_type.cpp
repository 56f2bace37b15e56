#include "engine/format/tensor_type.h"

#include <algorithm>
#include <array>
#include <string>

#include "engine/base/checked.h"
#include "engine/base/error.h"

namespace canopy {
namespace {

using T = TensorType;

// Bytes of a block: scales first, then the packed elements (ggml's block structs).
constexpr std::array types = std::to_array<TensorTypeInfo>({
    {T::f32, "F32", 1, 4},
    {T::f16, "F16", 1, 2},
    {T::q4_0, "Q4_0", 32, 2 + 16},
    {T::q4_1, "Q4_1", 32, 2 + 2 + 16},
    {T::q5_0, "Q5_0", 32, 2 + 4 + 16},
    {T::q5_1, "Q5_1", 32, 2 + 2 + 4 + 16},
    {T::q8_0, "Q8_0", 32, 2 + 32},
    {T::q8_1, "Q8_1", 32, 2 + 2 + 32},
    {T::q2_k, "Q2_K", 256, 2 + 2 + 16 + 64},
    {T::q3_k, "Q3_K", 256, 2 + 64 + 32 + 12},
    {T::q4_k, "Q4_K", 256, 2 + 2 + 12 + 128},
    {T::q5_k, "Q5_K", 256, 2 + 2 + 12 + 32 + 128},
    {T::q6_k, "Q6_K", 256, 2 + 128 + 64 + 16},
    {T::q8_k, "Q8_K", 256, 4 + 256 + 32},
    {T::iq2_xxs, "IQ2_XXS", 256, 2 + 64},
    {T::iq2_xs, "IQ2_XS", 256, 2 + 64 + 8},
    {T::iq3_xxs, "IQ3_XXS", 256, 2 + 64 + 32},
    {T::iq1_s, "IQ1_S", 256, 2 + 32 + 16},
    {T::iq4_nl, "IQ4_NL", 32, 2 + 16},
    {T::iq3_s, "IQ3_S", 256, 2 + 64 + 32 + 8 + 4},
    {T::iq2_s, "IQ2_S", 256, 2 + 64 + 16},
    {T::iq4_xs, "IQ4_XS", 256, 2 + 2 + 4 + 128},
    {T::i8, "I8", 1, 1},
    {T::i16, "I16", 1, 2},
    {T::i32, "I32", 1, 4},
    {T::i64, "I64", 1, 8},
    {T::f64, "F64", 1, 8},
    {T::iq1_m, "IQ1_M", 256, 32 + 16 + 8},
    {T::bf16, "BF16", 1, 2},
    {T::tq1_0, "TQ1_0", 256, 2 + 4 + 48},
    {T::tq2_0, "TQ2_0", 256, 2 + 64},
    {T::mxfp4, "MXFP4", 32, 1 + 16},
    {T::nvfp4, "NVFP4", 64, 4 + 32},
    {T::q1_0, "Q1_0", 128, 2 + 16},
    {T::q2_0, "Q2_0", 64, 2 + 16},
    {T::boolean, "BOOL", 1, 1},
    {T::u8, "U8", 1, 1},
    {T::u16, "U16", 1, 2},
    {T::u32, "U32", 1, 4},
    {T::u64, "U64", 1, 8},
    {T::f8_e4m3, "F8_E4M3", 1, 1},
    {T::f8_e5m2, "F8_E5M2", 1, 1},
    {T::f8_e8m0, "F8_E8M0", 1, 1},
    {T::f4, "F4", 2, 1},
    {T::f6_e2m3, "F6_E2M3", 4, 3},
    {T::f6_e3m2, "F6_E3M2", 4, 3},
    {T::c64, "C64", 1, 8},
});

constexpr bool is_sorted_by_id() {
  for (size_t i = 1; i < types.size(); ++i) {
    if (types[i - 1].type >= types[i].type) return false;
  }
  return true;
}
static_assert(is_sorted_by_id(), "find() searches by bisection");

const TensorTypeInfo* find(uint32_t id) {
  const auto found = std::ranges::lower_bound(
      types, id, {}, [](const TensorTypeInfo& info) { return static_cast<uint32_t>(info.type); });
  return found != types.end() && static_cast<uint32_t>(found->type) == id ? &*found : nullptr;
}

/// The plain element types share their names with safetensors; the block types do not exist there.
bool exists_in_safetensors(TensorType type) {
  switch (type) {
    case T::f32:
    case T::f16:
    case T::bf16:
    case T::f64:
    case T::i8:
    case T::i16:
    case T::i32:
    case T::i64: return true;
    default: return type >= T::boolean;
  }
}

}  // namespace

std::span<const TensorTypeInfo> all_tensor_types() {
  return types;
}

std::optional<TensorType> tensor_type_from_ggml(uint32_t id) {
  if (id >= static_cast<uint32_t>(T::boolean)) return std::nullopt;
  const TensorTypeInfo* info = find(id);
  return info == nullptr ? std::nullopt : std::optional(info->type);
}

std::optional<TensorType> tensor_type_from_safetensors(std::string_view dtype) {
  for (const TensorTypeInfo& info : types) {
    if (info.name == dtype && exists_in_safetensors(info.type)) return info.type;
  }
  return std::nullopt;
}

const TensorTypeInfo& tensor_type_info(TensorType type) {
  if (const TensorTypeInfo* info = find(static_cast<uint32_t>(type))) return *info;
  throw bad_input("There is no tensor type with the id " + std::to_string(static_cast<uint32_t>(type)) + ".");
}

std::string_view to_string(TensorType type) {
  return tensor_type_info(type).name;
}

uint64_t tensor_bytes(TensorType type, uint64_t elements, std::string_view what) {
  const TensorTypeInfo& info = tensor_type_info(type);
  if (elements % info.block_elements != 0) {
    throw bad_input("The " + std::string(what) + " has " + std::to_string(elements) + " elements, no whole number of " +
                    std::string(info.name) + " blocks of " + std::to_string(info.block_elements) + ".");
  }
  return checked_mul<uint64_t>(elements / info.block_elements, info.block_bytes, "size of the " + std::string(what));
}

}  // namespace canopy
