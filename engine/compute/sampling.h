#pragma once
// How a token is drawn from a row of logits: the settings in buffers, the arithmetic and the random bits that give
// the same result on every device, and the sampler on the host that the op `sample` is defined by.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/compute/shared_code.h"

namespace canopy {

// What the op `sample` reads from buffers (shaders/sampling.glsl mirrors it). engine/speculation makes it of a user's
// settings and of the text so far.

/// Stands for a token where there is none.
inline constexpr uint32_t kNoToken = 0xFFFFFFFF;

/// Distances between logits, after the temperature, count in units of 2^-24 nats; farther than 64 nats is as far as 64.
inline constexpr uint32_t kNat = 1u << 24;
inline constexpr uint32_t kFarthest = 64 * kNat;

/// How a token is chosen, the same for all rows of a pass (uint32 x 16).
struct SamplingWords {
  float inverse_temperature = 0;  // 0: the largest logit wins, and no filter counts; else 2^-100 ... 2^100
  uint32_t top_k = 0;             // 0: off
  uint32_t top_p = 0;             // in units of 2^-32; 0: off
  uint32_t farthest = kNoToken;   // min-p: the largest distance from the best that stays; kNoToken: off
  uint32_t seed[2] = {0, 0};      // low word first, as in the next
  uint32_t turn[2] = {0, 0};      // number of the reply in the conversation
  uint32_t position = 0;          // in the reply, of the token that is drawn after a row without a parent
  float repetition = 1;           // penalties: see adjusted_logit()
  float inverse_repetition = 1;
  float presence = 0;
  float frequency = 0;
  uint32_t adjustments = 0;  // TokenAdjustments that count
  uint32_t unused[2] = {0, 0};
};
static_assert(sizeof(SamplingWords) == 64);

/// A token whose logit is adjusted: it is in the text so far, or has a bias, or both.
struct TokenAdjustment {
  uint32_t token = 0;
  uint32_t count = 0;  // of the token in the text so far, the path to a row not included
  float bias = 0;
};
static_assert(sizeof(TokenAdjustment) == 12);

/// A row after which a token is drawn.
struct SampledRow {
  /// Of the row itself. kNoToken, which only a row without a parent may have: none is drawn after it.
  uint32_t token = 0;
  /// Its parent's place in the list, before its own. kNoToken: the row's token is in the text so far.
  uint32_t parent = kNoToken;
};
static_assert(sizeof(SampledRow) == 8);

// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As Easy as
// 1, 2, 3" (SC'11). No state: the same counter and key always give the same four words.

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

/// Turns a counter into its random words, in place; the key is used up.
CANOPY_SHARED void philox4x32_words(uint32_t (&c)[4], uint32_t (&k)[2]) {
  constexpr uint32_t multiplier0 = 0xD2511F53u;
  constexpr uint32_t multiplier1 = 0xCD9E8D57u;
  constexpr uint32_t weyl0 = 0x9E3779B9u;  // golden ratio
  constexpr uint32_t weyl1 = 0xBB67AE85u;  // sqrt(3) - 1
  constexpr int rounds = 10;
  for (int round = 0; round < rounds; ++round) {
    const uint64_t p0 = uint64_t{multiplier0} * c[0];
    const uint64_t p1 = uint64_t{multiplier1} * c[2];
    c[0] = static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k[0];
    c[1] = static_cast<uint32_t>(p1);
    c[2] = static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k[1];
    c[3] = static_cast<uint32_t>(p0);
    k[0] += weyl0;
    k[1] += weyl1;
  }
}

inline PhiloxCounter philox4x32(PhiloxCounter c, PhiloxKey k) {
  uint32_t words[4] = {c[0], c[1], c[2], c[3]}, key[2] = {k[0], k[1]};
  philox4x32_words(words, key);
  return {words[0], words[1], words[2], words[3]};
}

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

inline constexpr uint32_t kLn2 = 0xB17217F8u;    // in units of 2^-32
inline constexpr uint32_t kLog2E = 0xB8AA3B29u;  // of 2^-31

/// exp of a negative distance in units of 2^-31, rounded down: the best has 2^31, or a rounding error less; 0 from 22
/// nats on.
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

// Draws a token from one row of logits: what the op `sample` is defined as (engine/compute/ops.h).

/// Keeps scratch memory between calls, so it belongs to one thread; no call depends on an earlier one.
class RowSampler {
 public:
  /// The token after a row of logits [vocab]; -inf bans one. kNoToken where an adjusted logit is NaN or +inf and where
  /// every token is banned. `adjustments` name no token twice and none outside the vocabulary; their counts include the
  /// path to the row. words.position is the position of the token that is drawn.
  ///
  /// Order: bias, penalties, temperature, top-k, top-p, min-p, then argmax(log p + G) with Gumbel noise G. top-k keeps
  /// the largest logits; top-p the fewest of them whose probabilities reach its share of what top-k kept. Ties go to
  /// the lowest id.
  uint32_t draw(std::span<const float> logits, const SamplingWords& words,
                std::span<const TokenAdjustment> adjustments);

  /// By how much the last draw preferred a to b, in nats: log p + G of one less that of the other, of logits where the
  /// likeliest is taken. Filters are left aside.
  double lead(uint32_t a, uint32_t b) const;

  /// The logits of the last draw after bias and penalties.
  std::span<const float> adjusted() const { return adjusted_; }

 private:
  struct Candidate {
    float logit = 0;
    uint32_t id = 0;
  };

  uint32_t distance_of(const Candidate& candidate) const;
  void keep_top_k();
  void keep_top_p();
  uint32_t draw_one() const;

  SamplingWords words_;
  float highest_ = 0;
  std::vector<float> adjusted_;        // [vocab]
  std::vector<Candidate> candidates_;  // what the filters have left, by id; the best is always there
};

}  // namespace canopy
