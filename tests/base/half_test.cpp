#include "engine/base/numbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace canopy {
namespace {

/// The value of an f16 by its definition, independent of the code under test.
double half_value(uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const int mantissa = bits & 0x3ff;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

bool is_finite_half(uint16_t bits) {
  return (bits & 0x7c00) != 0x7c00;
}

TEST(Half, EveryFiniteHalfIsExactAndComesBack) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    if (!is_finite_half(half)) continue;
    ASSERT_EQ(static_cast<double>(f16_to_f32(half)), half_value(half)) << bits;
    ASSERT_EQ(f32_to_f16(f16_to_f32(half)), half) << bits;
  }
  EXPECT_TRUE(std::signbit(f16_to_f32(0x8000)));
}

TEST(Half, EveryBoundaryRoundsToNearestEven) {
  for (uint16_t half = 0; half < 0x7bff; ++half) {  // neighbours half and half + 1, both finite and positive
    const auto middle = static_cast<float>((half_value(half) + half_value(half + 1)) / 2);  // exact in float
    const uint16_t even = half % 2 == 0 ? half : half + 1;
    ASSERT_EQ(f32_to_f16(middle), even) << half;
    ASSERT_EQ(f32_to_f16(-middle), even | 0x8000) << half;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 0.0f)), half) << half;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 1e9f)), half + 1) << half;
  }
}

TEST(Half, ExtremesBecomeInfinityZeroAndNan) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(f32_to_f16(65519.996f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(infinity), 0x7c00);
  EXPECT_EQ(f32_to_f16(-infinity), 0xfc00);
  EXPECT_EQ(f16_to_f32(0x7c00), infinity);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_TRUE(std::isnan(f16_to_f32(0x7e01)));
  EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(std::bit_cast<float>(0x7f800001u)))));
}

TEST(Bf16, ExactUpAndNearestEvenDown) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const float value = bf16_to_f32(static_cast<uint16_t>(bits));
    if (std::isnan(value)) continue;
    ASSERT_EQ(f32_to_bf16(value), bits);
  }
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f808000u)), 0x3f80);  // tie, stays even
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f818000u)), 0x3f82);  // tie, goes to even
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0x7f800001u)))));
}

}  // namespace
}  // namespace canopy
