// Quantizing and decoding again: the size of the error, and extreme values.

#include "engine/format/quantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "engine/base/numbers.h"
#include "engine/format/dequantize.h"
#include "tests/base/expect_error.h"

namespace canopy {
namespace {

using test::expect_error;

using T = TensorType;
constexpr T both[] = {T::q8_0, T::q4_k};

std::vector<std::byte> quantized(T type, const std::vector<float>& values) {
  std::vector<std::byte> blocks(tensor_bytes(type, values.size(), "test data"));
  quantize(type, values, blocks);
  return blocks;
}

std::vector<float> round_trip(T type, const std::vector<float>& values) {
  std::vector<float> out(values.size());
  dequantize(type, quantized(type, values), out);
  return out;
}

/// Root mean square of the error / that of the values.
double relative_rms(const std::vector<float>& values, const std::vector<float>& stored) {
  double error = 0, power = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    error += std::pow(double{stored[i]} - values[i], 2);
    power += std::pow(double{values[i]}, 2);
  }
  return std::sqrt(error / power);
}

std::vector<float> gaussian(size_t count, float deviation, float mean = 0) {
  std::mt19937 random(20);
  std::normal_distribution<float> normal(mean, deviation);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

/// Half a step of Q8_0 for a block with this largest magnitude, plus rounding of the arithmetic.
float q8_0_tolerance(float largest) {
  return std::max(largest / 127, 0x1p-24f) * 0.5f * 1.001f + 0x1p-25f;
}

TEST(Quantize, GaussianWeightsStayClose) {
  for (const float deviation : {1.0f, 0.02f, 1e-4f, 300.0f}) {
    const auto values = gaussian(256 * 100, deviation);
    EXPECT_LT(relative_rms(values, round_trip(T::q8_0, values)), 0.006) << deviation;
    // For weights around 1e-4 the minimum / 63 is a subnormal half; the error stays small.
    EXPECT_LT(relative_rms(values, round_trip(T::q4_k, values)), 0.09) << deviation;
  }
}

// The search for scales must be better than rounding each sub-block between its extremes.
TEST(Quantize, Q4KBeatsTheRangeOfTheValues) {
  const auto values = gaussian(256 * 100, 1);
  std::vector<float> plain(values.size());
  for (size_t start = 0; start < values.size(); start += 32) {
    const auto [lowest, highest] = std::minmax_element(values.begin() + static_cast<ptrdiff_t>(start),
                                                       values.begin() + static_cast<ptrdiff_t>(start + 32));
    const float step = (*highest - *lowest) / 15;
    for (size_t i = start; i < start + 32; ++i) plain[i] = std::round((values[i] - *lowest) / step) * step + *lowest;
  }
  EXPECT_LT(relative_rms(values, round_trip(T::q4_k, values)), 0.97 * relative_rms(values, plain));
}

TEST(Quantize, Q8_0IsNeverOffByMoreThanHalfAStep) {
  // From values whose scale is below the smallest half to the largest possible ones.
  for (int exponent = -40; exponent <= 20; ++exponent) {
    const auto values = gaussian(256, std::ldexp(1.0f, exponent));
    const auto stored = round_trip(T::q8_0, values);
    for (size_t start = 0; start < values.size(); start += 32) {
      float largest = 0;
      for (size_t i = start; i < start + 32; ++i) largest = std::max(largest, std::abs(values[i]));
      // For smaller values a step is a whole multiple of 2^-24.
      const float tolerance = largest < 0x1p-8f ? 0.51f * (largest / 127 + 0x1p-24f) : q8_0_tolerance(largest);
      for (size_t i = start; i < start + 32; ++i) ASSERT_NEAR(stored[i], values[i], tolerance) << exponent << " " << i;
    }
  }
}

TEST(Quantize, WhatIsStoredIsStoredAgainAsItIs) {
  const auto once = round_trip(T::q8_0, gaussian(2560, 1));
  EXPECT_LT(relative_rms(once, round_trip(T::q8_0, once)), 0.001);
}

TEST(Quantize, ZerosStayZero) {
  for (const T type : both) {
    EXPECT_EQ(round_trip(type, std::vector<float>(512, 0.0f)), std::vector<float>(512, 0.0f));
    EXPECT_EQ(round_trip(type, std::vector<float>(512, -0.0f)), std::vector<float>(512, 0.0f));
    const auto blocks = quantized(type, std::vector<float>(512, 0.0f));
    EXPECT_TRUE(std::ranges::all_of(blocks, [](std::byte byte) { return byte == std::byte{0}; })) << to_string(type);
  }
}

TEST(Quantize, ConstantsStayConstant) {
  for (const T type : both) {
    for (const float value : {1.0f, -1.0f, 0.037f, -1234.5f, 65504.0f, 1e-3f}) {
      const auto stored = round_trip(type, std::vector<float>(256, value));
      for (const float x : stored) ASSERT_NEAR(x, value, std::abs(value) * 2e-3f) << to_string(type);
    }
  }
}

TEST(Quantize, AnyMixtureOfMagnitudesStaysBounded) {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> exponent(-149, 20);
  std::uniform_real_distribution<float> mantissa(-1, 1);
  for (const T type : both) {
    for (int round = 0; round < 200; ++round) {
      std::vector<float> values(256);
      for (float& value : values) value = std::ldexp(mantissa(random), exponent(random));
      const auto stored = round_trip(type, values);
      float largest = 0;
      for (const float value : values) largest = std::max(largest, std::abs(value));
      for (size_t i = 0; i < values.size(); ++i) {
        ASSERT_NEAR(stored[i], values[i], largest / 10) << to_string(type) << " " << round << " " << i;
      }
    }
  }
}

TEST(Quantize, OneOutlierCostsOnlyItsNeighbours) {
  auto values = gaussian(512, 1);
  values[70] = 1000;
  const auto q8_0 = round_trip(T::q8_0, values);
  const auto q4_k = round_trip(T::q4_k, values);
  EXPECT_NEAR(q8_0[70], 1000, 0.5);
  EXPECT_NEAR(q4_k[70], 1000, 15);
  for (size_t i = 0; i < 64; ++i) ASSERT_NEAR(q8_0[i], values[i], q8_0_tolerance(4)) << i;
  // The next 256 values do not depend on these.
  const std::vector<float> after(values.begin() + 256, values.end());
  EXPECT_EQ(std::vector<float>(q4_k.begin() + 256, q4_k.end()), round_trip(T::q4_k, after));
  EXPECT_LT(relative_rms(after, std::vector<float>(q4_k.begin() + 256, q4_k.end())), 0.09);
}

TEST(Quantize, Q4KHandlesOneSidedAndMixedSubBlocks) {
  // For positive values the minimum cannot be used, as it would be negative; for negative ones it can.
  for (const float sign : {1.0f, -1.0f}) {
    std::vector<float> values = gaussian(2560, 1);
    for (float& value : values) value = sign * std::abs(value);
    EXPECT_LT(relative_rms(values, round_trip(T::q4_k, values)), 0.09) << sign;
  }
  // Sub-blocks of very different magnitude share two halves.
  std::vector<float> values = gaussian(256, 1);
  for (size_t i = 0; i < 256; ++i) values[i] *= 1 + static_cast<float>(i / 32);
  EXPECT_LT(relative_rms(values, round_trip(T::q4_k, values)), 0.09);
  // Constant or zero sub-blocks beside others.
  std::fill(values.begin() + 64, values.begin() + 96, 0.0f);
  std::fill(values.begin() + 96, values.begin() + 128, -0.5f);
  const auto stored = round_trip(T::q4_k, values);
  for (size_t i = 64; i < 96; ++i) ASSERT_EQ(stored[i], 0.0f);
  for (size_t i = 96; i < 128; ++i) ASSERT_NEAR(stored[i], -0.5f, 0.15f);
}

TEST(Quantize, TinyValuesBecomeTinyValues) {
  for (const T type : both) {
    for (const float value : {0x1p-149f, 0x1p-126f, 1e-20f, 1e-8f}) {
      const auto stored = round_trip(type, std::vector<float>(256, value));
      for (const float x : stored) ASSERT_NEAR(x, value, 0x1p-24f * 8) << to_string(type);
    }
  }
}

TEST(Quantize, LargeValuesFitAsFarAsAHalfReaches) {
  for (const T type : both) {
    for (const float value : {4e6f, -4e6f}) {
      const auto stored = round_trip(type, std::vector<float>(256, value));
      for (const float x : stored) ASSERT_NEAR(x, value, 4e3f) << to_string(type);
    }
    for (const float value : {-1e9f, std::numeric_limits<float>::max()}) {
      expect_error(" is too large for " + std::string(to_string(type)) + ": its block would need the scale ",
                   [&] { quantized(type, std::vector<float>(256, value)); });
    }
  }
}

TEST(Quantize, RefusesWhatIsNotFinite) {
  const struct {
    float value;
    const char* text;
  } cases[] = {{NAN, "nan"}, {INFINITY, "inf"}, {-INFINITY, "-inf"}};
  for (const auto& [value, text] : cases) {
    std::vector<float> values(512, 1.0f);
    values[261] = value;
    expect_error("Quantizing elements 256 to 287: Element 5 of the block is " + std::string(text) +
                     "; only finite values can be stored as Q8_0.",
                 [&] { quantized(T::q8_0, values); });
    expect_error("Quantizing elements 256 to 511: Element 5 of the block is " + std::string(text) +
                     "; only finite values can be stored as Q4_K.",
                 [&] { quantized(T::q4_k, values); });
  }
}

TEST(Quantize, RefusesOtherTypesAndWrongSizes) {
  EXPECT_TRUE(can_quantize(T::q8_0));
  EXPECT_TRUE(can_quantize(T::q4_k));
  EXPECT_FALSE(can_quantize(T::q4_0));
  const std::vector<float> values(256, 1.0f);
  std::vector<std::byte> blocks(1000);
  expect_error("Elements cannot be quantized to Q4_0; supported: Q8_0, Q4_K.",
               [&] { quantize(T::q4_0, values, blocks); });
  expect_error("Quantizing 256 elements to Q4_K takes 144 bytes, but room for 145 was given.",
               [&] { quantize(T::q4_k, values, std::span(blocks).first(145)); });
  expect_error("Quantizing 32 elements to Q8_0 takes 34 bytes, but room for 0 was given.",
               [&] { quantize(T::q8_0, std::span(values).first(32), {}); });
  expect_error("The input of the quantization to Q4_K has 128 elements, no whole number of Q4_K blocks of 256.",
               [&] { quantize(T::q4_k, std::span(values).first(128), std::span(blocks).first(72)); });
  EXPECT_NO_THROW(quantize(T::q4_k, {}, {}));
}

}  // namespace
}  // namespace canopy
