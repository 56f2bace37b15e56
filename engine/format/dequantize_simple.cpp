// Plain elements, and blocks of 32 with one scale. Offsets in bytes; d and m are halves; q[i] belongs to element i.
// The 4-bit quants of a block are split in the middle: byte i of them holds q[i] in its low, q[i + 16] in its high
// bits.

#include <bit>

#include "engine/format/dequantize_block.h"

namespace canopy {
namespace {

using T = TensorType;

void decode_f32(const BlockOf<T::f32>& block, ElementsOf<T::f32> out) {
  out[0] = std::bit_cast<float>(u32_at(block, 0));
}

void decode_f16(const BlockOf<T::f16>& block, ElementsOf<T::f16> out) {
  out[0] = f16_at(block, 0);
}

void decode_bf16(const BlockOf<T::bf16>& block, ElementsOf<T::bf16> out) {
  out[0] = bf16_to_f32(u16_at(block, 0));
}

// 0: d, 2: q[32], unsigned 4-bit, in 16 bytes.   x = d (q - 8)
void decode_q4_0(const BlockOf<T::q4_0>& block, ElementsOf<T::q4_0> out) {
  const float d = f16_at(block, 0);
  for (size_t i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>(low_nibble(block[2 + i]) - 8);
    out[i + 16] = d * static_cast<float>(high_nibble(block[2 + i]) - 8);
  }
}

// 0: d, 2: m, 4: q[32], unsigned 4-bit, in 16 bytes.   x = d q + m
void decode_q4_1(const BlockOf<T::q4_1>& block, ElementsOf<T::q4_1> out) {
  const float d = f16_at(block, 0);
  const float m = f16_at(block, 2);
  for (size_t i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>(low_nibble(block[4 + i])) + m;
    out[i + 16] = d * static_cast<float>(high_nibble(block[4 + i])) + m;
  }
}

// 0: d, 2: 32-bit word whose bit i is bit 4 of q[i], 6: the low four bits of q[32] in 16 bytes.   x = d (q - 16)
void decode_q5_0(const BlockOf<T::q5_0>& block, ElementsOf<T::q5_0> out) {
  const float d = f16_at(block, 0);
  const uint32_t fifth = u32_at(block, 2);
  for (size_t i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>((low_nibble(block[6 + i]) | bits_at(fifth, i, 1) << 4) - 16);
    out[i + 16] = d * static_cast<float>((high_nibble(block[6 + i]) | bits_at(fifth, i + 16, 1) << 4) - 16);
  }
}

// 0: d, 2: m, 4: 32-bit word whose bit i is bit 4 of q[i], 8: the low four bits of q[32] in 16 bytes.   x = d q + m
void decode_q5_1(const BlockOf<T::q5_1>& block, ElementsOf<T::q5_1> out) {
  const float d = f16_at(block, 0);
  const float m = f16_at(block, 2);
  const uint32_t fifth = u32_at(block, 4);
  for (size_t i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>(low_nibble(block[8 + i]) | bits_at(fifth, i, 1) << 4) + m;
    out[i + 16] = d * static_cast<float>(high_nibble(block[8 + i]) | bits_at(fifth, i + 16, 1) << 4) + m;
  }
}

// 0: d, 2: q[32], signed bytes.   x = d q
void decode_q8_0(const BlockOf<T::q8_0>& block, ElementsOf<T::q8_0> out) {
  const float d = f16_at(block, 0);
  for (size_t i = 0; i < 32; ++i) out[i] = d * static_cast<float>(static_cast<int8_t>(block[2 + i]));
}

constexpr std::array simple_decoder_list = {
    blockwise<T::f32, decode_f32>(),   blockwise<T::f16, decode_f16>(),   blockwise<T::bf16, decode_bf16>(),
    blockwise<T::q4_0, decode_q4_0>(), blockwise<T::q4_1, decode_q4_1>(), blockwise<T::q5_0, decode_q5_0>(),
    blockwise<T::q5_1, decode_q5_1>(), blockwise<T::q8_0, decode_q8_0>(),
};

}  // namespace

std::span<const Decoder> simple_decoders() {
  return simple_decoder_list;
}

}  // namespace canopy
