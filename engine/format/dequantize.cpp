#include "engine/format/dequantize.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/format/codebooks.h"

namespace canopy {

namespace {

using T = TensorType;

/// The decoder of a type. It decodes a run of blocks at a time, so that an indirect call is made once for a tensor and
/// never for an element.
struct Decoder {
  TensorType type;
  /// Fills `out`, which is whole blocks; `blocks` holds exactly their bytes.
  void (*decode)(std::span<const std::byte> blocks, std::span<float> out);
};

/// A Decoder from a function that decodes one block, which is inlined into the loop.
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

// Plain elements, and blocks of 32 with one scale. Offsets in bytes; d and m are halves; q[i] belongs to element i.
// The 4-bit quants of a block are split in the middle: byte i of them holds q[i] in its low, q[i + 16] in its high
// bits.

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

// The K-quants: 256 elements under one or two half-precision scales d and dmin, in sub-blocks of 16 or 32 that have
// small integer scales s and minimums m of their own. Offsets in bytes; `e` is the index of an element, `j` runs
// within 32.
//
// Two- and three-bit quants are spread over two halves of 128 elements: in half h, bits 2k and 2k + 1 of byte 32 h + j
// belong to element 128 h + 32 k + j.

// 0: 16 bytes, one a sub-block of 16: s in the low, m in the high four bits. 16: q, two bits each, in 64 bytes.
// 80: d. 82: dmin.   x = (d s) q - dmin m
void decode_q2_k(const BlockOf<T::q2_k>& block, ElementsOf<T::q2_k> out) {
  const float d = f16_at(block, 80);
  const float dmin = f16_at(block, 82);
  for (size_t sub = 0; sub < 16; ++sub) {
    const float scale = d * static_cast<float>(low_nibble(block[sub]));
    const float minimum = dmin * static_cast<float>(high_nibble(block[sub]));
    const size_t half = sub / 8;
    const size_t shift = sub % 8 / 2 * 2;
    const size_t quants = 16 + 32 * half + sub % 2 * 16;
    for (size_t i = 0; i < 16; ++i) {
      out[16 * sub + i] = scale * static_cast<float>(bits_at(block[quants + i], shift, 2)) - minimum;
    }
  }
}

/// The signed scale of sub-block `sub` of 16 in Q3_K's 12 bytes from `at`: six bits, less 32. The low four bits are
/// in the nibbles of the first eight bytes (first all low ones, then all high ones), the high two in the last four.
int q3_k_scale(const BlockOf<T::q3_k>& block, size_t at, size_t sub) {
  const int low = bits_at(block[at + sub % 8], sub / 8 * 4, 4);
  const int high = bits_at(block[at + 8 + sub % 4], sub / 4 * 2, 2);
  return (low | high << 4) - 32;
}

// 0: 32 bytes; bit 4 h + k of byte j is the high bit of element 128 h + 32 k + j. 32: the low two bits in 64 bytes.
// 96: the 16 scales s in 12 bytes. 108: d.   x = (d s) (q - 4), q of three bits
void decode_q3_k(const BlockOf<T::q3_k>& block, ElementsOf<T::q3_k> out) {
  const float d = f16_at(block, 108);
  for (size_t sub = 0; sub < 16; ++sub) {
    const float scale = d * static_cast<float>(q3_k_scale(block, 96, sub));
    const size_t half = sub / 8;
    const size_t shift = sub % 8 / 2 * 2;
    const size_t within = sub % 2 * 16;
    for (size_t i = 0; i < 16; ++i) {
      const int low = bits_at(block[32 + 32 * half + within + i], shift, 2);
      const int high = bits_at(block[within + i], sub / 2, 1);
      out[16 * sub + i] = scale * static_cast<float>((low | high << 2) - 4);
    }
  }
}

// 0: d. 2: dmin. 4: eight s and m in 12 bytes (ScalesAndMinimums). Then, in Q5_K, 32 bytes of fifth bits: bit k of byte
// j is bit 4 of element 32 k + j. Then the low four bits in 128 bytes; byte 32 p + j holds element 64 p + j in its low
// and 64 p + 32 + j in its high half.   x = (d s) q - dmin m, sub-blocks of 32
template <TensorType type>
void decode_with_minimums(const BlockOf<type>& block, ElementsOf<type> out) {
  constexpr bool has_fifth_bits = type == T::q5_k;
  const float d = f16_at(block, 0);
  const float dmin = f16_at(block, 2);
  const ScalesAndMinimums packed = unpack_scales(std::span(block).template subspan<4, 12>());
  for (size_t sub = 0; sub < 8; ++sub) {
    const float scale = d * static_cast<float>(packed.scales[sub]);
    const float minimum = dmin * static_cast<float>(packed.minimums[sub]);
    const size_t quants = (has_fifth_bits ? 48 : 16) + sub / 2 * 32;
    for (size_t j = 0; j < 32; ++j) {
      int q = bits_at(block[quants + j], sub % 2 * 4, 4);
      if constexpr (has_fifth_bits) q |= bits_at(block[16 + j], sub, 1) << 4;
      out[32 * sub + j] = scale * static_cast<float>(q) - minimum;
    }
  }
}

// 0: the low four bits in 128 bytes; in half h, byte 64 h + 32 k + j holds element 128 h + 32 k + j in its low and
// 128 h + 32 (k + 2) + j in its high four bits, k < 2. 128: the high two bits in 64 bytes, spread as above.
// 192: 16 signed bytes s, one a sub-block of 16. 208: d.   x = (d s) (q - 32), q of six bits
void decode_q6_k(const BlockOf<T::q6_k>& block, ElementsOf<T::q6_k> out) {
  const float d = f16_at(block, 208);
  for (size_t sub = 0; sub < 16; ++sub) {
    const float scale = d * static_cast<float>(static_cast<int8_t>(block[192 + sub]));
    const size_t half = sub / 8;
    const size_t quarter = sub % 8 / 2;  // k above
    const size_t within = sub % 2 * 16;
    const size_t low_bits = 64 * half + quarter % 2 * 32 + within;
    const size_t high_bits = 128 + 32 * half + within;
    for (size_t i = 0; i < 16; ++i) {
      const int low = bits_at(block[low_bits + i], quarter / 2 * 4, 4);
      const int high = bits_at(block[high_bits + i], quarter * 2, 2);
      out[16 * sub + i] = scale * static_cast<float>((low | high << 4) - 32);
    }
  }
}

// Formats whose four-bit codes are looked up in a table of 16 unevenly spaced levels. Offsets in bytes. Codes are split
// in the middle of a (sub-)block of 2 n elements: byte i holds element i in its low, element i + n in its high bits.

/// Levels of IQ4_NL and IQ4_XS: denser around zero, where most weights are.
constexpr std::array<float, 16> nonlinear_levels = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                    1,    13,   25,  38,  53,  69,  89,  113};

/// Twice the values of E2M1 (a sign, two bits of exponent, one of mantissa), to go with half the scale. Its minus zero
/// is read as plus zero.
constexpr std::array<float, 16> doubled_e2m1 = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// Half of an E8M0 scale: the byte is an exponent with a bias of 127, so half of it is 2^(byte - 128); the smallest two
/// are subnormal. 255, which the OCP specification reserves for NaN, is the next power of two here as in ggml.
float half_of_e8m0(uint8_t exponent) {
  if (exponent < 2) return std::bit_cast<float>(uint32_t{0x00200000} << exponent);
  return std::bit_cast<float>((uint32_t{exponent} - 1) << 23);
}

/// Half of an unsigned E4M3 scale: bits 3-6 are the exponent with a bias of 7, bits 0-2 the mantissa, bit 7 means
/// nothing. The code of NaN, 127, is read as zero.
float half_of_ue4m3(uint8_t code) {
  if (code == 0x7f) return 0;
  const int exponent = bits_at(code, 3, 4);
  const auto mantissa = static_cast<float>(bits_at(code, 0, 3));
  if (exponent == 0) return mantissa * 0x1p-10f;
  return std::ldexp(1 + mantissa / 8, exponent - 8);
}

// 0: d, a half. 2: codes of 32 elements.   x = d level
void decode_iq4_nl(const BlockOf<T::iq4_nl>& block, ElementsOf<T::iq4_nl> out) {
  const float d = f16_at(block, 0);
  for (size_t i = 0; i < 16; ++i) {
    out[i] = d * nonlinear_levels[block[2 + i] & 0xf];
    out[i + 16] = d * nonlinear_levels[block[2 + i] >> 4];
  }
}

// Eight sub-blocks of 32 with a six-bit scale s. 0: d, a half. 2: 16-bit word, bits 2 k and 2 k + 1 are the high bits
// of s[k]. 4: four bytes, the low four bits of s, s[k] in nibble k % 2 of byte k / 2. 8: codes.   x = (d (s - 32))
// level
void decode_iq4_xs(const BlockOf<T::iq4_xs>& block, ElementsOf<T::iq4_xs> out) {
  const float d = f16_at(block, 0);
  const uint16_t high_bits = u16_at(block, 2);
  for (size_t sub = 0; sub < 8; ++sub) {
    const int low = bits_at(block[4 + sub / 2], sub % 2 * 4, 4);
    const int high = bits_at(high_bits, 2 * sub, 2);
    const float scale = d * static_cast<float>((low | high << 4) - 32);
    const uint8_t* codes = block.data() + 8 + 16 * sub;
    float* x = out.data() + 32 * sub;
    for (size_t i = 0; i < 16; ++i) {
      x[i] = scale * nonlinear_levels[codes[i] & 0xf];
      x[i + 16] = scale * nonlinear_levels[codes[i] >> 4];
    }
  }
}

// 0: scale, E8M0. 1: codes of 32 elements, E2M1.   x = scale code
void decode_mxfp4(const BlockOf<T::mxfp4>& block, ElementsOf<T::mxfp4> out) {
  const float scale = half_of_e8m0(block[0]);
  for (size_t i = 0; i < 16; ++i) {
    out[i] = scale * doubled_e2m1[block[1 + i] & 0xf];
    out[i + 16] = scale * doubled_e2m1[block[1 + i] >> 4];
  }
}

// Four sub-blocks of 16. 0: four scales, unsigned E4M3. 4: codes, E2M1, eight bytes a sub-block.   x = scale code
void decode_nvfp4(const BlockOf<T::nvfp4>& block, ElementsOf<T::nvfp4> out) {
  for (size_t sub = 0; sub < 4; ++sub) {
    const float scale = half_of_ue4m3(block[sub]);
    const uint8_t* codes = block.data() + 4 + 8 * sub;
    float* x = out.data() + 16 * sub;
    for (size_t i = 0; i < 8; ++i) {
      x[i] = scale * doubled_e2m1[codes[i] & 0xf];
      x[i + 8] = scale * doubled_e2m1[codes[i] >> 4];
    }
  }
}

// Ternary formats: 256 elements, each -1, 0 or 1 times one half-precision scale d. Offsets in bytes.

/// Digit n, most significant first, of a byte that holds a fraction in base 3: byte / 256 = 0.t0 t1 t2 ... Multiplying
/// by 3^n modulo 256 drops the digits in front of it, and times 3 moves it before the point.
int ternary_digit(uint8_t byte, uint8_t power_of_three) {
  const auto fraction = static_cast<uint8_t>(byte * power_of_three);
  return fraction * 3 >> 8;
}

/// Decodes `bytes`, `digits` elements a byte; digit n of byte j is element n * bytes.size() + j of `out`.
void decode_ternary_bytes(std::span<const uint8_t> bytes, size_t digits, float d, float* out) {
  uint8_t power = 1;
  for (size_t n = 0; n < digits; ++n, power = static_cast<uint8_t>(power * 3)) {
    for (size_t j = 0; j < bytes.size(); ++j) {
      out[n * bytes.size() + j] = d * static_cast<float>(ternary_digit(bytes[j], power) - 1);
    }
  }
}

// Digits of base 3. 0: 32 bytes of five for elements 0-159. 32: 16 bytes of five for 160-239. 48: 4 bytes of four for
// 240-255. 52: d.   x = d (digit - 1)
void decode_tq1_0(const BlockOf<T::tq1_0>& block, ElementsOf<T::tq1_0> out) {
  const float d = f16_at(block, 52);
  const std::span bytes(block);
  decode_ternary_bytes(bytes.subspan<0, 32>(), 5, d, out.data());
  decode_ternary_bytes(bytes.subspan<32, 16>(), 5, d, out.data() + 160);
  decode_ternary_bytes(bytes.subspan<48, 4>(), 4, d, out.data() + 240);
}

// 0: 64 bytes; bits 2 k and 2 k + 1 of byte 32 h + j belong to element 128 h + 32 k + j. 64: d.   x = d (q - 1)
// (q = 3 does not occur in files that were quantized properly; it gives 2 d.)
void decode_tq2_0(const BlockOf<T::tq2_0>& block, ElementsOf<T::tq2_0> out) {
  const float d = f16_at(block, 64);
  for (size_t group = 0; group < 8; ++group) {
    const size_t half = group / 4;
    const size_t shift = group % 4 * 2;
    for (size_t j = 0; j < 32; ++j) {
      out[32 * group + j] = d * static_cast<float>(bits_at(block[32 * half + j], shift, 2) - 1);
    }
  }
}

// Formats that store groups of magnitudes as indices into a codebook (codebooks.h), and signs apart. Blocks
// of 256 elements in eight parts of 32, under one half-precision scale d. Offsets in bytes; group g has 8 or 4
// elements.
//
// A byte of signs holds the sign of element i of its group in bit i, 1 for minus. Where only seven bits are stored, the
// eighth is such that the number of minuses is even.

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

constexpr std::array decoders = {
    blockwise<T::f32, decode_f32>(),
    blockwise<T::f16, decode_f16>(),
    blockwise<T::bf16, decode_bf16>(),
    blockwise<T::q4_0, decode_q4_0>(),
    blockwise<T::q4_1, decode_q4_1>(),
    blockwise<T::q5_0, decode_q5_0>(),
    blockwise<T::q5_1, decode_q5_1>(),
    blockwise<T::q8_0, decode_q8_0>(),
    blockwise<T::q2_k, decode_q2_k>(),
    blockwise<T::q3_k, decode_q3_k>(),
    blockwise<T::q4_k, decode_with_minimums<T::q4_k>>(),
    blockwise<T::q5_k, decode_with_minimums<T::q5_k>>(),
    blockwise<T::q6_k, decode_q6_k>(),
    blockwise<T::iq4_nl, decode_iq4_nl>(),
    blockwise<T::iq4_xs, decode_iq4_xs>(),
    blockwise<T::mxfp4, decode_mxfp4>(),
    blockwise<T::nvfp4, decode_nvfp4>(),
    blockwise<T::tq1_0, decode_tq1_0>(),
    blockwise<T::tq2_0, decode_tq2_0>(),
    blockwise<T::iq2_xxs, decode_iq2_xxs>(),
    blockwise<T::iq2_xs, decode_iq2_xs>(),
    blockwise<T::iq2_s, decode_iq2_s>(),
    blockwise<T::iq3_xxs, decode_iq3_xxs>(),
    blockwise<T::iq3_s, decode_iq3_s>(),
    blockwise<T::iq1_s, decode_iq1_s>(),
    blockwise<T::iq1_m, decode_iq1_m>(),
};

const Decoder* find_decoder(TensorType type) {
  const auto found = std::ranges::find(decoders, type, &Decoder::type);
  return found == decoders.end() ? nullptr : &*found;
}

}  // namespace

bool can_dequantize(TensorType type) {
  return find_decoder(type) != nullptr;
}

std::string dequantizable_types() {
  std::string names;
  for (const Decoder& decoder : decoders) {
    names += (names.empty() ? "" : ", ") + std::string(to_string(decoder.type));
  }
  return names;
}

void dequantize(TensorType type, std::span<const std::byte> blocks, std::span<float> out) {
  const Decoder* decoder = find_decoder(type);
  if (decoder == nullptr) {
    throw bad_input("Elements of type " + std::string(to_string(type)) +
                    " cannot be decoded; supported types: " + dequantizable_types() + ".");
  }
  const uint64_t needed = tensor_bytes(type, out.size(), "output");
  if (blocks.size() != needed) {
    throw bad_input("Decoding " + std::to_string(out.size()) + " elements of type " + std::string(to_string(type)) +
                    " takes " + std::to_string(needed) + " bytes, but " + std::to_string(blocks.size()) +
                    " were given.");
  }
  decoder->decode(blocks, out);
}

namespace {

/// The offsets in a block of the f16 values that multiply or offset its codes.
struct ScalesAt {
  TensorType type;
  uint32_t first;
  uint32_t second;  // the same as `first` where there is one
};

constexpr std::array scales_at = std::to_array<ScalesAt>({
    {T::f16, 0, 0},      {T::q4_0, 0, 0},   {T::q4_1, 0, 2},     {T::q5_0, 0, 0},    {T::q5_1, 0, 2},
    {T::q8_0, 0, 0},     {T::q2_k, 80, 82}, {T::q3_k, 108, 108}, {T::q4_k, 0, 2},    {T::q5_k, 0, 2},
    {T::q6_k, 208, 208}, {T::iq4_nl, 0, 0}, {T::iq4_xs, 0, 0},   {T::tq1_0, 52, 52}, {T::tq2_0, 64, 64},
    {T::iq2_xxs, 0, 0},  {T::iq2_xs, 0, 0}, {T::iq2_s, 0, 0},    {T::iq3_xxs, 0, 0}, {T::iq3_s, 0, 0},
    {T::iq1_s, 0, 0},
});

template <class Word>
Word word_at(std::span<const std::byte> bytes, uint64_t at) {
  Word word = 0;
  std::memcpy(&word, bytes.data() + at, sizeof word);
  return word;
}

/// Infinity and NaN are the floats whose exponent is all ones.
template <class Word>
bool has_full_exponent(Word word, Word exponent) {
  return (word & exponent) == exponent;
}

/// The first of `count` blocks for which the predicate holds. Runs without a branch out of the inner loop: almost no
/// file has such a block.
template <class IsBad>
std::optional<uint64_t> first_block(uint64_t count, IsBad is_bad) {
  constexpr uint64_t run = 4096;
  for (uint64_t begin = 0; begin < count; begin += run) {
    const uint64_t end = std::min(count, begin + run);
    bool any = false;
    for (uint64_t block = begin; block < end; ++block) any |= is_bad(block);
    if (!any) continue;
    for (uint64_t block = begin;; ++block) {
      if (is_bad(block)) return block;
    }
  }
  return std::nullopt;
}

std::optional<uint64_t> first_by_scales(const ScalesAt& at, uint64_t block_bytes, std::span<const std::byte> blocks) {
  constexpr uint16_t exponent = 0x7c00;
  return first_block(blocks.size() / block_bytes, [&](uint64_t block) {
    return has_full_exponent(word_at<uint16_t>(blocks, block * block_bytes + at.first), exponent) ||
           has_full_exponent(word_at<uint16_t>(blocks, block * block_bytes + at.second), exponent);
  });
}

/// Formats that are rare or pack their scales oddly: by their decoded elements.
std::optional<uint64_t> first_by_decoding(TensorType type, std::span<const std::byte> blocks) {
  const TensorTypeInfo& info = tensor_type_info(type);
  std::vector<float> values(info.block_elements);
  for (uint64_t block = 0; block < blocks.size() / info.block_bytes; ++block) {
    dequantize(type, blocks.subspan(block * info.block_bytes, info.block_bytes), values);
    if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); })) return block;
  }
  return std::nullopt;
}

}  // namespace

std::optional<uint64_t> first_block_not_finite(TensorType type, std::span<const std::byte> blocks) {
  const uint64_t block_bytes = tensor_type_info(type).block_bytes;
  const auto found = std::ranges::find(scales_at, type, &ScalesAt::type);
  if (found != scales_at.end()) return first_by_scales(*found, block_bytes, blocks);
  if (type == T::f32) {
    return first_block(blocks.size() / block_bytes,
                       [&](uint64_t i) { return has_full_exponent(word_at<uint32_t>(blocks, 4 * i), 0x7f800000u); });
  }
  if (type == T::bf16) {
    return first_block(blocks.size() / block_bytes, [&](uint64_t i) {
      return has_full_exponent(word_at<uint16_t>(blocks, 2 * i), uint16_t{0x7f80});
    });
  }
  if (type == T::mxfp4) {
    // 2^126 and more times the largest code, 6, is beyond a float; 255 is NaN by the OCP specification.
    return first_block(blocks.size() / block_bytes,
                       [&](uint64_t i) { return word_at<uint8_t>(blocks, 17 * i) >= 253; });
  }
  return first_by_decoding(type, blocks);
}

void require_finite(const TensorView& tensor, uint64_t first, uint64_t count) {
  if (count == 0) return;
  std::vector<std::byte> scratch;
  require_finite(tensor, first, rows_of(tensor, first, count, scratch));
}

void require_finite(const TensorView& tensor, uint64_t first, std::span<const std::byte> rows) {
  const TensorTypeInfo& info = tensor_type_info(tensor.type);
  const auto bad = first_block_not_finite(tensor.type, rows);
  if (!bad) return;
  throw bad_input("Row " + std::to_string(first + *bad * info.block_elements / tensor.cols()) + " of the tensor " +
                  quoted_name(tensor.shown_name()) + " of type " + std::string(to_string(tensor.type)) + " holds " +
                  (info.block_elements > 1 ? "a block whose scale" : "an element that") +
                  " is infinite or not a number: the file is damaged.");
}

}  // namespace canopy
