#pragma once
// Blocks of the stored types to floats on the CPU, type by type, and whether all of a tensor's elements are finite.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "engine/base/numbers.h"
#include "engine/format/tensor.h"

namespace canopy {

// Stored elements to float on the CPU: the oracle for the kernels' own decoding, what norms are read with, and what
// weights go through whose type has no kernel.

/// Whether dequantize() knows the type, which is also what a weight may be stored in.
bool can_dequantize(TensorType type);

/// "F32, F16, BF16, Q4_0, ...": for messages.
std::string dequantizable_types();

/// Decodes whole blocks into as many floats as they hold. Bit for bit what the formats' reference code (gguf-py) gives:
/// each product and sum is rounded to float, in that code's order. Nothing is judged: scales that are infinite or not a
/// number give elements that are. Threads may decode parts of one tensor, whole blocks each, at the same time.
/// Throws when the type is not known, `out` is no whole number of blocks or `blocks` are not exactly its bytes.
void dequantize(TensorType type, std::span<const std::byte> blocks, std::span<float> out);

// Whether a weight's stored elements are numbers. One NaN or infinity in a matrix reaches every logit, and nothing
// later can say where it came from.

/// The first block whose elements are not all finite, whatever its codes: a scale, or an element stored as a float, is
/// infinite or not a number. `blocks` is whole blocks of a type that dequantize() knows. Integer codes are not looked
/// at.
std::optional<uint64_t> first_block_not_finite(TensorType type, std::span<const std::byte> blocks);

/// Throws bad_input that names the tensor and the row where rows [first, first + count) have such a block. Parts of one
/// tensor may be checked at the same time.
void require_finite(const TensorView& tensor, uint64_t first, uint64_t count);
/// The same for `rows`, the tensor's rows from `first` on as rows_of() gives them.
void require_finite(const TensorView& tensor, uint64_t first, std::span<const std::byte> rows);

// Blocks in memory, for dequantize() and quantize().

/// The bytes of one block, copied out of the file; as many as tensor_types says.
template <TensorType type>
using BlockOf = std::array<uint8_t, find_tensor_type(static_cast<uint32_t>(type))->block_bytes>;

/// Where the elements of one block go.
template <TensorType type>
using ElementsOf = std::span<float, find_tensor_type(static_cast<uint32_t>(type))->block_elements>;

// The eight scales and eight minimums of a Q4_K or Q5_K block: six bits each, 96 bits in 12 bytes.
//
//   byte      bits 0-5            bits 6-7
//   i < 4     scale i             high two bits of scale i + 4
//   4 + i     minimum i           high two bits of minimum i + 4
//             bits 0-3            bits 4-7
//   8 + i     low bits of scale i + 4   low bits of minimum i + 4

struct ScalesAndMinimums {
  std::array<uint8_t, 8> scales = {};    // 0 to 63
  std::array<uint8_t, 8> minimums = {};  // 0 to 63
};

constexpr ScalesAndMinimums unpack_scales(std::span<const uint8_t, 12> bytes) {
  ScalesAndMinimums result;
  for (size_t i = 0; i < 4; ++i) {
    result.scales[i] = bytes[i] & 0x3f;
    result.minimums[i] = bytes[4 + i] & 0x3f;
    result.scales[i + 4] = static_cast<uint8_t>((bytes[8 + i] & 0xf) | (bytes[i] >> 6 << 4));
    result.minimums[i + 4] = static_cast<uint8_t>((bytes[8 + i] >> 4) | (bytes[4 + i] >> 6 << 4));
  }
  return result;
}

/// The inverse; every entry must be below 64.
constexpr std::array<uint8_t, 12> pack_scales(const ScalesAndMinimums& values) {
  std::array<uint8_t, 12> bytes = {};
  for (size_t i = 0; i < 4; ++i) {
    bytes[i] = static_cast<uint8_t>(values.scales[i] | (values.scales[i + 4] >> 4 << 6));
    bytes[4 + i] = static_cast<uint8_t>(values.minimums[i] | (values.minimums[i + 4] >> 4 << 6));
    bytes[8 + i] = static_cast<uint8_t>((values.scales[i + 4] & 0xf) | (values.minimums[i + 4] & 0xf) << 4);
  }
  return bytes;
}

}  // namespace canopy
