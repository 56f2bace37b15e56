// K-quants from hand-made blocks: which bits belong to which element, and the extreme scales and quants.

#include <gtest/gtest.h>

#include <numeric>

#include "engine/format/dequantize.h"
#include "tests/format/blocks.h"

namespace canopy {
namespace {

using test::bytes;
using test::decode;
using test::differences;
using test::expect_all;
using test::expect_changes;
using test::half;
using test::with_byte;

using T = TensorType;

/// The numbers first, first + 1, ..., `count` of them.
std::vector<size_t> run(size_t first, size_t count) {
  std::vector<size_t> result(count);
  std::iota(result.begin(), result.end(), first);
  return result;
}

TEST(DequantizeK, Q2KExtremes) {
  // d s q - dmin m
  expect_all(T::q2_k, bytes(16, 0xff) + bytes(64, 0xff) + half(2) + half(0.5f), 2 * 15 * 3 - 0.5f * 15);
  expect_all(T::q2_k, bytes(16, 0xff) + bytes(64, 0x00) + half(2) + half(-65504), 65504.0f * 15);
  expect_all(T::q2_k, bytes(16, 0x01) + bytes(64, 0x55) + half(0x1p-24f) + half(1), 0x1p-24f);
}

TEST(DequantizeK, Q2KPlacesBits) {
  const std::string block = bytes(16, 0x11) + bytes(64, 0) + half(1) + half(1);
  expect_changes(T::q2_k, block, 16 + 5, 0x03, {5});
  expect_changes(T::q2_k, block, 16 + 5, 0x0c, {37});
  expect_changes(T::q2_k, block, 16 + 5, 0xc0, {101});
  expect_changes(T::q2_k, block, 16 + 32 + 31, 0xff, {159, 191, 223, 255});
  expect_changes(T::q2_k, block, 3, 0x21, run(48, 16));  // the minimum of the fourth sub-block
  EXPECT_EQ(differences(decode(T::q2_k, block), decode(T::q2_k, with_byte(block, 3, 0x1f))), run(0, 0))
      << "a scale does not matter where all quants are zero";
}

TEST(DequantizeK, Q3KExtremes) {
  // All bits set: (63 - 32) (7 - 4). A cleared high bit subtracts 4; cleared scale bits are -32.
  expect_all(T::q3_k, bytes(32, 0xff) + bytes(64, 0xff) + bytes(12, 0xff) + half(0.5f), 0.5f * 31 * 3);
  expect_all(T::q3_k, bytes(32, 0x00) + bytes(64, 0x00) + bytes(12, 0x00) + half(65504), 65504.0f * -32 * -4);
  expect_all(T::q3_k, bytes(32, 0x00) + bytes(64, 0xff) + bytes(12, 0xff) + half(-0x1p-24f), 31 * 0x1p-24f);
  expect_all(T::q3_k, bytes(32, 0xff) + bytes(64, 0x00) + bytes(12, 0xff) + half(7), 0);
}

TEST(DequantizeK, Q3KPlacesBits) {
  const std::string block = bytes(32, 0) + bytes(64, 0) + bytes(12, 0) + half(1);
  expect_changes(T::q3_k, block, 7, 0x01, {7});
  expect_changes(T::q3_k, block, 7, 0x90, {135, 231});
  expect_changes(T::q3_k, block, 32 + 40, 0x30, {128 + 64 + 8});
  // Scales: low bits in the nibbles of the first eight bytes, high bits in the last four.
  expect_changes(T::q3_k, block, 96 + 0, 0x01, run(0, 16));
  expect_changes(T::q3_k, block, 96 + 7, 0x80, run(15 * 16, 16));
  expect_changes(T::q3_k, block, 96 + 8 + 1, 0x03, run(16, 16));
  expect_changes(T::q3_k, block, 96 + 8 + 2, 0xc0, run(14 * 16, 16));
}

TEST(DequantizeK, PackedScalesSurviveBothWays) {
  ScalesAndMinimums values;
  for (uint8_t i = 0; i < 8; ++i) {
    values.scales[i] = static_cast<uint8_t>(i * 9);
    values.minimums[i] = static_cast<uint8_t>(63 - i * 9);
  }
  const auto packed = pack_scales(values);
  EXPECT_EQ(unpack_scales(packed).scales, values.scales);
  EXPECT_EQ(unpack_scales(packed).minimums, values.minimums);
  // The other way round: a single bit of the twelve bytes, unpacked and packed again, is at its place.
  for (size_t bit = 0; bit < 96; ++bit) {
    std::array<uint8_t, 12> single = {};
    single[bit / 8] = static_cast<uint8_t>(1u << bit % 8);
    EXPECT_EQ(pack_scales(unpack_scales(single)), single) << bit;
  }
}

TEST(DequantizeK, Q4KExtremes) {
  expect_all(T::q4_k, half(1) + half(1) + bytes(12, 0xff) + bytes(128, 0xff), 63 * 15 - 63);
  expect_all(T::q4_k, half(65504) + half(0) + bytes(12, 0xff) + bytes(128, 0xff), 65504.0f * 63 * 15);
  expect_all(T::q4_k, half(0x1p-24f) + half(-0x1p-24f) + bytes(12, 0xff) + bytes(128, 0x11), 126 * 0x1p-24f);
}

TEST(DequantizeK, Q4KPlacesBits) {
  const std::string block = half(1) + half(1) + bytes(12, 0x41) + bytes(128, 0);
  expect_changes(T::q4_k, block, 16 + 9, 0x0f, {9});
  expect_changes(T::q4_k, block, 16 + 9, 0xf0, {41});
  expect_changes(T::q4_k, block, 16 + 127, 0xff, {223, 255});
  // Minimums; with all quants zero the scales do not matter.
  expect_changes(T::q4_k, block, 4 + 4, 0x42, run(0, 32));
  expect_changes(T::q4_k, block, 4 + 4, 0x81, run(128, 32));
  expect_changes(T::q4_k, block, 4 + 11, 0x51, run(224, 32));
  const std::string ones = half(1) + half(0) + bytes(12, 0x41) + bytes(128, 0x11);
  expect_changes(T::q4_k, ones, 4 + 1, 0x42, run(32, 32));
  expect_changes(T::q4_k, ones, 4 + 1, 0x81, run(160, 32));
  expect_changes(T::q4_k, ones, 4 + 10, 0x42, run(192, 32));
}

TEST(DequantizeK, Q5KExtremesAndFifthBits) {
  expect_all(T::q5_k, half(1) + half(1) + bytes(12, 0xff) + bytes(32, 0xff) + bytes(128, 0xff), 63 * 31 - 63);
  expect_all(T::q5_k, half(-1) + half(0) + bytes(12, 0xff) + bytes(32, 0xff) + bytes(128, 0), -63 * 16);
  const std::string block = half(1) + half(0) + bytes(12, 0xff) + bytes(32, 0) + bytes(128, 0);
  expect_changes(T::q5_k, block, 16 + 4, 0x01, {4});
  expect_changes(T::q5_k, block, 16 + 4, 0x88, {100, 228});
  expect_changes(T::q5_k, block, 48 + 64 + 2, 0xf1, {130, 162});
}

TEST(DequantizeK, Q6KExtremes) {
  expect_all(T::q6_k, bytes(128, 0xff) + bytes(64, 0xff) + bytes(16, 0x7f) + half(0.5f), 0.5f * 127 * 31);
  expect_all(T::q6_k, bytes(128, 0x00) + bytes(64, 0x00) + bytes(16, 0x80) + half(65504), 65504.0f * -128 * -32);
  expect_all(T::q6_k, bytes(128, 0x00) + bytes(64, 0xaa) + bytes(16, 0x80) + half(3), 0);
  expect_all(T::q6_k, bytes(128, 0xff) + bytes(64, 0x00) + bytes(16, 0x01) + half(-0x1p-24f), 17 * 0x1p-24f);
}

TEST(DequantizeK, Q6KPlacesBits) {
  const std::string block = bytes(128, 0) + bytes(64, 0) + bytes(16, 1) + half(1);
  expect_changes(T::q6_k, block, 3, 0x0f, {3});
  expect_changes(T::q6_k, block, 3, 0xf0, {67});
  expect_changes(T::q6_k, block, 32 + 3, 0xff, {35, 99});
  expect_changes(T::q6_k, block, 64 + 32 + 31, 0x0f, {191});
  expect_changes(T::q6_k, block, 128 + 3, 0x0c, {35});
  expect_changes(T::q6_k, block, 128 + 32 + 31, 0xc0, {255});
  expect_changes(T::q6_k, block, 192 + 5, 0xff, run(80, 16));
}

}  // namespace
}  // namespace canopy
