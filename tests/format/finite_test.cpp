
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "engine/format/dequantize.h"
#include "tests/base/expect_error.h"
#include "tests/format/gguf_builder.h"

namespace canopy {
namespace {

bool all_finite(const std::vector<float>& values) {
  for (const float value : values) {
    if (!std::isfinite(value)) return false;
  }
  return true;
}

// Compares with the decoder: each 16-bit word of a block is set to infinity and to NaN. If that makes an element
// infinite or NaN, the check must refuse the block; if it only changes codes, it must not.
TEST(Finite, AgreesWithTheDecoderAboutEveryWordOfABlock) {
  int refused = 0;
  for (const TensorTypeInfo& info : all_tensor_types()) {
    if (!can_dequantize(info.type) || info.type == TensorType::mxfp4) continue;  // its scale is a byte; tested below
    SCOPED_TRACE(info.name);
    bool has_scale = false;
    for (size_t at = 0; at + 2 <= info.block_bytes; at += 2) {
      for (const uint16_t word : {uint16_t{0x7c00}, uint16_t{0xfc00}, uint16_t{0x7e01}, uint16_t{0x7bff}}) {
        std::string block(info.block_bytes, '\x11');
        block.replace(at, 2, test::le(word));
        std::vector<float> values(info.block_elements);
        dequantize(info.type, test::as_bytes(block), values);
        const auto found = first_block_not_finite(info.type, test::as_bytes(block));
        EXPECT_EQ(found.has_value(), !all_finite(values)) << "byte " << at << ", word " << word;
        has_scale |= found.has_value();
        refused += found.has_value();
      }
    }
    // 32-bit floats are tested below. BF16's infinity is another word, NVFP4's scales are bytes and always finite, and
    // IQ1_M's scale is spread over four words.
    const bool other = info.type == TensorType::f32 || info.type == TensorType::bf16 ||
                       info.type == TensorType::nvfp4 || info.type == TensorType::iq1_m;
    EXPECT_TRUE(has_scale || other) << "a type whose scales were not found";
  }
  EXPECT_GT(refused, 50);
}

TEST(Finite, FindsTheFirstOfManyBlocksAndItsRow) {
  for (const TensorType type : {TensorType::f32, TensorType::f16, TensorType::bf16, TensorType::q4_0, TensorType::q6_k,
                                TensorType::mxfp4, TensorType::iq1_m}) {
    SCOPED_TRACE(to_string(type));
    const TensorTypeInfo& info = tensor_type_info(type);
    constexpr uint64_t rows = 300, blocks_a_row = 70;
    std::string bytes(rows * blocks_a_row * info.block_bytes, '\0');
    TensorView tensor;
    tensor.name = "w";
    tensor.type = type;
    tensor.rank = 2;
    tensor.shape = {rows, blocks_a_row * info.block_elements};
    tensor.bytes = test::as_bytes(bytes);
    EXPECT_NO_THROW(require_finite(tensor, 0, rows));
    for (const uint64_t row : {299, 123, 7}) {
      const uint64_t at = (row * blocks_a_row + blocks_a_row - 1) * info.block_bytes;
      std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(at), info.block_bytes, '\xff');
      const std::string words =
          "Row " + std::to_string(row) + " of the tensor 'w' of type " + std::string(to_string(type)) + " holds ";
      test::expect_error(words, [&] { require_finite(tensor, 0, rows); });
      test::expect_error("is infinite or not a number: the file is damaged.", [&] { require_finite(tensor, row, 1); });
      EXPECT_NO_THROW(require_finite(tensor, 0, row)) << "the rows in front are good";
    }
  }
}

TEST(Finite, FloatsAreJudgedByTheirExponent) {
  const auto bad = [](TensorType type, const std::string& bytes) {
    return first_block_not_finite(type, test::as_bytes(bytes)).has_value();
  };
  EXPECT_TRUE(bad(TensorType::f32, test::le(std::nanf(""))));
  EXPECT_TRUE(bad(TensorType::f32, test::le(-INFINITY)));
  EXPECT_FALSE(bad(TensorType::f32, test::le(3.4e38f)));
  EXPECT_TRUE(bad(TensorType::bf16, test::le(uint16_t{0x7f80})));
  EXPECT_TRUE(bad(TensorType::bf16, test::le(uint16_t{0xffc0})));
  EXPECT_FALSE(bad(TensorType::bf16, test::le(uint16_t{0xff7f})));
  for (int exponent = 0; exponent < 256; ++exponent) {
    std::string block(17, '\x77');  // every code is 6, the largest
    block[0] = static_cast<char>(exponent);
    std::vector<float> values(32);
    dequantize(TensorType::mxfp4, test::as_bytes(block), values);
    EXPECT_EQ(bad(TensorType::mxfp4, block), !all_finite(values)) << exponent;
  }
}

}  // namespace
}  // namespace canopy
