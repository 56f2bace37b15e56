#pragma once
// The arithmetic by which a token is drawn. CUDA kernels call these functions, shaders/sampling.glsl has the same ones
// under the same names, and all give the same bits on every device, so that a text depends neither on where its tokens
// were drawn nor on how.
//
// What decides is in integers: distances between logits, weights of probabilities, Gumbel noise. Logits are f32 and
// meet only single additions, subtractions and multiplications, each rounded to the nearest; there is no fma (Vulkan
// lets a device round twice in one) and no division (Vulkan lets it be wrong by units in the last place). Devices may
// take a denormal number for 0, so a logit nearer to 0 than 2^-125 counts as 0 before and after each step.
//
// Errors, as tests/speculation/sampling_arithmetic_test.cpp measures them: gumbel_noise 2^-23 nats, weight_at 2^-25
// relative and one unit. A probability is off by less than one part in 4 million.

#include <cstdint>

#include "engine/compute/sampling.h"
#include "engine/compute/shared_code.h"

namespace canopy {

/// 0 for what a device might flush to 0, else the same bits.
CANOPY_SHARED uint32_t settled(uint32_t bits) {
  return (bits & 0x7F800000u) <= 0x00800000u ? 0u : bits;
}
CANOPY_SHARED float settled(float x) {
  return float_of_bits(settled(bits_of_float(x)));
}

/// By the bits: devices need not keep NaN and infinities apart from numbers in what they compute.
CANOPY_SHARED bool is_finite(uint32_t bits) {
  return (bits & 0x7F800000u) != 0x7F800000u;
}

/// A logit after bias and penalties. `count`: how often the token is in the text so far, the path to the row included.
/// Repetition as in CTRL (Keskar et al. 2019, section 4.1), which scales towards "less likely" on both sides of 0;
/// presence and frequency as in OpenAI's interface. NaN and the infinities stay what they are. All but `logit` are
/// settled, and finite.
CANOPY_SHARED float adjusted_logit(float logit, float bias, uint32_t count, const SamplingWords& s) {
  if (!is_finite(bits_of_float(logit))) return logit;
  float x = settled(settled(logit) + bias);
  if (count == 0) return x;
  x = settled(x * (x > 0 ? s.inverse_repetition : s.repetition));
  const float product = settled(s.frequency * static_cast<float>(count));
  const float penalty = settled(s.presence + product);
  return settled(x - penalty);
}

/// How much less likely than the best logit another is, in units of 2^-24 nats.
CANOPY_SHARED uint32_t distance(float best, float logit, float inverse_temperature) {
  const float below = best - logit;
  const float nats = below * inverse_temperature;
  return nats < 64.0f ? static_cast<uint32_t>(nats * 16777216.0f) : kFarthest;
}

/// Upper halves of 64-bit products: floor(a * b / 2^32).
CANOPY_SHARED uint32_t high_product(uint32_t a, uint32_t b) {
  return static_cast<uint32_t>(uint64_t{a} * b >> 32);
}
CANOPY_SHARED int32_t high_product(int32_t a, int32_t b) {
  return static_cast<int32_t>(int64_t{a} * b >> 32);
}

/// 2^30 * log2(x / 2^31) for x >= 2^31: a polynomial in x / 2^31 - 3/2 through Chebyshev's nodes.
CANOPY_SHARED uint32_t log2_fraction(uint32_t x) {
  const auto g = static_cast<int32_t>((x << 1) ^ 0x80000000u);
  int32_t sum = 2184349;
  sum = high_product(sum, g) - 3588325;
  sum = high_product(sum, g) + 4311294;
  sum = high_product(sum, g) - 7286427;
  sum = high_product(sum, g) + 12974134;
  sum = high_product(sum, g) - 22701861;
  sum = high_product(sum, g) + 40797553;
  sum = high_product(sum, g) - 76495748;
  sum = high_product(sum, g) + 152995782;
  sum = high_product(sum, g) - 344240491;
  sum = high_product(sum, g) + 1032721336;
  sum = high_product(sum, g) + 628098703;
  return static_cast<uint32_t>(sum < 0 ? 0 : sum);
}

inline constexpr uint32_t kLn2 = 0xB17217F8u;         // in units of 2^-32
inline constexpr uint32_t kLog2E = 0xB8AA3B29u;       // of 2^-31
inline constexpr uint32_t kLargestWeight = 1u << 31;  // of a probability: that of the best, or a rounding error more

/// exp of a negative distance in units of 2^-31, rounded down; 0 from 22 nats on.
CANOPY_SHARED uint32_t weight_at(uint32_t distance) {
  if (distance >= 22 * kNat) return 0;
  const uint32_t exponent = high_product(distance << 3, kLog2E);  // of 1/2, in units of 2^-26
  const auto g = static_cast<int32_t>((exponent << 6) ^ 0x80000000u);
  int32_t sum = 117391;
  sum = high_product(sum, g) - 1017428;
  sum = high_product(sum, g) + 7302511;
  sum = high_product(sum, g) - 42140866;
  sum = high_product(sum, g) + 182392007;
  sum = high_product(sum, g) - 526272103;
  sum = high_product(sum, g) + 759250125;
  return static_cast<uint32_t>(sum) << 1 >> (exponent >> 26);
}

/// ceil(total * share / 2^32); total below 2^52.
CANOPY_SHARED uint64_t share_of(uint64_t total, uint32_t share) {
  const uint64_t low = (total & 0xFFFFFFFFu) * share;
  return (total >> 32) * share + (low >> 32) + ((low & 0xFFFFFFFFu) != 0 ? 1 : 0);
}

/// A number of 53 bits, an odd multiple of 2^-53 in (0, 1) or what is missing to 1.
struct Uniform {
  uint32_t high;  // 21 bits
  uint32_t low;
};

/// Of two random words.
CANOPY_SHARED Uniform uniform_of(uint32_t first, uint32_t second) {
  return {first >> 11, first << 21 | second >> 12 << 1 | 1u};
}

/// The number of bits behind the leading zeros, 1 ... 53.
CANOPY_SHARED uint32_t bit_count(Uniform u) {
  return u.high != 0 ? 64 - leading_zeros(u.high) : 32 - leading_zeros(u.low);
}

/// The first 32 bits behind the leading zeros; zeros behind the last.
CANOPY_SHARED uint32_t leading_bits(Uniform u) {
  const uint32_t zeros = leading_zeros(u.high);
  if (zeros == 32) return u.low << leading_zeros(u.low);
  return u.high << zeros | u.low >> (32 - zeros);
}

/// An upper bound of gumbel_noise of numbers with so many bits.
CANOPY_SHARED int32_t noise_at_most(uint32_t bits) {
  return static_cast<int32_t>(high_product((54 - bits) << 26, kLn2) >> 2) + 16;
}

/// -log(-log(1 - u)) in units of 2^-24 nats: noise with Gumbel's distribution, -3.7 ... 36.8 nats. Small u are noise
/// far up, so they are where it is finest.
CANOPY_SHARED int32_t gumbel_noise(Uniform u) {
  const uint32_t bits = bit_count(u);
  uint32_t mantissa;  // -log(1 - u) = mantissa * 2^(exponent - 31)
  int32_t exponent;
  if (bits < 50) {                                  // u < 1/16: u (1 + u/2 + u^2/3 + ...)
    const uint32_t x = u.high << 11 | u.low >> 21;  // u in units of 2^-32
    uint32_t rest = high_product(613566757u, x);
    rest = high_product(715827883u + rest, x);
    rest = high_product(858993459u + rest, x);
    rest = high_product(1073741824u + rest, x);
    rest = high_product(1431655765u + rest, x);
    rest = high_product(2147483648u + rest, x);
    mantissa = high_product(leading_bits(u), 0x80000000u + (rest >> 1));
    exponent = static_cast<int32_t>(bits) - 53;
  } else {
    // 1 - u by its own bits, so that it is exact.
    const Uniform left = {0x1FFFFFu - u.high, 0u - u.low};
    const uint32_t left_bits = bit_count(left);
    const uint32_t shift = left_bits >= 52 ? 30 : 26;  // the finest that has room
    const uint32_t log2 = ((54 - left_bits) << shift) - (log2_fraction(leading_bits(left)) >> (30 - shift));
    mantissa = high_product(log2, kLn2);
    exponent = 31 - static_cast<int32_t>(shift);
  }
  const uint32_t zeros = leading_zeros(mantissa);
  exponent -= static_cast<int32_t>(zeros);
  // 6 - log2(mantissa), which is positive, in units of 2^-26.
  const uint32_t log2 = (static_cast<uint32_t>(6 - exponent) << 26) - (log2_fraction(mantissa << zeros) >> 4);
  return static_cast<int32_t>(high_product(log2, kLn2) >> 2) - 69774480;  // 6 log 2
}

}  // namespace canopy
