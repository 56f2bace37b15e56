// Ternary formats: 256 elements, each -1, 0 or 1 times one half-precision scale d. Offsets in bytes.

#include "engine/format/dequantize_block.h"

namespace canopy {
namespace {

using T = TensorType;

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

constexpr std::array ternary_decoder_list = {blockwise<T::tq1_0, decode_tq1_0>(), blockwise<T::tq2_0, decode_tq2_0>()};

}  // namespace

std::span<const Decoder> ternary_decoders() {
  return ternary_decoder_list;
}

}  // namespace canopy
