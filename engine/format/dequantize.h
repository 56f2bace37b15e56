#pragma once
// Blocks of the stored types to floats on the CPU, type by type, and whether all of a tensor's elements are finite.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "engine/base/numbers.h"
#include "engine/format/tensor.h"

namespace canopy {

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

// Shared by the families of formats: reading a block, and the list of types of a family. Internal to dequantize().

/// The bytes of one block, copied out of the file; as many as tensor_type_table.h says.
template <TensorType type>
using BlockOf = std::array<uint8_t, find_tensor_type(static_cast<uint32_t>(type))->block_bytes>;

/// Where the elements of one block go.
template <TensorType type>
using ElementsOf = std::span<float, find_tensor_type(static_cast<uint32_t>(type))->block_elements>;

/// The decoder of a type. It decodes a run of blocks at a time, so that an indirect call is made once for a tensor and
/// never for an element.
struct Decoder {
  TensorType type;
  /// Fills `out`, which is whole blocks; `blocks` holds exactly their bytes.
  void (*decode)(std::span<const std::byte> blocks, std::span<float> out);
};

/// A Decoder from a function that decodes one block. The function belongs in the same file, to be inlined into the
/// loop.
template <TensorType type, void (*decode_block)(const BlockOf<type>&, ElementsOf<type>)>
constexpr Decoder blockwise() {
  return {type, [](std::span<const std::byte> blocks, std::span<float> out) {
            BlockOf<type> block;
            constexpr size_t step = ElementsOf<type>::extent;
            for (size_t i = 0; i < out.size() / step; ++i) {
              std::memcpy(block.data(), blocks.data() + i * block.size(), block.size());
              decode_block(block, ElementsOf<type>(out.subspan(i * step, step)));
            }
          }};
}

// The families, one file each.
std::span<const Decoder> simple_decoders();    // dequantize_simple.cpp: F32 ... Q8_0
std::span<const Decoder> k_decoders();         // dequantize_k.cpp: Q2_K ... Q6_K
std::span<const Decoder> table_decoders();     // dequantize_table.cpp: IQ4_NL, IQ4_XS, MXFP4, NVFP4
std::span<const Decoder> ternary_decoders();   // dequantize_ternary.cpp: TQ1_0, TQ2_0
std::span<const Decoder> codebook_decoders();  // dequantize_codebook.cpp: IQ1_S ... IQ3_S

// Little-endian numbers inside a block. `at` is an offset within the block; every caller's is a constant or bounded by
// constant loop limits.

template <size_t Bytes>
uint16_t u16_at(const std::array<uint8_t, Bytes>& block, size_t at) {
  return static_cast<uint16_t>(block[at] | block[at + 1] << 8);
}

template <size_t Bytes>
uint32_t u32_at(const std::array<uint8_t, Bytes>& block, size_t at) {
  return u16_at(block, at) | static_cast<uint32_t>(u16_at(block, at + 2)) << 16;
}

template <size_t Bytes>
float f16_at(const std::array<uint8_t, Bytes>& block, size_t at) {
  return f16_to_f32(u16_at(block, at));
}

/// The `count` bits of `bits` that begin at bit `first`, as an int ready for arithmetic.
constexpr int bits_at(uint32_t bits, size_t first, size_t count) {
  return static_cast<int>((bits >> first) & ((1u << count) - 1));
}

constexpr int low_nibble(uint8_t byte) {
  return byte & 0xf;
}
constexpr int high_nibble(uint8_t byte) {
  return byte >> 4;
}

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

}  // namespace canopy
