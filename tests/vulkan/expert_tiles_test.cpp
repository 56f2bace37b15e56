#include "engine/vulkan/expert_tiles.h"

#include <gtest/gtest.h>

namespace canopy::vk {
namespace {

constexpr ExpertCounts kMany{128, 8}, kFew{32, 4};
constexpr MatrixShape kHalves{.m = 16, .n = 16, .k = 16};

// A step more is worth it where some experts' weights would be read again; the processor groups from eight rows on.
TEST(ExpertTilesTest, PairsAreGroupedWhereTheySaveReading) {
  for (const auto tiles_of : {pair_tiles, matrix_pair_tiles}) {
    for (const ExpertCounts& experts : {kMany, kFew}) {
      EXPECT_FALSE(tiles_of(experts, 1, false).grouped);
      EXPECT_TRUE(tiles_of(experts, 8, false).grouped);
    }
    EXPECT_FALSE(tiles_of(kMany, 4, false).grouped);
    EXPECT_TRUE(tiles_of(kMany, 5, false).grouped);
    EXPECT_FALSE(tiles_of(kMany, 7, true).grouped);
    EXPECT_TRUE(tiles_of(kMany, 8, true).grouped);
    EXPECT_FALSE(tiles_of({1024, 1}, 64, false).grouped);  // hardly two rows have the same
  }
}

TEST(ExpertTilesTest, HaveAsManyPairsAsAreLikelyToBeThere) {
  EXPECT_EQ(pair_tiles(kMany, 8, false).columns, 4u);
  EXPECT_EQ(pair_tiles(kMany, 128, false).columns, 8u);
  EXPECT_EQ(pair_tiles(kMany, 128, true).columns, 4u);
  EXPECT_EQ(matrix_pair_tiles(kMany, 1, false).columns, 1u);
  EXPECT_EQ(matrix_pair_tiles(kMany, 128, false).columns, 16u);
  EXPECT_EQ(matrix_pair_tiles(kMany, 512, false).columns, 32u);
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
  DeviceLimits limits;
  limits.max_invocations = 1024;
  limits.max_shared_bytes = 32 << 10;
  limits.pinned_subgroup = 32;
  for (const auto& [rows, cols] : {std::pair{1536u, 2048u}, {2048u, 768u}, {5760u, 2880u}, {70u, 33u}}) {
    for (const uint32_t width : {1u, 8u, 512u}) {
      const PairTiles tiles = matrix_pair_tiles(kMany, width, false);
      const MatrixConfig config = expert_matrix(rows, cols, tiles, kHalves, false, limits);
      EXPECT_EQ(config.columns, std::max(16u, tiles.columns));
      EXPECT_TRUE(config.fits(limits));
      EXPECT_EQ((cols + 63) / 64 * 64 % config.step, 0u);
    }
  }
}

}  // namespace
}  // namespace canopy::vk
