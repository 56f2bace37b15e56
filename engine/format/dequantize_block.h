#pragma once
// Shared by the families of formats: reading a block, and the list of types of a family. Internal to dequantize().

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "engine/base/half.h"
#include "engine/format/tensor_type.h"
#include "engine/format/tensor_type_table.h"

namespace canopy {

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

}  // namespace canopy
