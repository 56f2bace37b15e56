// Weights kept as words have the values of the file, at every place of every type.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "engine/base/numbers.h"
#include "engine/format/dequantize.h"
#include "engine/vulkan/device_objects.h"
#include "tests/compute/random_data.h"

namespace canopy::vk {
namespace {

using test::FileMatrix;
using test::Random;

struct Stored {
  WeightType type;
  TensorType file_type;
  uint32_t cols;
};

constexpr Stored stored_types[] = {
    {WeightType::q5_0, TensorType::q5_0, 96},      {WeightType::q5_1, TensorType::q5_1, 96},
    {WeightType::q2_k, TensorType::q2_k, 512},     {WeightType::q3_k, TensorType::q3_k, 512},
    {WeightType::q4_k, TensorType::q4_k, 512},     {WeightType::q5_k, TensorType::q5_k, 512},
    {WeightType::q6_k, TensorType::q6_k, 512},     {WeightType::iq4_nl, TensorType::iq4_nl, 96},
    {WeightType::iq4_xs, TensorType::iq4_xs, 512}, {WeightType::mxfp4, TensorType::mxfp4, 96}};

// Reads one row of a band as shaders/weights.glsl does.
class RowWords {
 public:
  RowWords(WeightType type, std::span<const uint32_t> words, uint32_t row)
      : type_(type), format_(*word_format(type)), words_(words), row_(row) {}

  double element(uint32_t k) const {
    const uint32_t b = k / 32, e = k % 32;
    const uint32_t group = b / format_.group_blocks * format_.group_words();
    const uint32_t block = group + b % format_.group_blocks * (format_.main_words + format_.high_words);
    const uint32_t behind = group + format_.group_blocks * (format_.main_words + format_.high_words);
    const uint32_t scales = word(behind + b % format_.group_blocks / 2);
    const uint32_t factor = format_.has_factor ? word(behind + format_.scale_words) : 0;
    return scaled(code(block, e), scales, b, factor, e / 16);
  }

 private:
  uint32_t word(uint32_t j) const { return words_[j * kBandRows + row_]; }

  uint32_t code(uint32_t block, uint32_t e) const {
    const uint32_t half = e / 16, q = e % 16 / 4, i = e % 4;
    const bool nibbles = format_.main_words == 4;
    uint32_t code = nibbles ? word(block + q) >> (16 * half + 4 * i) & 15 : word(block + half) >> (8 * q + 2 * i) & 3;
    const uint32_t high = block + format_.main_words;
    if (format_.high_words == 1) code |= (word(high) >> e & 1) << (nibbles ? 4 : 2);
    if (format_.high_words == 2) code |= (word(high + half) >> (8 * q + 2 * i) & 3) << 4;
    return code;
  }

  double scaled(uint32_t code, uint32_t scales, uint32_t b, uint32_t factor, uint32_t half) const {
    static constexpr int table[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
    static constexpr int fours[] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
    const uint32_t bits = scales >> (16 * (b % 2)) & 0xffff;
    const double d = f16_to_f32(static_cast<uint16_t>(factor));
    const double m = f16_to_f32(static_cast<uint16_t>(factor >> 16));
    const int q = static_cast<int>(code);
    const auto byte = bits >> (8 * half) & 255;
    switch (type_) {
      case WeightType::q5_0:
      case WeightType::q5_1:
        return q * double{f16_to_f32(static_cast<uint16_t>(scales))} + f16_to_f32(static_cast<uint16_t>(scales >> 16));
      case WeightType::q2_k: return d * (byte & 15) * q - m * (byte >> 4);
      case WeightType::q3_k: return d * (static_cast<int>(byte) - 32) * (q - 4);
      case WeightType::q4_k:
      case WeightType::q5_k: return d * (bits & 63) * q - m * (bits >> 8 & 63);
      case WeightType::q6_k: return d * static_cast<int8_t>(byte) * (q - 32);
      case WeightType::iq4_nl: return double{f16_to_f32(static_cast<uint16_t>(bits))} * table[q];
      case WeightType::iq4_xs: return d * (static_cast<int>(bits) - 32) * table[q];
      case WeightType::mxfp4: return std::ldexp(fours[q], static_cast<int>(bits) - 128);
      default: return std::nan("");
    }
  }

  WeightType type_;
  const WordFormat& format_;
  std::span<const uint32_t> words_;
  uint32_t row_;
};

class WordLayoutTest : public ::testing::TestWithParam<Stored> {};

TEST_P(WordLayoutTest, KeepsEveryElement) {
  const Stored stored = GetParam();
  Random random(3);
  const uint32_t rows = 70;  // a band and a part of one
  const FileMatrix matrix = random.matrix(stored.type, rows, stored.cols);
  const std::vector<WeightPart> parts = {matrix.part()};
  const auto shards = shard_rows(stored.type, joined_extent(parts, WeightLayout::stacked), 1 << 20);
  ASSERT_EQ(shards.size(), 1u);
  std::vector<uint32_t> words(shards[0].unit_bytes / 4, ~0u);
  repack(parts, WeightLayout::stacked, shards[0], words, {});
  std::vector<float> expected(uint64_t{rows} * stored.cols);
  dequantize(stored.file_type, matrix.data, expected);
  const uint64_t band = words.size() / (shards[0].stored_rows / kBandRows);
  for (uint32_t r = 0; r < rows; ++r) {
    const RowWords row(stored.type, std::span(words).subspan(r / kBandRows * band, band), r % kBandRows);
    for (uint32_t k = 0; k < stored.cols; ++k) {
      const float value = expected[uint64_t{r} * stored.cols + k];
      ASSERT_NEAR(row.element(k), value, 1e-6 * std::abs(value)) << "row " << r << ", column " << k;
    }
  }
}

TEST_P(WordLayoutTest, FillsRowsThatABandLacksWithZeros) {
  const Stored stored = GetParam();
  Random random(4);
  const FileMatrix matrix = random.matrix(stored.type, 3, stored.cols);
  const std::vector<WeightPart> parts = {matrix.part()};
  const auto shard = shard_rows(stored.type, joined_extent(parts, WeightLayout::stacked), 1 << 20).front();
  std::vector<uint32_t> words(shard.unit_bytes / 4, ~0u);
  repack(parts, WeightLayout::stacked, shard, words, {});
  for (size_t i = 0; i < words.size(); ++i) {
    ASSERT_TRUE(i % kBandRows < 3 || words[i] == 0) << "word " << i;
  }
}

TEST(WordLayoutHalves, ScalesEveryHalfAsRoundingDoes) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    for (const uint32_t power : {3u, 4u}) {
      const float product = -static_cast<float>(1u << power) * f16_to_f32(half);
      ASSERT_EQ(minus_power_of_two_times(half, power), f32_to_f16(product)) << bits << ", 2^" << power;
    }
  }
}

TEST_P(WordLayoutTest, TakesLittleMoreThanTheFile) {
  const Stored stored = GetParam();
  const BlockSize block = block_size(stored.type);
  const double file = 4096.0 / block.elements * block.bytes;
  EXPECT_LE(words_per_row(*word_format(stored.type), 4096) * 4, 1.1 * file);
}

INSTANTIATE_TEST_SUITE_P(, WordLayoutTest, ::testing::ValuesIn(stored_types),
                         [](const auto& info) { return std::string(to_string(info.param.type)); });

}  // namespace
}  // namespace canopy::vk
