// Formats whose four-bit codes are looked up in a table of 16 unevenly spaced levels. Offsets in bytes. Codes are split
// in the middle of a (sub-)block of 2 n elements: byte i holds element i in its low, element i + n in its high bits.

#include <bit>
#include <cmath>

#include "engine/format/dequantize_block.h"

namespace canopy {
namespace {

using T = TensorType;

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

constexpr std::array table_decoder_list = {
    blockwise<T::iq4_nl, decode_iq4_nl>(),
    blockwise<T::iq4_xs, decode_iq4_xs>(),
    blockwise<T::mxfp4, decode_mxfp4>(),
    blockwise<T::nvfp4, decode_nvfp4>(),
};

}  // namespace

std::span<const Decoder> table_decoders() {
  return table_decoder_list;
}

}  // namespace canopy
