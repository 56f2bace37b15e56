// Types with a table of levels: IQ4_NL, IQ4_XS, MXFP4, NVFP4; and the ternary types.

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tests/format/blocks.h"

namespace canopy {
namespace {

using test::bytes;
using test::decode;
using test::expect_all;
using test::expect_changes;
using test::half;
using test::with_byte;

using T = TensorType;

constexpr float nonlinear[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
constexpr float e2m1[16] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, 0, -0.5f, -1, -1.5f, -2, -3, -4, -6};

/// 16 bytes whose low nibbles count up and whose high nibbles count down.
std::string all_codes() {
  std::string codes;
  for (int i = 0; i < 16; ++i) codes += static_cast<char>(i | (15 - i) << 4);
  return codes;
}

TEST(DequantizeTable, Iq4NlHasSixteenLevels) {
  const auto out = decode(T::iq4_nl, half(-0.5f) + all_codes());
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(out[i], -0.5f * nonlinear[i]);
    EXPECT_EQ(out[i + 16], -0.5f * nonlinear[15 - i]);
  }
  expect_all(T::iq4_nl, half(65504) + bytes(16, 0xff), 65504.0f * 113);
  expect_all(T::iq4_nl, half(0x1p-24f) + bytes(16, 0x00), -127 * 0x1p-24f);
}

TEST(DequantizeTable, Iq4XsScalesAreSixBitsLess32) {
  // Code 8 is level 1.
  const std::string codes = bytes(128, 0x88);
  expect_all(T::iq4_xs, half(1) + bytes(2, 0xff) + bytes(4, 0xff) + codes, 31);
  expect_all(T::iq4_xs, half(1) + bytes(2, 0x00) + bytes(4, 0x00) + codes, -32);
  expect_all(T::iq4_xs, half(1) + bytes(2, 0xaa) + bytes(4, 0x00) + codes, 0);
  expect_all(T::iq4_xs, half(65504) + bytes(6, 0) + bytes(128, 0), 65504.0f * 32 * 127);
  expect_all(T::iq4_xs, half(-0x1p-24f) + bytes(2, 0xff) + bytes(4, 0xff) + bytes(128, 0xff), -0x1p-24f * 31 * 113);
  const std::string block = half(1) + bytes(6, 0) + codes;
  std::vector<size_t> third(32);
  std::iota(third.begin(), third.end(), size_t{64});
  expect_changes(T::iq4_xs, block, 2, 0x10, third);
  expect_changes(T::iq4_xs, block, 4 + 1, 0x01, third);
  expect_changes(T::iq4_xs, block, 8 + 2 * 16 + 3, 0x89, {67});
  expect_changes(T::iq4_xs, block, 8 + 2 * 16 + 3, 0x98, {83});
}

TEST(DequantizeTable, Mxfp4HasTheValuesOfE2M1) {
  const auto out = decode(T::mxfp4, bytes(1, 127) + all_codes());  // 2^0
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(out[i], e2m1[i]);
    EXPECT_EQ(out[i + 16], e2m1[15 - i]);
  }
  EXPECT_FALSE(std::signbit(out[8])) << "minus zero is read as zero";
}

TEST(DequantizeTable, Mxfp4ScalesAreEveryPowerOfTwo) {
  for (int exponent = 0; exponent < 256; ++exponent) {
    // Code 2 is 1. 2^-127 is subnormal; 2^128 (code 255) is too large for a float.
    expect_all(T::mxfp4, bytes(1, exponent) + bytes(16, 0x22), std::ldexp(1.0f, exponent - 127));
  }
  expect_all(T::mxfp4, bytes(1, 0) + bytes(16, 0x99), -0x1p-128f);   // half of the smallest scale, still exact
  expect_all(T::mxfp4, bytes(1, 0) + bytes(16, 0x33), 0x1.8p-127f);  // 1.5 of it
  expect_all(T::mxfp4, bytes(1, 254) + bytes(16, 0x11), 0x1p126f);
  expect_all(T::mxfp4, bytes(1, 254) + bytes(16, 0x77), INFINITY);
  expect_all(T::mxfp4, bytes(1, 255) + bytes(16, 0x11), 0x1p127f);  // no NaN: as ggml reads it
  expect_all(T::mxfp4, bytes(1, 255) + bytes(16, 0x00), 0);
}

TEST(DequantizeTable, Nvfp4ScalesAreUnsignedE4M3) {
  const std::string ones = bytes(32, 0x22);
  const auto scale = [&](int code) { return decode(T::nvfp4, bytes(4, code) + ones)[0]; };
  EXPECT_EQ(scale(0x38), 1);
  EXPECT_EQ(scale(0x01), 0x1p-9f) << "the smallest subnormal";
  EXPECT_EQ(scale(0x07), 0x1.cp-7f);
  EXPECT_EQ(scale(0x08), 0x1p-6f) << "the smallest normal";
  EXPECT_EQ(scale(0x7e), 448) << "the largest";
  EXPECT_EQ(scale(0x7f), 0) << "the code of NaN";
  EXPECT_EQ(scale(0xb8), 1) << "the sign bit means nothing";
  const auto out = decode(T::nvfp4, bytes(4, 0x38) + all_codes() + bytes(16, 0));
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(out[i], e2m1[i]);
    EXPECT_EQ(out[i + 8], e2m1[15 - i]);
    EXPECT_EQ(out[i + 16], e2m1[i + 8]);
    EXPECT_EQ(out[i + 24], e2m1[7 - i]);
  }
  expect_changes(T::nvfp4, bytes(4, 0x38) + bytes(32, 0), 4 + 24 + 7, 0x21, {55, 63});
}

TEST(DequantizeTable, Tq1HoldsFiveDigitsOfBaseThree) {
  // The byte for five digits: ceil(value * 256 / 243), with `value` the number that they form.
  const auto byte_of = [](int a, int b, int c, int d, int e) {
    const int value = (((a * 3 + b) * 3 + c) * 3 + d) * 3 + e;
    return (value * 256 + 242) / 243;
  };
  const std::string minus_ones = bytes(52, 0) + half(0.5f);
  expect_all(T::tq1_0, minus_ones, -0.5f);
  expect_all(T::tq1_0, bytes(52, byte_of(2, 2, 2, 2, 2)) + half(0.5f), 0.5f);
  expect_all(T::tq1_0, bytes(52, byte_of(1, 1, 1, 1, 1)) + half(65504), 0);
  // Every byte of five digits, at every place of the first part of the block.
  for (int value = 0; value < 243; ++value) {
    const int digits[5] = {value / 81, value / 27 % 3, value / 9 % 3, value / 3 % 3, value % 3};
    const int byte = byte_of(digits[0], digits[1], digits[2], digits[3], digits[4]);
    const auto out = decode(T::tq1_0, with_byte(minus_ones, 6, byte));
    for (size_t n = 0; n < 5; ++n) ASSERT_EQ(out[32 * n + 6], 0.5f * static_cast<float>(digits[n] - 1)) << value;
  }
  expect_changes(T::tq1_0, minus_ones, 32 + 3, byte_of(2, 0, 0, 0, 1), {163, 227});
  expect_changes(T::tq1_0, minus_ones, 48 + 3, byte_of(1, 0, 0, 2, 0), {243, 255});
}

TEST(DequantizeTable, Tq2HoldsTwoBits) {
  expect_all(T::tq2_0, bytes(64, 0x00) + half(-65504), 65504);
  expect_all(T::tq2_0, bytes(64, 0x55) + half(3), 0);
  expect_all(T::tq2_0, bytes(64, 0xaa) + half(0x1p-24f), 0x1p-24f);
  expect_all(T::tq2_0, bytes(64, 0xff) + half(1), 2);
  expect_changes(T::tq2_0, bytes(64, 0) + half(1), 32 + 1, 0x42, {129, 225});
}

}  // namespace
}  // namespace canopy
