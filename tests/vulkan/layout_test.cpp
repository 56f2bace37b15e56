// The layout of weights and activations in device memory.

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <set>

#include "engine/base/numbers.h"
#include "engine/format/dequantize.h"
#include "engine/model/weight_plan.h"
#include "engine/vulkan/device_objects.h"
#include "tests/base/expect_error.h"
#include "tests/compute/random_data.h"

namespace canopy::vk {
namespace {

using test::FileMatrix;
using test::Random;

// Element k of stored row r as shaders/weights.glsl reads it.
float unpacked(const WeightShardLayout& shard, WeightType type, std::span<const uint32_t> units,
               std::span<const uint32_t> scales, uint32_t r, uint32_t k) {
  const uint32_t per_unit = columns_per_unit(type);
  const uint64_t band = r / kBandRows * kBandRows;
  const uint64_t blocks = units.size() / 4 / shard.stored_rows * per_unit / 32;
  const uint32_t* unit =
      &units[(band * blocks * (32 / per_unit) + uint64_t{k / per_unit} * kBandRows + r % kBandRows) * 4];
  const uint64_t scale = band * blocks + uint64_t{k / 32} * kBandRows + r % kBandRows;
  const uint32_t q = k % per_unit / 4;
  const uint32_t i = k % 4;
  switch (type) {
    case WeightType::f32: return std::bit_cast<float>(unit[i]);
    case WeightType::f16: return f16_to_f32(static_cast<uint16_t>(unit[2 * q + i / 2] >> (16 * (i % 2))));
    case WeightType::bf16: return bf16_to_f32(static_cast<uint16_t>(unit[2 * q + i / 2] >> (16 * (i % 2))));
    case WeightType::q8_0: {
      const float d = std::bit_cast<float>(scales[scale]);
      return d * static_cast<float>(static_cast<int8_t>(unit[q] >> (8 * i)));
    }
    case WeightType::q4_0:
    case WeightType::q4_1: {
      const uint32_t word = scales[scale];
      const float n = static_cast<float>((unit[q % 4] >> (16 * (q / 4) + 4 * i)) & 15u);
      return f16_to_f32(static_cast<uint16_t>(word)) * n + f16_to_f32(static_cast<uint16_t>(word >> 16));
    }
    default: return std::numeric_limits<float>::quiet_NaN();  // kept as words
  }
}

// Element (row, k) of the file's matrix.
float filed(const WeightPart& part, uint32_t row, uint32_t k) {
  const BlockSize block = block_size(part.type);
  const uint64_t row_bytes = uint64_t{part.cols} / block.elements * block.bytes;
  std::vector<float> values(part.cols);
  dequantize(stored_as(part.type), part.data.subspan(row * row_bytes, row_bytes), values);
  return values[k];
}

class WeightLayoutTest : public ::testing::TestWithParam<WeightType> {};

TEST_P(WeightLayoutTest, KeepsEveryElementOfStackedPartsInEveryShard) {
  Random random(7);
  const FileMatrix a = random.matrix(GetParam(), 90, 96), b = random.matrix(GetParam(), 61, 96);
  const std::vector<WeightPart> parts = {a.part(), b.part()};
  const WeightExtent extent = joined_extent(parts, WeightLayout::stacked);
  ASSERT_EQ(extent.rows, 151u);
  const uint64_t two_shards = uint64_t{96} / columns_per_unit(GetParam()) * 16 * 128;
  const auto shards = shard_rows(GetParam(), extent, two_shards);
  ASSERT_EQ(shards.size(), 2u);
  for (const WeightShardLayout& shard : shards) {
    std::vector<uint32_t> units(shard.unit_bytes / 4, ~0u), scales(shard.scale_bytes / 4, ~0u);
    repack(parts, WeightLayout::stacked, shard, units, scales);
    for (uint32_t r = 0; r < shard.rows; ++r) {
      const uint32_t row = shard.first_row + r;
      const WeightPart part = row < 90 ? parts[0] : parts[1];
      for (uint32_t k = 0; k < 96; ++k) {
        ASSERT_EQ(unpacked(shard, GetParam(), units, scales, r, k), filed(part, row < 90 ? row : row - 90, k))
            << "row " << row << ", column " << k;
      }
    }
  }
}

TEST_P(WeightLayoutTest, AlternatesTheRowsOfAPair) {
  Random random(8);
  const FileMatrix even = random.matrix(GetParam(), 35, 64), odd = random.matrix(GetParam(), 35, 64);
  const std::vector<WeightPart> parts = {even.part(), odd.part()};
  const WeightExtent extent = joined_extent(parts, WeightLayout::paired);
  const auto shard = shard_rows(GetParam(), extent, 1 << 20).front();
  std::vector<uint32_t> units(shard.unit_bytes / 4), scales(shard.scale_bytes / 4);
  repack(parts, WeightLayout::paired, shard, units, scales);
  for (uint32_t row = 0; row < 70; ++row) {
    for (uint32_t k = 0; k < 64; ++k) {
      ASSERT_EQ(unpacked(shard, GetParam(), units, scales, row, k), filed(parts[row % 2], row / 2, k));
    }
  }
}

// Of several pairs the rows of each alternate, pair after pair; bands and shards begin anywhere in them.
TEST_P(WeightLayoutTest, PutsPairsOneBelowTheOther) {
  Random random(10);
  std::vector<FileMatrix> matrices;
  for (const uint32_t rows : {35u, 35u, 7u, 7u, 50u, 50u}) matrices.push_back(random.matrix(GetParam(), rows, 64));
  std::vector<WeightPart> parts;
  for (const FileMatrix& matrix : matrices) parts.push_back(matrix.part());
  const WeightExtent extent = joined_extent(parts, WeightLayout::paired);
  ASSERT_EQ(extent.rows, 184u);
  const uint64_t a_band = uint64_t{64} / columns_per_unit(GetParam()) * 16 * 64;
  const auto shards = shard_rows(GetParam(), extent, a_band);
  ASSERT_EQ(shards.size(), 3u);
  for (const WeightShardLayout& shard : shards) {
    std::vector<uint32_t> units(shard.unit_bytes / 4), scales(shard.scale_bytes / 4);
    repack(parts, WeightLayout::paired, shard, units, scales);
    for (uint32_t r = 0; r < shard.rows; ++r) {
      const uint32_t row = shard.first_row + r, pair = row < 70 ? 0 : row < 84 ? 1 : 2;
      const uint32_t of_pair = row - (pair == 0 ? 0 : pair == 1 ? 70 : 84);
      for (uint32_t k = 0; k < 64; ++k) {
        ASSERT_EQ(unpacked(shard, GetParam(), units, scales, r, k),
                  filed(parts[2 * pair + of_pair % 2], of_pair / 2, k))
            << "row " << row << ", column " << k;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, WeightLayoutTest,
                         ::testing::Values(WeightType::f32, WeightType::f16, WeightType::bf16, WeightType::q8_0,
                                           WeightType::q4_1, WeightType::q4_0),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST(WeightLayoutErrorTest, RefusesPartsThatDoNotFit) {
  Random random(9);
  const FileMatrix a = random.matrix(WeightType::q8_0, 4, 64), b = random.matrix(WeightType::q8_0, 4, 96);
  test::expect_error("96 columns", [&] {
    joined_extent(std::vector<WeightPart>{a.part(), b.part()}, WeightLayout::stacked);
  });
  for (const size_t parts : {1, 3}) {
    test::expect_error("two parts",
                       [&] { joined_extent(std::vector<WeightPart>(parts, a.part()), WeightLayout::paired); });
  }
  WeightPart cut = a.part();
  cut.data = cut.data.first(cut.data.size() - 1);
  test::expect_error("bytes", [&] { joined_extent(std::vector<WeightPart>{cut}, WeightLayout::stacked); });
  EXPECT_THROW(shard_rows(WeightType::f32, {16, 4096}, 1000), Error);
}

}  // namespace
}  // namespace canopy::vk
