// IQ1_S to IQ3_S: whole codebooks, and indices, signs and scales in hand-made blocks.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/format/codebooks.h"
#include "tests/format/blocks.h"

namespace canopy {
namespace {

using test::bytes;
using test::decode;
using test::differences;
using test::expect_changes;
using test::half;
using test::le;
using test::with_byte;

using T = TensorType;

/// FNV-1a with 64 bits.
class Hash {
 public:
  void add(uint8_t byte) { value_ = (value_ ^ byte) * 0x100000001b3u; }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325u;
};

/// The hash of all levels in order; level number i counts as values[i].
uint64_t hash_of(std::span<const uint16_t> codes, size_t group, const std::vector<int>& values) {
  const size_t bits = 16 / group;
  const size_t width = bits == 4 ? 3 : bits;  // groups of 4 leave the top four bits of a code unused
  Hash hash;
  for (const uint16_t code : codes) {
    EXPECT_EQ(code >> (width * group), 0);
    for (size_t i = 0; i < group; ++i) {
      const auto level = static_cast<size_t>(code >> (width * i) & ((1u << width) - 1));
      EXPECT_LT(level, values.size()) << code;
      hash.add(static_cast<uint8_t>(values[std::min(level, values.size() - 1)]));
    }
  }
  return hash.value();
}

// The hashes were computed from the tables of gguf-py 0.19.
TEST(Codebooks, HoldTheValuesOfTheFormats) {
  const std::vector<int> iq2 = {8, 25, 43};
  EXPECT_EQ(hash_of(iq2_xxs_codes, 8, iq2), 0xbb4ee025b5ac6e8eu);
  EXPECT_EQ(hash_of(iq2_xs_codes, 8, iq2), 0xc9b1ee61e79909bdu);
  EXPECT_EQ(hash_of(iq2_s_codes, 8, iq2), 0x123edd38a3b62b90u);
  EXPECT_EQ(hash_of(iq3_xxs_codes, 4, {4, 12, 20, 28, 36, 44, 52, 62}), 0xdfa5dc83d6a155d5u);
  EXPECT_EQ(hash_of(iq3_s_codes, 4, {1, 3, 5, 7, 9, 11, 13, 15}), 0xfa37020c25b44829u);
  EXPECT_EQ(hash_of(iq1_codes, 8, {-1, 0, 1}), 0x6703ed863501ae2eu);
}

TEST(Codebooks, Ascend) {
  const auto ascends = [](std::span<const uint16_t> codes) {
    return std::ranges::adjacent_find(codes, std::greater_equal()) == codes.end();
  };
  EXPECT_TRUE(ascends(iq2_xxs_codes));
  EXPECT_TRUE(ascends(iq2_xs_codes));
  EXPECT_TRUE(ascends(iq2_s_codes));
  EXPECT_TRUE(ascends(iq3_xxs_codes));
  EXPECT_TRUE(ascends(iq3_s_codes));
  EXPECT_TRUE(ascends(iq1_codes));
}

std::vector<float> first_eight(const std::vector<float>& all) {
  return {all.begin(), all.begin() + 8};
}

// In every codebook index 0 is the group of lowest levels and, except in IQ2_XXS, the last index the group of highest
// ones.
TEST(DequantizeCodebook, LowestAndHighestIndices) {
  EXPECT_EQ(first_eight(decode(T::iq2_xxs, half(8) + bytes(64, 0))), std::vector<float>(8, 8.0f));
  EXPECT_EQ(first_eight(decode(T::iq2_xs, half(8) + bytes(72, 0))), std::vector<float>(8, 8.0f));
  EXPECT_EQ(first_eight(decode(T::iq2_s, half(8) + bytes(80, 0))), std::vector<float>(8, 8.0f));
  EXPECT_EQ(first_eight(decode(T::iq3_xxs, half(4) + bytes(96, 0))), std::vector<float>(8, 4.0f));
  EXPECT_EQ(first_eight(decode(T::iq3_s, half(4) + bytes(108, 0))), std::vector<float>(8, 4.0f));
  EXPECT_EQ(first_eight(decode(T::iq1_s, half(8) + bytes(48, 0))), std::vector<float>(8, -7.0f));

  const std::string iq2_s = half(8) + bytes(32, 0xff) + bytes(32, 0) + bytes(8, 0xff) + bytes(8, 0);
  EXPECT_EQ(first_eight(decode(T::iq2_s, iq2_s)), std::vector<float>(8, 43.0f));
  const std::string iq1_s = half(8) + bytes(32, 0xff) + bytes(16, 0xff);
  EXPECT_EQ(first_eight(decode(T::iq1_s, iq1_s)), std::vector<float>(8, 8.0f * 15 * (1 - 0.125f)));
}

TEST(DequantizeCodebook, EveryScaleStep) {
  for (int s = 0; s < 16; ++s) {
    const auto step = static_cast<float>(s);
    const std::string word = le(static_cast<uint32_t>(s) << 28);
    EXPECT_EQ(decode(T::iq2_xxs, half(-8) + bytes(60, 0) + word)[255], -16 * (step + 0.5f));
    EXPECT_EQ(decode(T::iq2_xs, half(8) + bytes(64, 0) + bytes(8, s << 4))[255], 16 * (step + 0.5f));
    EXPECT_EQ(decode(T::iq2_s, half(8) + bytes(72, 0) + bytes(8, s))[0], 16 * (step + 0.5f));
    EXPECT_EQ(decode(T::iq3_xxs, half(1) + bytes(92, 0) + word)[255], 2 * (step + 0.5f));
    EXPECT_EQ(decode(T::iq3_s, half(1) + bytes(104, 0) + bytes(4, s << 4))[255], 1 + 2 * step);
    if (s >= 8) continue;
    EXPECT_EQ(decode(T::iq1_s, half(8) + bytes(46, 0) + le(static_cast<uint16_t>(s << 12)))[255], -7 * (1 + 2 * step));
  }
}

TEST(DequantizeCodebook, SubnormalAndLargestScales) {
  EXPECT_EQ(decode(T::iq2_xxs, half(0x1p-24f) + bytes(64, 0))[0], 0x1p-24f);
  EXPECT_EQ(decode(T::iq3_s, half(65504) + bytes(104, 0) + bytes(4, 0xff))[0], 65504.0f * 31);
  EXPECT_EQ(decode(T::iq1_s, half(0x1p-24f) + bytes(48, 0))[0], -0x1.cp-25f);
}

TEST(DequantizeCodebook, SevenSignsMakeAnEvenNumber) {
  for (int signs = 0; signs < 128; ++signs) {
    const std::string word = le(static_cast<uint32_t>(signs) << 7);
    const auto iq2 = decode(T::iq2_xxs, half(1) + bytes(4, 0) + word + bytes(56, 0));
    const auto iq3 = decode(T::iq3_xxs, half(1) + bytes(64, 0) + word + bytes(28, 0));
    int minuses = 0;
    for (size_t i = 0; i < 8; ++i) {
      minuses += std::signbit(iq2[8 + i]) ? 1 : 0;
      ASSERT_EQ(std::signbit(iq2[8 + i]), std::signbit(iq3[8 + i]));
      ASSERT_TRUE(i == 7 || std::signbit(iq2[8 + i]) == ((signs >> i & 1) != 0)) << signs << " " << i;
    }
    ASSERT_EQ(minuses % 2, 0) << signs;
    ASSERT_EQ(decode(T::iq2_xs, half(1) + le(static_cast<uint16_t>(signs << 9)) + bytes(70, 0))[7], iq2[15]);
  }
}

TEST(DequantizeCodebook, EightSignsAreTheirOwn) {
  const std::string iq2_s = half(1) + bytes(80, 0);
  expect_changes(T::iq2_s, iq2_s, 34 + 9, 0x81, {72, 79});
  const std::string iq3_s = half(1) + bytes(108, 0);
  expect_changes(T::iq3_s, iq3_s, 74 + 9, 0x91, {72, 76, 79});
}

TEST(DequantizeCodebook, HighBitsOfIndices) {
  const auto group = [](size_t first, size_t count) {
    std::vector<size_t> result(count);
    std::iota(result.begin(), result.end(), first);
    return result;
  };
  const auto changed = [](T type, const std::string& block, size_t at, int value) {
    return differences(decode(type, block), decode(type, with_byte(block, at, value)));
  };
  // A change of one group's index changes at least one element, all of them in that group.
  const auto expect_within = [&](T type, const std::string& block, size_t at, int value, size_t first, size_t count) {
    const auto where = changed(type, block, at, value);
    ASSERT_FALSE(where.empty()) << to_string(type);
    EXPECT_TRUE(std::ranges::includes(group(first, count), where)) << to_string(type);
  };
  expect_within(T::iq2_s, half(1) + bytes(80, 0), 66 + 3, 0xc0, 15 * 8, 8);
  expect_within(T::iq2_xs, half(1) + bytes(72, 0), 2 + 2 * 5 + 1, 0x01, 5 * 8, 8);
  expect_within(T::iq3_s, half(1) + bytes(108, 0), 66 + 3, 0x20, (3 * 8 + 5) * 4, 4);
  expect_within(T::iq1_s, half(1) + bytes(48, 0), 34 + 2 * 2 + 1, 0x0e, (2 * 4 + 3) * 8, 8);
  expect_within(T::iq1_m, bytes(56, 0x30), 32 + 3, 0x70, 7 * 8, 8);
}

// d = 1 is 0x3c00: nibbles 0, 0, c, 3, from the top bits of the first word to those of the last.
TEST(DequantizeCodebook, Iq1MAssemblesItsScale) {
  const std::string words = le(uint16_t{0x0000}) + le(uint16_t{0x0000}) + le(uint16_t{0xc000}) + le(uint16_t{0x3000});
  const std::string block = bytes(48, 0) + words;
  EXPECT_EQ(decode(T::iq1_m, block)[0], -0.875f);
  EXPECT_EQ(first_eight(decode(T::iq1_m, with_byte(block, 32, 0x08))), std::vector<float>(8, -1.125f));
  // Bits 3-5 of the first word scale elements 16 to 31.
  std::vector<size_t> second(16);
  std::iota(second.begin(), second.end(), size_t{16});
  expect_changes(T::iq1_m, block, 48, 0x38, second);
  EXPECT_EQ(decode(T::iq1_m, with_byte(block, 48, 0x38))[16], -0.875f * 15);
}

}  // namespace
}  // namespace canopy
