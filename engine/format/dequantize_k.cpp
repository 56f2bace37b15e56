// The K-quants: 256 elements under one or two half-precision scales d and dmin, in sub-blocks of 16 or 32 that have
// small integer scales s and minimums m of their own. Offsets in bytes; `e` is the index of an element, `j` runs
// within 32.
//
// Two- and three-bit quants are spread over two halves of 128 elements: in half h, bits 2k and 2k + 1 of byte 32 h + j
// belong to element 128 h + 32 k + j.

#include "engine/format/dequantize_block.h"
#include "engine/format/packed_scales.h"

namespace canopy {
namespace {

using T = TensorType;

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

// 0: d. 2: dmin. 4: eight s and m in 12 bytes (packed_scales.h). Then, in Q5_K, 32 bytes of fifth bits: bit k of byte j
// is bit 4 of element 32 k + j. Then the low four bits in 128 bytes; byte 32 p + j holds element 64 p + j in its low
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

constexpr std::array k_decoder_list = {
    blockwise<T::q2_k, decode_q2_k>(),
    blockwise<T::q3_k, decode_q3_k>(),
    blockwise<T::q4_k, decode_with_minimums<T::q4_k>>(),
    blockwise<T::q5_k, decode_with_minimums<T::q5_k>>(),
    blockwise<T::q6_k, decode_q6_k>(),
};

}  // namespace

std::span<const Decoder> k_decoders() {
  return k_decoder_list;
}

}  // namespace canopy
