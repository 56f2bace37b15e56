#pragma once
// The element types of tensors in files. GGUF's ids are ggml's; element types that only safetensors has get ids of
// our own above them, so that one enum serves both formats.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace canopy {

enum class TensorType : uint32_t {
  // clang-format off
  f32 = 0, f16 = 1, q4_0 = 2, q4_1 = 3, q5_0 = 6, q5_1 = 7, q8_0 = 8, q8_1 = 9,
  q2_k = 10, q3_k = 11, q4_k = 12, q5_k = 13, q6_k = 14, q8_k = 15,
  iq2_xxs = 16, iq2_xs = 17, iq3_xxs = 18, iq1_s = 19, iq4_nl = 20, iq3_s = 21, iq2_s = 22, iq4_xs = 23,
  i8 = 24, i16 = 25, i32 = 26, i64 = 27, f64 = 28, iq1_m = 29, bf16 = 30,
  tq1_0 = 34, tq2_0 = 35, mxfp4 = 39, nvfp4 = 40, q1_0 = 41, q2_0 = 42,
  // Only in safetensors.
  boolean = 0x10000, u8, u16, u32, u64, f8_e4m3, f8_e5m2, f8_e8m0, f4, f6_e2m3, f6_e3m2, c64,
  // clang-format on
};

/// Elements are stored in blocks along a row; a row always holds whole blocks.
struct TensorTypeInfo {
  TensorType type;
  std::string_view name;    // as GGUF tools spell it, e.g. "Q4_1"
  uint32_t block_elements;  // elements of one block, at least 1
  uint32_t block_bytes;     // bytes of one block
};

/// Every type we know, in the order of their ids.
std::span<const TensorTypeInfo> all_tensor_types();

/// The type with this ggml id, or nothing where ggml has none (or has withdrawn it).
std::optional<TensorType> tensor_type_from_ggml(uint32_t id);

/// The type a safetensors header calls `dtype`, e.g. "BF16", or nothing.
std::optional<TensorType> tensor_type_from_safetensors(std::string_view dtype);

const TensorTypeInfo& tensor_type_info(TensorType type);
std::string_view to_string(TensorType type);

/// Bytes that `elements` elements take.
/// Throws when they are no whole number of blocks or the size overflows; `what` names the tensor in the message.
uint64_t tensor_bytes(TensorType type, uint64_t elements, std::string_view what);

}  // namespace canopy
