#include "engine/format/tensor_type.h"

#include <gtest/gtest.h>

#include <vector>

#include "engine/base/half.h"
#include "engine/format/dequantize.h"
#include "tests/base/expect_error.h"
#include "tests/format/gguf_builder.h"

namespace canopy {
namespace {

using test::expect_error;
using test::le;

TEST(TensorType, KnowsGgmlIdsAndNoOthers) {
  EXPECT_EQ(tensor_type_from_ggml(3), TensorType::q4_1);
  EXPECT_EQ(tensor_type_from_ggml(30), TensorType::bf16);
  EXPECT_EQ(tensor_type_from_ggml(40), TensorType::nvfp4);
  for (const uint32_t withdrawn : {4u, 5u, 31u, 32u, 33u, 36u, 37u, 38u})
    EXPECT_FALSE(tensor_type_from_ggml(withdrawn));
  EXPECT_FALSE(tensor_type_from_ggml(43));
  EXPECT_FALSE(tensor_type_from_ggml(static_cast<uint32_t>(TensorType::u8)));
}

TEST(TensorType, MapsSafetensorsNames) {
  EXPECT_EQ(tensor_type_from_safetensors("BF16"), TensorType::bf16);
  EXPECT_EQ(tensor_type_from_safetensors("F8_E4M3"), TensorType::f8_e4m3);
  EXPECT_EQ(tensor_type_from_safetensors("I64"), TensorType::i64);
  EXPECT_FALSE(tensor_type_from_safetensors("Q4_1"));
  EXPECT_FALSE(tensor_type_from_safetensors("bf16"));
}

TEST(TensorType, SizesAreCheckedProducts) {
  EXPECT_EQ(tensor_bytes(TensorType::q4_1, 64, "x"), 40u);
  EXPECT_EQ(tensor_bytes(TensorType::f4, 6, "x"), 3u);
  expect_error("The x has 33 elements, no whole number of Q8_0 blocks of 32.",
               [] { tensor_bytes(TensorType::q8_0, 33, "x"); });
  expect_error("The size of the x overflows", [] { tensor_bytes(TensorType::f64, UINT64_MAX, "x"); });
}

TEST(Dequantize, DecodesHandMadeBlocks) {
  std::string block = le(f32_to_f16(0.5f)) + le(f32_to_f16(-1.0f));
  for (int i = 0; i < 16; ++i) block += static_cast<char>(i | ((15 - i) << 4));
  std::vector<float> out(32);
  dequantize(TensorType::q4_1, test::as_bytes(block), out);
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(out[static_cast<size_t>(i)], 0.5f * static_cast<float>(i) - 1.0f);
    EXPECT_EQ(out[static_cast<size_t>(i + 16)], 0.5f * static_cast<float>(15 - i) - 1.0f);
  }
  block = le(f32_to_f16(-0.25f));
  for (int i = 0; i < 32; ++i) block += static_cast<char>(i - 128);
  dequantize(TensorType::q8_0, test::as_bytes(block), out);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(out[static_cast<size_t>(i)], -0.25f * static_cast<float>(i - 128));
}

TEST(Dequantize, RefusesUnknownTypesAndWrongSizes) {
  std::vector<float> out(32);
  const std::string bytes(33, '\0');
  EXPECT_FALSE(can_dequantize(TensorType::i32));
  expect_error("Elements of type I32 cannot be decoded; supported types: F32, F16, BF16, Q8_0, Q4_1.",
               [&] { dequantize(TensorType::i32, test::as_bytes(bytes), out); });
  expect_error("Decoding 32 elements of type Q8_0 takes 34 bytes, but 33 were given.",
               [&] { dequantize(TensorType::q8_0, test::as_bytes(bytes), out); });
}

}  // namespace
}  // namespace canopy
