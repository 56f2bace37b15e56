#pragma once
// Tensors in files: their element types, a view of one where it lies in a mapped file, and matrices whose rows must be
// made because the file holds them in a form that no block type has.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace canopy {

// The element types of tensors in files. GGUF's ids are ggml's; element types that only safetensors has get ids of
// our own above them, so that one enum serves both formats.

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

// All types, for code that wants block sizes while compiling: decoders take their block types from here, so that no
// size is written down twice. Bytes of a block: scales first, then the packed elements (ggml's block structs).
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

// A tensor where it lies in a mapped file.

class PackedMatrix;

/// Row-major: the last dimension is contiguous (GGUF lists it first; we do not).
struct TensorView {
  static constexpr uint32_t max_rank = 4;

  std::string name;
  std::string stored_as = {};  // its name in the file, where messages are to use that; else empty
  TensorType type = TensorType::f32;
  uint32_t rank = 0;                          // 0 is a scalar
  std::array<uint64_t, max_rank> shape = {};  // the first `rank` entries, outermost first
  std::span<const std::byte> bytes;           // valid while its file is open
  /// Where the bytes are no blocks of `type`: makes rows of it.
  std::shared_ptr<const PackedMatrix> packed = nullptr;

  /// The name for messages.
  const std::string& shown_name() const { return stored_as.empty() ? name : stored_as; }
  /// The last dimension; 1 for a scalar.
  uint64_t cols() const { return rank == 0 ? 1 : shape[rank - 1]; }
  /// Product of all dimensions but the last; 1 for a vector. Its overflow was excluded when the file was read.
  uint64_t rows() const;
  uint64_t elements() const { return rows() * cols(); }
  /// "[576, 1536]"
  std::string shape_text() const;
};

// The size of a tensor in a file in bytes, and the check that its bytes lie within the file.

/// Sets rank and shape, outermost dimension first, and returns the bytes of all elements. The type must be set. Throws
/// bad_input naming `owner` for more than max_rank dimensions, an element count that overflows, and elements that are
/// no whole blocks of the type.
uint64_t set_shape(TensorView& tensor, std::span<const uint64_t> shape, const std::string& owner);

/// Points a tensor at its `size` bytes, from `offset` of the file's data section on. Throws bad_input naming `owner`
/// where they do not lie in it, with `why` behind it, a sentence.
void place_tensor(TensorView& tensor, uint64_t offset, uint64_t size, std::span<const std::byte> data,
                  const std::string& owner, const std::string& why = "");

// Matrices that a file holds in a form that no block type has, such as codes in one tensor and their scales in another.
// Their TensorView has the type that rows are made in, and the tensor of the codes as its bytes.

class PackedMatrix {
 public:
  virtual ~PackedMatrix() = default;
  PackedMatrix(const PackedMatrix&) = delete;
  PackedMatrix& operator=(const PackedMatrix&) = delete;

  /// Writes rows [first, first + count) as blocks of the tensor's type, row-major; `out` is exactly their bytes.
  /// Threads may make rows of one matrix at the same time. Throws bad_input, naming the tensor, where the file
  /// contradicts what its configuration says.
  virtual void make_rows(uint64_t first, uint64_t count, std::span<std::byte> out) const = 0;

  /// What the file holds, for people: "FP8", "GPTQ with columns in an order of their own"; empty where that is the
  /// tensor's type in another order.
  virtual std::string_view form() const = 0;

 protected:
  PackedMatrix() = default;
};

/// A matrix of the rows from `first` on.
std::shared_ptr<const PackedMatrix> packed_rows(std::shared_ptr<const PackedMatrix> whole, uint64_t first);

/// Bytes of a row in the tensor's type.
uint64_t row_bytes(const TensorView& tensor);

/// Rows [first, first + count) as blocks of the tensor's type: where they lie in the file, or made in `scratch`. Throws
/// what make_rows() throws.
std::span<const std::byte> rows_of(const TensorView& tensor, uint64_t first, uint64_t count,
                                   std::vector<std::byte>& scratch);

}  // namespace canopy
