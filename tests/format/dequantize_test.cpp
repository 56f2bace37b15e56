// Checks for every type, and the simple blocks of 32.

#include "engine/format/dequantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/base/expect_error.h"
#include "tests/format/blocks.h"

namespace canopy {
namespace {

using test::bytes;
using test::decode;
using test::expect_all;
using test::expect_changes;
using test::expect_error;
using test::half;
using test::le;

using T = TensorType;

std::vector<TensorTypeInfo> decodable_types() {
  std::vector<TensorTypeInfo> result;
  for (const TensorTypeInfo& info : all_tensor_types()) {
    if (can_dequantize(info.type)) result.push_back(info);
  }
  return result;
}

TEST(Dequantize, WritesEveryElementOfItsBlocksAndNoOther) {
  constexpr float untouched = -12345;
  for (const TensorTypeInfo& info : decodable_types()) {
    // 0x11 gives a small finite scale wherever the scale is.
    const std::string blocks = bytes(size_t{3} * info.block_bytes, 0x11);
    std::vector<float> out(size_t{3} * info.block_elements + 2, untouched);
    dequantize(info.type, test::as_bytes(blocks), std::span(out).subspan(1, out.size() - 2));
    EXPECT_EQ(out.front(), untouched) << info.name;
    EXPECT_EQ(out.back(), untouched) << info.name;
    for (size_t i = 1; i + 1 < out.size(); ++i) {
      ASSERT_NE(out[i], untouched) << info.name << " " << i;
      ASSERT_TRUE(std::isfinite(out[i])) << info.name << " " << i;
      ASSERT_EQ(out[i], out[1 + (i - 1) % info.block_elements]) << info.name << ": equal blocks, equal elements";
    }
  }
}

TEST(Dequantize, BlocksDoNotDependOnTheirNeighbours) {
  for (const TensorTypeInfo& info : decodable_types()) {
    const std::string a = bytes(info.block_bytes, 0x11);
    const std::string b = bytes(info.block_bytes, 0x25);
    std::vector<float> expected = decode(info.type, a);
    const std::vector<float> second = decode(info.type, b);
    expected.insert(expected.end(), second.begin(), second.end());
    EXPECT_EQ(decode(info.type, a + b), expected) << info.name;
  }
}

TEST(Dequantize, BlocksOfZerosAreZero) {
  for (const TensorTypeInfo& info : decodable_types()) expect_all(info.type, bytes(info.block_bytes, 0), 0.0f);
}

TEST(Dequantize, AcceptsNoElementsAtAll) {
  for (const TensorTypeInfo& info : decodable_types()) EXPECT_NO_THROW(dequantize(info.type, {}, {})) << info.name;
}

TEST(Dequantize, RefusesTypesWithoutADecoder) {
  std::vector<float> out(32);
  const std::string block = bytes(128, 0);
  for (const T type : {T::i32, T::q8_1, T::q8_k, T::f8_e4m3, T::u8}) {
    EXPECT_FALSE(can_dequantize(type));
    expect_error("Elements of type " + std::string(to_string(type)) + " cannot be decoded; supported types: F32, F16, ",
                 [&] { dequantize(type, test::as_bytes(block), out); });
  }
}

TEST(Dequantize, ListsEverySupportedTypeOnce) {
  std::string list = dequantizable_types() + ", ";
  for (const TensorTypeInfo& info : decodable_types()) {
    const std::string entry = std::string(info.name) + ", ";
    const size_t at = list.find(entry);
    ASSERT_NE(at, std::string::npos) << info.name << " in " << list;
    list.erase(at, entry.size());
  }
  EXPECT_EQ(list, "");
}

TEST(Dequantize, RefusesWrongSizesByTypeAndNumber) {
  std::vector<float> out(32);
  expect_error("Decoding 32 elements of type Q8_0 takes 34 bytes, but 33 were given.",
               [&] { dequantize(T::q8_0, test::as_bytes(bytes(33, 0)), out); });
  for (const TensorTypeInfo& info : decodable_types()) {
    std::vector<float> block(info.block_elements);
    for (const size_t wrong : {info.block_bytes - 1, info.block_bytes + 1, 0u, 2 * info.block_bytes}) {
      const std::string data = bytes(wrong, 0);
      expect_error("type " + std::string(info.name) + " takes " + std::to_string(info.block_bytes) + " bytes, but " +
                       std::to_string(wrong) + " were given",
                   [&] { dequantize(info.type, test::as_bytes(data), block); });
    }
    if (info.block_elements == 1) continue;
    block.pop_back();
    expect_error("no whole number of " + std::string(info.name) + " blocks of " + std::to_string(info.block_elements),
                 [&] { dequantize(info.type, test::as_bytes(bytes(info.block_bytes, 0)), block); });
  }
}

TEST(Dequantize, PlainElementsKeepEveryBitPattern) {
  const std::string f32 = le(1.5f) + le(-0.0f) + le(0x1p-149f) + le(std::numeric_limits<float>::infinity());
  EXPECT_TRUE(test::differences(decode(T::f32, f32), {1.5f, -0.0f, 0x1p-149f, INFINITY}).empty());
  const std::string f16 = half(-65504) + half(0x1p-24f) + half(-0x1p-24f * 1023) + half(-0.0f) + half(INFINITY);
  EXPECT_TRUE(test::differences(decode(T::f16, f16), {-65504, 0x1p-24f, -0x1p-24f * 1023, -0.0f, INFINITY}).empty());
  const std::string bf16 = le(uint16_t{0x3fc0}) + le(uint16_t{0x8001}) + le(uint16_t{0x7f7f}) + le(uint16_t{0xff80});
  EXPECT_TRUE(test::differences(decode(T::bf16, bf16), {1.5f, -0x1p-133f, 0x1.fep127f, -INFINITY}).empty());
  EXPECT_TRUE(std::isnan(decode(T::f16, le(uint16_t{0x7e01}))[0]));
  EXPECT_TRUE(std::isnan(decode(T::bf16, le(uint16_t{0xffc0}))[0]));
}

TEST(Dequantize, Q4_0) {
  std::string block = half(-0.5f);
  for (int i = 0; i < 16; ++i) block += static_cast<char>(i | (15 - i) << 4);
  const auto out = decode(T::q4_0, block);
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(out[i], -0.5f * (static_cast<float>(i) - 8));
    EXPECT_EQ(out[i + 16], -0.5f * (7 - static_cast<float>(i)));
  }
  expect_all(T::q4_0, half(65504) + bytes(16, 0xff), 65504.0f * 7);
  expect_all(T::q4_0, half(0x1p-24f) + bytes(16, 0x00), -0x1p-21f);
}

TEST(Dequantize, Q4_1) {
  std::string block = half(0.5f) + half(-1.0f);
  for (int i = 0; i < 16; ++i) block += static_cast<char>(i | (15 - i) << 4);
  const auto out = decode(T::q4_1, block);
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(out[i], 0.5f * static_cast<float>(i) - 1);
    EXPECT_EQ(out[i + 16], 0.5f * (15 - static_cast<float>(i)) - 1);
  }
  expect_all(T::q4_1, half(-2) + half(3) + bytes(16, 0xff), -27);
  // Scale and minimum may both be subnormal: 15 * 2^-24 - 1023 * 2^-24.
  expect_all(T::q4_1, half(0x1p-24f) + half(-0x1p-24f * 1023) + bytes(16, 0xff), -1008 * 0x1p-24f);
}

TEST(Dequantize, FifthBitsOfQ5) {
  // All bits set: 31 - 16; only the fifth bits: 16 - 16; only the nibbles: 15 - 16.
  expect_all(T::q5_0, half(0.25f) + bytes(4, 0xff) + bytes(16, 0xff), 0.25f * 15);
  expect_all(T::q5_0, half(0.25f) + bytes(4, 0xff) + bytes(16, 0x00), 0);
  expect_all(T::q5_0, half(0.25f) + bytes(4, 0x00) + bytes(16, 0xff), -0.25f);
  expect_all(T::q5_0, half(-65504) + bytes(20, 0x00), 65504.0f * 16);
  expect_all(T::q5_1, half(0.25f) + half(1) + bytes(4, 0xff) + bytes(16, 0xff), 0.25f * 31 + 1);
  expect_all(T::q5_1, half(0.25f) + half(1) + bytes(4, 0xff) + bytes(16, 0x00), 0.25f * 16 + 1);
  // Bit i of the word is element i; byte i of the nibbles is elements i and i + 16.
  const std::string q5_0 = half(1) + bytes(20, 0);
  expect_changes(T::q5_0, q5_0, 2, 0x81, {0, 7});
  expect_changes(T::q5_0, q5_0, 5, 0x80, {31});
  expect_changes(T::q5_0, q5_0, 6 + 3, 0x0f, {3});
  expect_changes(T::q5_0, q5_0, 6 + 3, 0xf0, {19});
  const std::string q5_1 = half(1) + half(0) + bytes(20, 0);
  expect_changes(T::q5_1, q5_1, 4 + 2, 0x01, {16});
  expect_changes(T::q5_1, q5_1, 8 + 15, 0xff, {15, 31});
}

TEST(Dequantize, Q8_0) {
  std::string block = half(-0.25f);
  for (int i = 0; i < 32; ++i) block += static_cast<char>(i * 8 - 128);
  const auto out = decode(T::q8_0, block);
  for (size_t i = 0; i < 32; ++i) EXPECT_EQ(out[i], -0.25f * (static_cast<float>(i) * 8 - 128));
  expect_all(T::q8_0, half(65504) + bytes(32, 0x80), -65504.0f * 128);
  expect_all(T::q8_0, half(0x1p-24f) + bytes(32, 0x7f), 127 * 0x1p-24f);
}

TEST(Dequantize, AnInfiniteScaleIsNotHidden) {
  expect_all(T::q8_0, half(INFINITY) + bytes(32, 0xff), -INFINITY);
  EXPECT_TRUE(std::isnan(decode(T::q8_0, half(INFINITY) + bytes(32, 0))[0]));
}

}  // namespace
}  // namespace canopy
