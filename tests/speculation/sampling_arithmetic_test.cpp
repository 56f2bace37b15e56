// The arithmetic of the sampler against the same in double precision.

#include "engine/compute/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "engine/speculation/sampler.h"

namespace canopy {
namespace {

constexpr double unit = 1.0 / kNat;

uint64_t number_of(Uniform u) {
  return uint64_t{u.high} << 32 | u.low;
}
Uniform uniform_from(uint64_t number) {
  return {static_cast<uint32_t>(number >> 32), static_cast<uint32_t>(number)};
}
double exact_noise(Uniform u) {
  return -std::log(-std::log1p(-static_cast<double>(number_of(u)) * 0x1p-53));
}

// Every length of a number, its smallest and largest, and random ones.
template <class Visit>
void for_uniforms(int per_length, const Visit& visit) {
  std::mt19937_64 random(1);
  for (uint32_t bits = 1; bits <= 53; ++bits) {
    const uint64_t lowest = uint64_t{1} << (bits - 1);
    visit(uniform_from(lowest | 1), bits);
    visit(uniform_from(2 * lowest - 1), bits);
    for (int i = 0; i < per_length; ++i) visit(uniform_from(lowest | (random() & (lowest - 1)) | 1), bits);
  }
}

TEST(SamplingArithmetic, NumbersAreMadeOfTheFirst52Bits) {
  EXPECT_EQ(number_of(uniform_of(0, 0xFFF)), 1u);
  EXPECT_EQ(number_of(uniform_of(0xFFFFFFFF, 0xFFFFFFFF)), (uint64_t{1} << 53) - 1);
  EXPECT_EQ(number_of(uniform_of(0x80000001, 0x12345678)), (uint64_t{0x8000000112345} << 1) | 1);
}

TEST(SamplingArithmetic, BitsAreCountedBehindTheLeadingZeros) {
  for_uniforms(100, [](Uniform u, uint32_t bits) {
    ASSERT_EQ(bit_count(u), bits);
    const uint64_t number = number_of(u);
    ASSERT_EQ(leading_bits(u), static_cast<uint32_t>(bits > 32 ? number >> (bits - 32) : number << (32 - bits)));
  });
}

TEST(SamplingArithmetic, LogarithmsAreExactToTheirLastBits) {
  double worst = 0;
  for (uint64_t x = uint64_t{1} << 31; x < uint64_t{1} << 32; x += 10007) {
    const double exact = std::log2(static_cast<double>(x) * 0x1p-31);
    worst = std::max(worst, std::abs(log2_fraction(static_cast<uint32_t>(x)) * 0x1p-30 - exact));
  }
  EXPECT_LT(worst, 0x1p-28);
  EXPECT_LE(log2_fraction(0xFFFFFFFF), 1u << 30);
  EXPECT_LE(log2_fraction(0x80000000), 4u);
}

TEST(SamplingArithmetic, NoiseIsGumbelsToAFewUnits) {
  double worst = 0;
  for_uniforms(
      20000, [&](Uniform u, uint32_t) { worst = std::max(worst, std::abs(gumbel_noise(u) * unit - exact_noise(u))); });
  RecordProperty("worst_units", std::to_string(worst / unit));
  EXPECT_LT(worst, 2 * unit);
  EXPECT_NEAR(gumbel_noise(uniform_from(1)) * unit, 53 * std::log(2), 1e-6);
  EXPECT_NEAR(gumbel_noise(uniform_from((uint64_t{1} << 53) - 1)) * unit, -std::log(53 * std::log(2)), 1e-6);
}

TEST(SamplingArithmetic, TheBoundOfNoiseHoldsAndIsTight) {
  for_uniforms(20000, [](Uniform u, uint32_t bits) {
    ASSERT_LE(gumbel_noise(u), noise_at_most(bits));
    ASSERT_GE(gumbel_noise(u) * unit, noise_at_most(bits) * unit - (bits < 50 ? 0.8 : 5.0));
  });
}

TEST(SamplingArithmetic, WeightsAreProbabilities) {
  double worst = 0;
  std::mt19937 random(2);
  for (int i = 0; i < 1'000'000; ++i) {
    const uint32_t far = random() % (22 * kNat);
    const double exact = std::exp(-unit * far) * 0x1p31;
    worst = std::max(worst, (std::abs(weight_at(far) - exact) - 1) / exact);
  }
  EXPECT_LT(worst, 0x1p-25);
  constexpr uint32_t largest = 1u << 31;
  EXPECT_NEAR(weight_at(0), largest, 8);
  EXPECT_LE(weight_at(0), largest);
  EXPECT_LE(weight_at(1), largest);
  EXPECT_EQ(weight_at(22 * kNat), 0u);
  EXPECT_EQ(weight_at(kFarthest), 0u);
}

TEST(SamplingArithmetic, DistancesStopAtTheFarthest) {
  EXPECT_EQ(distance(3.0f, 1.0f, 1.0f), 2 * kNat);
  EXPECT_EQ(distance(3.0f, 1.0f, 2.0f), 4 * kNat);
  EXPECT_EQ(distance(3.0f, 3.0f, 0x1p100f), 0u);
  EXPECT_EQ(distance(0.0f, -64.0f, 1.0f), kFarthest);
  EXPECT_EQ(distance(3e38f, -3e38f, 1.0f), kFarthest) << "the difference overflows";
  EXPECT_EQ(distance(3e38f, -3e38f, 0x1p-100f), kFarthest) << "the difference overflows";
}

TEST(SamplingArithmetic, WhatADeviceMayFlushCountsAsZero) {
  EXPECT_EQ(std::bit_cast<uint32_t>(settled(-0.0f)), 0u);
  EXPECT_EQ(settled(1e-45f), 0.0f);
  EXPECT_EQ(settled(-0x1p-126f), 0.0f);
  EXPECT_EQ(settled(0x1.fffffep-126f), 0.0f);
  EXPECT_EQ(settled(-0x1p-125f), -0x1p-125f);
  EXPECT_EQ(settled(-HUGE_VALF), -HUGE_VALF);
  EXPECT_TRUE(std::isnan(settled(std::numeric_limits<float>::quiet_NaN())));
  SamplingWords words;
  words.repetition = 0x1p-100f;
  words.inverse_repetition = 0x1p100f;
  EXPECT_EQ(adjusted_logit(-0x1p-26f, 0, 1, words), 0.0f);
  EXPECT_EQ(adjusted_logit(-0x1p-25f, 0, 1, words), -0x1p-125f);
}

TEST(SamplingWords, HaveTheirRangesWhateverTheSettings) {
  SamplingSettings settings;
  EXPECT_EQ(sampling_words(settings).inverse_temperature, 0.0f);
  EXPECT_EQ(sampling_words(settings).farthest, kNoToken);
  settings.temperature = 1e-45f;
  EXPECT_EQ(sampling_words(settings).inverse_temperature, 0x1p100f);
  settings.temperature = 3e38f;
  EXPECT_EQ(sampling_words(settings).inverse_temperature, 0x1p-100f);
  settings.top_p = 1e-45f;
  EXPECT_EQ(sampling_words(settings).top_p, 1u);
  settings.top_p = 0x1.fffffep-1f;
  EXPECT_EQ(sampling_words(settings).top_p, 0xFFFFFF00u);
  settings.repetition_penalty = 1e-45f;
  EXPECT_EQ(sampling_words(settings).inverse_repetition, 0x1p126f);
  settings.repetition_penalty = 3e38f;
  EXPECT_EQ(sampling_words(settings).inverse_repetition, 0x1p-126f);
  for (const float min_p : {0.999999f, 0.5f, 0.3f, 0.05f, 1e-6f, 1e-45f}) {
    settings.min_p = min_p;
    EXPECT_NEAR(sampling_words(settings).farthest * unit, -std::log(static_cast<double>(min_p)), 3 * unit) << min_p;
  }
}

TEST(TokenAdjustments, CountTheTextAndKeepBiases) {
  SamplingSettings settings;
  settings.logit_bias = {{7, 1.0f}, {2, -1.0f}, {7, 0.5f}};
  TokenAdjustments none(settings, 10);
  none.add(3);
  none.add(std::vector<uint32_t>{1, 2});
  ASSERT_EQ(none.all().size(), 2u) << "no penalty counts";
  EXPECT_EQ(none.all()[1].bias, 1.5f);
  settings.presence_penalty = 1;
  TokenAdjustments one_by_one(settings, 10), at_once(settings, 10);
  const std::vector<uint32_t> text = {9, 2, 9, 0, 4, 2, 11, 9, 0xFFFFFFFF};
  at_once.add(std::span(text).first(4));
  at_once.add(std::span(text).subspan(4));
  for (const uint32_t token : text) one_by_one.add(token);
  const std::vector<std::pair<uint32_t, uint32_t>> expected = {{0, 1}, {2, 2}, {4, 1}, {7, 0}, {9, 3}};
  for (const TokenAdjustments* adjustments : {&one_by_one, &at_once}) {
    ASSERT_EQ(adjustments->all().size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(adjustments->all()[i].token, expected[i].first);
      EXPECT_EQ(adjustments->all()[i].count, expected[i].second);
    }
    EXPECT_EQ(adjustments->all()[1].bias, -1.0f);
  }
  at_once.clear();
  EXPECT_EQ(at_once.all().size(), 2u);
}

}  // namespace
}  // namespace canopy
