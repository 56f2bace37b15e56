#include "engine/format/tensor.h"

#include <gtest/gtest.h>

#include "tests/base/expect_error.h"

namespace canopy {
namespace {

using test::expect_error;

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

}  // namespace
}  // namespace canopy
