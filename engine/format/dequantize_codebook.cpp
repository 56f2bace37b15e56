// Formats that store groups of magnitudes as indices into a codebook (codebooks.h), and signs apart. Blocks
// of 256 elements in eight parts of 32, under one half-precision scale d. Offsets in bytes; group g has 8 or 4
// elements.
//
// A byte of signs holds the sign of element i of its group in bit i, 1 for minus. Where only seven bits are stored, the
// eighth is such that the number of minuses is even.

#include <bit>

#include "engine/format/codebooks.h"
#include "engine/format/dequantize_block.h"

namespace canopy {
namespace {

using T = TensorType;

constexpr std::array<float, 4> iq2_levels = {8, 25, 43, 0};  // no code has the fourth
constexpr std::array<float, 8> iq3_xxs_levels = {4, 12, 20, 28, 36, 44, 52, 62};
constexpr std::array<float, 8> iq3_s_levels = {1, 3, 5, 7, 9, 11, 13, 15};
constexpr std::array<float, 4> iq1_levels = {-1, 0, 1, 0};  // no code has the fourth

/// The amount by which IQ1_S and IQ1_M move a group's levels up or down.
constexpr float iq1_shift = 0.125f;

uint8_t with_parity(int seven_signs) {
  const auto signs = static_cast<uint32_t>(seven_signs);
  return static_cast<uint8_t>(signs | (std::popcount(signs) & 1u) << 7);
}

/// 8 elements: scale times level, negated where `signs` says so.
void decode_eight(uint16_t code, uint8_t signs, float scale, float* out) {
  for (size_t i = 0; i < 8; ++i) {
    const float magnitude = scale * iq2_levels[static_cast<size_t>(bits_at(code, 2 * i, 2))];
    out[i] = bits_at(signs, i, 1) != 0 ? -magnitude : magnitude;
  }
}

/// 4 elements: scale times level, negated where the low four bits of `signs` say so.
void decode_four(uint16_t code, const std::array<float, 8>& levels, int signs, float scale, float* out) {
  for (size_t i = 0; i < 4; ++i) {
    const float magnitude = scale * levels[static_cast<size_t>(bits_at(code, 3 * i, 3))];
    out[i] = (signs >> i & 1) != 0 ? -magnitude : magnitude;
  }
}

// 0: d. 2: per part eight bytes: four indices, then a 32-bit word with four times seven bits of signs and, on top, four
// bits s.   x = d (s + 1/2) / 4 level
void decode_iq2_xxs(const BlockOf<T::iq2_xxs>& block, ElementsOf<T::iq2_xxs> out) {
  const float d = f16_at(block, 0);
  for (size_t part = 0; part < 8; ++part) {
    const size_t at = 2 + 8 * part;
    const uint32_t word = u32_at(block, at + 4);
    const float scale = d * (0.5f + static_cast<float>(bits_at(word, 28, 4))) * 0.25f;
    for (size_t g = 0; g < 4; ++g) {
      const uint8_t signs = with_parity(bits_at(word, 7 * g, 7));
      decode_eight(iq2_xxs_codes[block[at + g]], signs, scale, out.data() + 32 * part + 8 * g);
    }
  }
}

// 0: d. 2: 32 16-bit words, one a group of 8: nine bits of index, seven of signs. 66: eight bytes with s for 16
// elements each, low bits first.   x = d (s + 1/2) / 4 level
void decode_iq2_xs(const BlockOf<T::iq2_xs>& block, ElementsOf<T::iq2_xs> out) {
  const float d = f16_at(block, 0);
  for (size_t g = 0; g < 32; ++g) {
    const uint16_t word = u16_at(block, 2 + 2 * g);
    const int s = bits_at(block[66 + g / 4], g % 4 / 2 * 4, 4);
    const float scale = d * (0.5f + static_cast<float>(s)) * 0.25f;
    const uint8_t signs = with_parity(bits_at(word, 9, 7));
    decode_eight(iq2_xs_codes[word & 511u], signs, scale, out.data() + 8 * g);
  }
}

// 0: d. 2: the low eight bits of 32 indices. 34: 32 bytes of signs. 66: eight bytes, the high two bits of the indices
// of a part, low bits first. 74: s as in IQ2_XS.   x = d (s + 1/2) / 4 level
void decode_iq2_s(const BlockOf<T::iq2_s>& block, ElementsOf<T::iq2_s> out) {
  const float d = f16_at(block, 0);
  for (size_t g = 0; g < 32; ++g) {
    const int index = block[2 + g] | bits_at(block[66 + g / 4], g % 4 * 2, 2) << 8;
    const int s = bits_at(block[74 + g / 4], g % 4 / 2 * 4, 4);
    const float scale = d * (0.5f + static_cast<float>(s)) * 0.25f;
    decode_eight(iq2_s_codes[static_cast<size_t>(index)], block[34 + g], scale, out.data() + 8 * g);
  }
}

// 0: d. 2: 64 indices of groups of 4. 66: one 32-bit word a part: four times seven bits of signs, each for two groups,
// and, on top, four bits s.   x = d (s + 1/2) / 2 level
void decode_iq3_xxs(const BlockOf<T::iq3_xxs>& block, ElementsOf<T::iq3_xxs> out) {
  const float d = f16_at(block, 0);
  for (size_t part = 0; part < 8; ++part) {
    const uint32_t word = u32_at(block, 66 + 4 * part);
    const float scale = d * (0.5f + static_cast<float>(bits_at(word, 28, 4))) * 0.5f;
    for (size_t g = 0; g < 8; ++g) {
      const int signs = with_parity(bits_at(word, g / 2 * 7, 7)) >> (g % 2 * 4);
      const uint16_t code = iq3_xxs_codes[block[2 + 8 * part + g]];
      decode_four(code, iq3_xxs_levels, signs, scale, out.data() + 32 * part + 4 * g);
    }
  }
}

// 0: d. 2: the low eight bits of 64 indices of groups of 4. 66: eight bytes, bit g of byte p is the ninth bit of group
// g of part p. 74: 32 bytes of signs, each for two groups. 106: four bytes with s for 32 elements each, low bits first.
// x = d (1 + 2 s) level
void decode_iq3_s(const BlockOf<T::iq3_s>& block, ElementsOf<T::iq3_s> out) {
  const float d = f16_at(block, 0);
  for (size_t part = 0; part < 8; ++part) {
    const float scale = d * static_cast<float>(1 + 2 * bits_at(block[106 + part / 2], part % 2 * 4, 4));
    for (size_t g = 0; g < 8; ++g) {
      const int index = block[2 + 8 * part + g] | bits_at(block[66 + part], g, 1) << 8;
      const int signs = block[74 + 4 * part + g / 2] >> (g % 2 * 4);
      const uint16_t code = iq3_s_codes[static_cast<size_t>(index)];
      decode_four(code, iq3_s_levels, signs, scale, out.data() + 32 * part + 4 * g);
    }
  }
}

/// 8 elements of IQ1_S or IQ1_M: scale times (level + shift).
void decode_shifted(int index, float shift, float scale, float* out) {
  const uint16_t code = iq1_codes[static_cast<size_t>(index)];
  for (size_t i = 0; i < 8; ++i) {
    out[i] = scale * (iq1_levels[static_cast<size_t>(bits_at(code, 2 * i, 2))] + shift);
  }
}

// 0: d. 2: the low eight bits of 32 indices of groups of 8. 34: one 16-bit word a part: four times the high three bits
// of an index, three bits s, one bit for a downward shift.   x = d (1 + 2 s) (level +- 1/8)
void decode_iq1_s(const BlockOf<T::iq1_s>& block, ElementsOf<T::iq1_s> out) {
  const float d = f16_at(block, 0);
  for (size_t part = 0; part < 8; ++part) {
    const uint16_t word = u16_at(block, 34 + 2 * part);
    const float scale = d * static_cast<float>(1 + 2 * bits_at(word, 12, 3));
    const float shift = bits_at(word, 15, 1) != 0 ? -iq1_shift : iq1_shift;
    for (size_t g = 0; g < 4; ++g) {
      const int index = block[2 + 4 * part + g] | bits_at(word, 3 * g, 3) << 8;
      decode_shifted(index, shift, scale, out.data() + 32 * part + 8 * g);
    }
  }
}

// 0: the low eight bits of 32 indices of groups of 8. 32: 16 bytes, four bits a group, low bits first: the high three
// bits of its index, one bit for a downward shift. 48: four 16-bit words; their top four bits, the first word's lowest,
// make up d; below are four times three bits s, each for 16 elements.   x = d (1 + 2 s) (level +- 1/8)
void decode_iq1_m(const BlockOf<T::iq1_m>& block, ElementsOf<T::iq1_m> out) {
  uint32_t d_bits = 0;
  for (size_t i = 0; i < 4; ++i) d_bits |= static_cast<uint32_t>(u16_at(block, 48 + 2 * i) >> 12) << (4 * i);
  const float d = f16_to_f32(static_cast<uint16_t>(d_bits));
  for (size_t g = 0; g < 32; ++g) {
    const uint16_t word = u16_at(block, 48 + g / 8 * 2);
    const float scale = d * static_cast<float>(1 + 2 * bits_at(word, g % 8 / 2 * 3, 3));
    const int high = bits_at(block[32 + g / 2], g % 2 * 4, 4);
    const float shift = (high & 8) != 0 ? -iq1_shift : iq1_shift;
    decode_shifted(block[g] | (high & 7) << 8, shift, scale, out.data() + 8 * g);
  }
}

constexpr std::array codebook_decoder_list = {
    blockwise<T::iq2_xxs, decode_iq2_xxs>(), blockwise<T::iq2_xs, decode_iq2_xs>(), blockwise<T::iq2_s, decode_iq2_s>(),
    blockwise<T::iq3_xxs, decode_iq3_xxs>(), blockwise<T::iq3_s, decode_iq3_s>(),   blockwise<T::iq1_s, decode_iq1_s>(),
    blockwise<T::iq1_m, decode_iq1_m>(),
};

}  // namespace

std::span<const Decoder> codebook_decoders() {
  return codebook_decoder_list;
}

}  // namespace canopy
