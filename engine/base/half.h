#pragma once
// 16-bit floats as bit patterns. To float: exact, subnormals included. From float: round to nearest, ties to even;
// overflow becomes infinity; a NaN stays a (quiet) NaN with its sign.

#include <bit>
#include <cstdint>

namespace canopy {

constexpr float f16_to_f32(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1f;
  const uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  // Subnormal: mantissa * 2^-24, exact in float because the mantissa has 10 bits.
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return sign != 0 ? -magnitude : magnitude;
}

constexpr uint16_t f32_to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // 65520 and above round to infinity
  if (magnitude < 0x33000000u) return sign;                                    // below 2^-25: nearer to 0 than to 2^-24
  const uint32_t exponent = magnitude >> 23;
  uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
  // Normal halves (exponent at least 113) drop 13 bits; each step below drops one more.
  const uint32_t shift = exponent >= 113 ? 13 : 13 + (113 - exponent);
  const uint32_t half_unit = 1u << (shift - 1);
  const uint32_t odd = (mantissa >> shift) & 1u;
  mantissa = (mantissa + half_unit - 1 + odd) >> shift;
  // A normal's implicit bit is in `mantissa`, so one less goes into the exponent field; carries move up by themselves.
  const uint32_t biased = exponent >= 113 ? (exponent - 113) << 10 : 0;
  return static_cast<uint16_t>(sign | (biased + mantissa));
}

constexpr float bf16_to_f32(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

constexpr uint16_t f32_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace canopy
