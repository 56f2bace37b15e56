#pragma once
// Functions that a library has too, whose bits differ there from version to version and from system to system. These
// are sums and products of doubles in a fixed order, and so the same everywhere; some 1e-15 off.

#include <bit>
#include <cstdint>

namespace canopy::cpu {

/// 0 below -700; infinity above 700.
inline double fixed_exp(double x) {
  if (x != x) return x;
  if (x < -700) return 0;
  if (x > 700) return std::bit_cast<double>(uint64_t{0x7FF} << 52);
  const double shift = 0x1.8p52;
  const double n = (x * 1.4426950408889634 + shift) - shift;
  const double r = (x - n * 0x1.62e42fee00000p-1) - n * 1.9082149292705877e-10;
  double sum = 1;
  for (int i = 14; i >= 1; --i) sum = 1 + sum * r / i;
  const auto exponent = static_cast<uint64_t>(static_cast<int64_t>(n) + 1023);
  return sum * std::bit_cast<double>(exponent << 52);
}

/// Of a NaN, or of x > 0 and finite.
inline double fixed_log(double x) {
  if (x != x) return x;
  double n = 0;
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  n = static_cast<double>(static_cast<int64_t>(bits >> 52) - 1023);
  double m = std::bit_cast<double>((bits & 0xFFFFFFFFFFFFFull) | uint64_t{1023} << 52);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    n += 1;
  }
  const double z = (m - 1) / (m + 1), zz = z * z;
  double series = 0;
  for (int i = 25; i >= 1; i -= 2) series = series * zz + 1.0 / i;
  return n * 0.69314718055994531 + 2 * z * series;
}

/// log(1 + exp(x)).
inline double fixed_softplus(double x) {
  if (x > 40 || x != x) return x;
  const double e = fixed_exp(x);
  // Near 0 the sum 1 + e has lost what e is: its logarithm is e then.
  return e < 1e-9 ? e : fixed_log(1 + e);
}

}  // namespace canopy::cpu
