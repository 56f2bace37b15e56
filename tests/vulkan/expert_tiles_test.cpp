#include "engine/vulkan/product_config.h"

#include <gtest/gtest.h>

#include <set>

namespace canopy::vk {
namespace {

constexpr ExpertCounts kMany{128, 8}, kFew{32, 4};
constexpr MatrixShape kHalves{.m = 16, .n = 16, .k = 16};

DeviceLimits some_limits() {
  DeviceLimits limits;
  limits.max_invocations = 1024;
  limits.max_shared_bytes = 32 << 10;
  limits.pinned_subgroup = 32;
  return limits;
}

ExpertShape shape(const ExpertCounts& experts, uint32_t width, bool cores, bool software = false) {
  return {experts, 1536, 2048, width, cores ? &kHalves : nullptr, software};
}

PairTiles tiles_of(const ExpertShape& shape) {
  return choose_experts_by_rule(shape, some_limits()).tiles;
}

// A step more is worth it where some experts' weights would be read again; the processor groups from eight rows on.
TEST(ExpertTilesTest, PairsAreGroupedWhereTheySaveReading) {
  for (const bool cores : {false, true}) {
    for (const ExpertCounts& experts : {kMany, kFew}) {
      EXPECT_FALSE(tiles_of(shape(experts, 1, cores)).grouped);
      EXPECT_TRUE(tiles_of(shape(experts, 8, cores)).grouped);
    }
    EXPECT_FALSE(tiles_of(shape(kMany, 4, cores)).grouped);
    EXPECT_TRUE(tiles_of(shape(kMany, 5, cores)).grouped);
    EXPECT_FALSE(tiles_of(shape(kMany, 7, cores, true)).grouped);
    EXPECT_TRUE(tiles_of(shape(kMany, 8, cores, true)).grouped);
    EXPECT_FALSE(tiles_of(shape({1024, 1}, 64, cores)).grouped);  // hardly two rows have the same
  }
}

TEST(ExpertTilesTest, HaveAsManyPairsAsAreLikelyToBeThere) {
  EXPECT_EQ(tiles_of(shape(kMany, 8, false)).columns, 4u);
  EXPECT_EQ(tiles_of(shape(kMany, 128, false)).columns, 8u);
  EXPECT_EQ(tiles_of(shape(kMany, 128, false, true)).columns, 4u);
  EXPECT_EQ(tiles_of(shape(kMany, 1, true)).columns, 1u);
  EXPECT_EQ(tiles_of(shape(kMany, 128, true)).columns, 16u);
  EXPECT_EQ(tiles_of(shape(kMany, 512, true)).columns, 32u);
}

// As many tiles as any choice can need: each expert may have one that is not full.
TEST(ExpertTilesTest, HaveRoomForAnyChoice) {
  for (const uint32_t columns : {4u, 8u, 16u, 32u}) {
    for (const uint32_t width : {8u, 33u, 200u}) {
      const PairTiles tiles{kMany, width, columns, true};
      const uint32_t alone = std::min(kMany.all, tiles.pairs()) - 1;  // experts of one pair each, the rest another's
      EXPECT_GE(tiles.most(), alone + (tiles.pairs() - alone + columns - 1) / columns);
    }
  }
  EXPECT_EQ((PairTiles{kMany, 3, 1, false}).most(), 24u);
}

// A pair by itself is a tile with one column, in the same steps.
TEST(ExpertTilesTest, MatrixKernelsFitTheirColumnsAndRows) {
  for (const auto& [rows, cols] : {std::pair{1536u, 2048u}, {2048u, 768u}, {5760u, 2880u}, {70u, 33u}}) {
    for (const uint32_t width : {1u, 8u, 512u}) {
      for (const ExpertVariant& variant :
           expert_candidates({kMany, rows, cols, width, &kHalves, false}, some_limits())) {
        ASSERT_TRUE(variant.matrix);
        EXPECT_EQ(variant.matrix->columns, std::max(16u, variant.tiles.columns));
        EXPECT_TRUE(variant.matrix->fits(some_limits()));
        EXPECT_EQ((cols + 63) / 64 * 64 % variant.matrix->step, 0u);
      }
    }
  }
}

// Timing chooses whether pairs are grouped, whatever the rule says, and tells its candidates apart.
TEST(ExpertTilesTest, CandidatesAreBothWaysToTakePairs) {
  for (const bool cores : {false, true}) {
    EXPECT_EQ(expert_candidates(shape(kMany, 1, false), some_limits()).size(), 1u);
    for (const uint32_t width : {2u, 8u, 64u}) {
      const std::vector<ExpertVariant> all = expert_candidates(shape(kMany, width, cores), some_limits());
      EXPECT_EQ(all[0].tiles.grouped, tiles_of(shape(kMany, width, cores)).grouped);
      EXPECT_NE(all[0].tiles.grouped, all[1].tiles.grouped);
      std::set<std::vector<uint32_t>> numbers;
      for (const ExpertVariant& variant : all) {
        numbers.insert(variant.numbers());
        EXPECT_EQ(variant.tiles.columns > 1, variant.tiles.grouped) << variant.text();
      }
      EXPECT_EQ(numbers.size(), all.size());
    }
  }
}

}  // namespace
}  // namespace canopy::vk
