#pragma once
// Numbers: size arithmetic that cannot wrap, 16-bit floats, and the types that keys and values may be kept in.

#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/error.h"

namespace canopy {

// Size arithmetic on numbers that came from a file or a user. The check comes before the operation, so no wrapped
// product or sum ever exists; `what` names the quantity in the message.

/// a * b; throws bad_input naming `what` and both factors when T cannot hold it.
template <std::unsigned_integral T>
constexpr T checked_mul(T a, T b, std::string_view what) {
  if (b == 0 || a <= std::numeric_limits<T>::max() / b) return static_cast<T>(a * b);
  throw bad_input("The " + std::string(what) + " overflows: " + std::to_string(a) + " times " + std::to_string(b) +
                  " is more than " + std::to_string(std::numeric_limits<T>::max()) + ".");
}

/// a + b; throws bad_input naming `what` and both terms when T cannot hold it.
template <std::unsigned_integral T>
constexpr T checked_add(T a, T b, std::string_view what) {
  if (a <= std::numeric_limits<T>::max() - b) return static_cast<T>(a + b);
  throw bad_input("The " + std::string(what) + " overflows: " + std::to_string(a) + " plus " + std::to_string(b) +
                  " is more than " + std::to_string(std::numeric_limits<T>::max()) + ".");
}

/// value as a To; throws bad_input naming `what` when To cannot hold it.
template <std::integral To, std::integral From>
constexpr To checked_cast(From value, std::string_view what) {
  if (std::in_range<To>(value)) return static_cast<To>(value);
  throw bad_input("The " + std::string(what) + " is " + std::to_string(value) + ", outside the range " +
                  std::to_string(std::numeric_limits<To>::min()) + " to " +
                  std::to_string(std::numeric_limits<To>::max()) + ".");
}

/// The smallest multiple of `alignment` (not 0) that is at least `value`.
template <std::unsigned_integral T>
constexpr T checked_align_up(T value, T alignment, std::string_view what) {
  const T rest = value % alignment;
  return rest == 0 ? value : checked_add(value, static_cast<T>(alignment - rest), what);
}

// 16-bit floats as bit patterns. To float: exact, subnormals included. From float: round to nearest, ties to even;
// overflow becomes infinity; a NaN stays a (quiet) NaN with its sign.

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

// The types that keys and values may be kept in, and their names in options, settings and files.

/// Element type of the K/V cache. q8_0: 32 neighbouring elements of a head share a scale, a half, and take a byte each.
enum class CacheType : uint32_t { f32, f16, q8_0 };
inline constexpr std::array kCacheTypes = {CacheType::f32, CacheType::f16, CacheType::q8_0};

const char* to_string(CacheType type);  // "f16"

/// The type of that name; nothing where there is none.
std::optional<CacheType> cache_type_from(std::string_view name);
/// The same for a name that a caller has checked, as the options of a command line are. Throws bad_input with the names
/// that are allowed.
CacheType checked_cache_type(std::string_view name);

}  // namespace canopy
