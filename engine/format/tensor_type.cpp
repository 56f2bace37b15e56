#include "engine/format/tensor_type.h"

#include <string>

#include "engine/base/checked.h"
#include "engine/base/error.h"
#include "engine/format/tensor_type_table.h"

namespace canopy {
namespace {

using T = TensorType;

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
  return tensor_types;
}

std::optional<TensorType> tensor_type_from_ggml(uint32_t id) {
  if (id >= static_cast<uint32_t>(T::boolean)) return std::nullopt;
  const TensorTypeInfo* info = find_tensor_type(id);
  return info == nullptr ? std::nullopt : std::optional(info->type);
}

std::optional<TensorType> tensor_type_from_safetensors(std::string_view dtype) {
  for (const TensorTypeInfo& info : tensor_types) {
    if (info.name == dtype && exists_in_safetensors(info.type)) return info.type;
  }
  return std::nullopt;
}

const TensorTypeInfo& tensor_type_info(TensorType type) {
  if (const TensorTypeInfo* info = find_tensor_type(static_cast<uint32_t>(type))) return *info;
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
