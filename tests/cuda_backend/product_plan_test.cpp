// How products are cut into blocks, and in which units weights are.
#include <gtest/gtest.h>

#include <algorithm>

#include "cuda_backend/plan.h"
#include "cuda_backend/weight_tiles.h"
#include "tests/compute/random_data.h"
#include "tests/cuda_backend/gpu_limits.h"

namespace canopy::test {
namespace {

using namespace cuda;

WeightParams shape_of(uint32_t rows, uint32_t cols) {
  return {0, rows, cols};
}

TEST(ProductPlanTest, CutsColumnsByTheShapeAlone) {
  const auto cut = [](uint32_t rows, uint32_t cols, const TileShape& shape = kTileQ4K) {
    return column_cut(shape_of(rows, cols), shape);
  };
  EXPECT_EQ(cut(4096, 4096), (ColumnCut{4, 4, 2}));
  EXPECT_EQ(cut(4096, 12288), (ColumnCut{4, 12, 6}));
  EXPECT_EQ(cut(12288, 4096), (ColumnCut{2, 8, 4}));
  EXPECT_EQ(cut(24576, 4096), (ColumnCut{1, 16, 8}));
  EXPECT_EQ(cut(4096, 4096, kTileF32), (ColumnCut{2, 8, 4}));
  EXPECT_EQ(cut(576, 576), (ColumnCut{3, 1, 1}));
  EXPECT_EQ(cut(64, 32), (ColumnCut{1, 1, 1}));
  for (const uint32_t cols : {1u, 255u, 256u, 257u, 2560u, 4352u, 11008u, 14336u, 28672u}) {
    for (const uint32_t rows : {1u, 4096u, 10000u, 150000u}) {
      const ColumnCut c = cut(rows, cols);
      EXPECT_GE(c.chunks * c.chunk_supers * 256, cols);
      EXPECT_LT((c.chunks - 1) * c.chunk_supers * 256, cols);  // none is empty
      EXPECT_LE(c.segment_supers, c.chunk_supers);
      EXPECT_GE(c.segment_supers * 2, c.chunk_supers);
    }
  }
}

// Whatever the type, the width and the GPU, a block finds room, and on GPUs with such copies weights go ahead.
TEST(ProductPlanTest, FitsIntoTheSharedMemoryOfEachGpu) {
  for (uint32_t type = 0; type < kWeightTypes; ++type) {
    const TileShape& shape = tile_shape(static_cast<WeightType>(type));
    for (const GpuLimits& gpu : kGpus) {
      for (const uint32_t width : {1u, 8u, 9u, 16u, 32u, 64u, 200u}) {
        for (const auto& [rows, cols] : {std::pair{4096u, 4096u}, {24576u, 4096u}, {4096u, 12288u}, {100u, 300u}}) {
          SCOPED_TRACE(to_string(static_cast<WeightType>(type)) + ", capability " + std::to_string(gpu.capability) +
                       ", width " + std::to_string(width) + ", rows " + std::to_string(rows));
          const ProductPlan plan = plan_product(shape_of(rows, cols), shape, {}, {}, width, gpu);
          EXPECT_LE(plan.shared_bytes, gpu.shared_bytes);
          const ProductPlan heads = plan_product(shape_of(rows, cols), shape, {}, {}, width, gpu, ProductKind::heads);
          EXPECT_LE(heads.shared_bytes, gpu.shared_bytes);
          EXPECT_GE(plan.row_tiles[0] * plan.block_rows, rows);
          EXPECT_GE(plan.pass_tiles * plan.columns, width);
          EXPECT_EQ(plan.block_rows % kSquareBlock, 0u);
          EXPECT_EQ(plan.threads % 32, 0u);
          EXPECT_LE(plan.threads, 256u);
          if (width == 1 && gpu.capability >= 80 && rows > 100) {
            EXPECT_GE(plan.stages, 2u);
          }
        }
      }
    }
  }
}

// By Little's law an H100 needs some 18 KB of weights under way on each multiprocessor; a block, of which each has one
// at least in a large model's products, asks for more than 32 KB.
TEST(ProductPlanTest, KeepsEnoughUnderWayOnAnH100) {
  for (const WeightType type :
       {WeightType::q4_k, WeightType::q5_k, WeightType::q6_k, WeightType::q8_0, WeightType::bf16}) {
    for (const auto& [rows, cols] : {std::pair{4096u, 4096u}, {6144u, 4096u}, {24576u, 4096u}, {4096u, 12288u}}) {
      const ProductPlan plan = plan_product(shape_of(rows, cols), tile_shape(type), {}, {}, 1, {90, 227 << 10});
      EXPECT_GE(plan.stages * plan.stage_bytes * plan.threads / 32, 32u << 10) << to_string(type);
      EXPECT_GE(plan.row_tiles[0], 128u) << to_string(type) << " " << rows;
    }
  }
}

TEST(ProductPlanTest, IsNarrowForUpToEightRows) {
  const auto columns = [](uint32_t width, const GpuLimits& gpu) {
    return plan_product(shape_of(4096, 4096), kTileQ4K, {}, {}, width, gpu).columns;
  };
  for (const GpuLimits& gpu : {GpuLimits{90, 227 << 10, 132}, {89, 99 << 10, 128}, {75, 64 << 10, 68}}) {
    for (const uint32_t width : {1u, 8u}) EXPECT_EQ(columns(width, gpu), kNarrow);
    for (const uint32_t width : {9u, 16u}) EXPECT_EQ(columns(width, gpu), 16u);
  }
}

// As few units as possible have a block more than others: 192 blocks of 256 rows on 132 units would keep 72 of them
// idle half of the time.
TEST(ProductPlanTest, DealsOutWidePassesEvenly) {
  struct Blocks {
    uint32_t columns, rows;
    bool operator==(const Blocks&) const = default;
  };
  const auto blocks = [](uint32_t rows, uint32_t cols, const GpuLimits& gpu, const TileShape& shape = kTileQ4K) {
    const ProductPlan plan = plan_product(shape_of(rows, cols), shape, {}, {}, 64, gpu);
    return Blocks{plan.columns, plan.block_rows};
  };
  EXPECT_EQ(blocks(24576, 4096, {90, 227 << 10, 132}), (Blocks{64, 192}));
  EXPECT_EQ(blocks(4096, 12288, {90, 227 << 10, 132}), (Blocks{64, 256}));
  EXPECT_EQ(blocks(24576, 4096, {90, 227 << 10, 0}), (Blocks{64, 256}));
  EXPECT_EQ(blocks(24576, 4096, {90, 227 << 10, 132}, kTileF16), (Blocks{64, 128}));
  EXPECT_EQ(blocks(24576, 4096, {89, 99 << 10, 128}), (Blocks{64, 192}));
  EXPECT_EQ(blocks(24576, 4096, {86, 99 << 10, 82}), (Blocks{32, 128}));
  EXPECT_EQ(blocks(4096, 12288, {89, 99 << 10, 128}), (Blocks{32, 128}));
  // By warpgroups: as many rows as leave each unit a block at most, where that takes none of them longer.
  const GpuLimits hopper{90, 227 << 10, 132, true};
  EXPECT_EQ(blocks(24576, 4096, hopper), (Blocks{64, 384}));
  EXPECT_EQ(blocks(4096, 12288, hopper), (Blocks{64, 256}));
  EXPECT_EQ(blocks(34816, 5120, hopper), (Blocks{64, 192}));
  EXPECT_EQ(blocks(151936, 4096, hopper), (Blocks{64, 256}));
  EXPECT_EQ(blocks(24576, 4096, hopper, kTileF16), (Blocks{64, 128}));
}

// The same with fewer rows of the pass, where there is room for such blocks.
TEST(ProductPlanTest, ReadsRowsOfThePassSeldom) {
  const auto rows = [](uint32_t width, const GpuLimits& gpu, const TileShape& shape = kTileQ4K) {
    return plan_product(shape_of(24576, 4096), shape, {}, {}, width, gpu).block_rows;
  };
  for (const uint32_t width : {12u, 32u}) {
    EXPECT_EQ(rows(width, {90, 227 << 10, 132}), 384u);
    EXPECT_EQ(rows(width, {80, 163 << 10, 132}), 384u);
    EXPECT_EQ(rows(width, {80, 163 << 10, 108}), 128u);  // 128 blocks
    EXPECT_EQ(rows(width, {89, 99 << 10, 132}), 128u);
    EXPECT_EQ(rows(width, {90, 227 << 10, 132}, kTileF16), 128u);
    EXPECT_EQ(rows(width, {90, 227 << 10, 132}, kTileQ6K), 384u);
    EXPECT_EQ(rows(width, {80, 163 << 10, 132}, kTileQ6K), 128u);  // too large for two stages of its weights
  }
}

// 192 blocks on 132 units would keep 72 of them idle half of the time; of 384 they have two or three. Sums of squares
// need the larger ones.
TEST(ProductPlanTest, DealsOutNarrowPassesEvenly) {
  const auto plan = [](uint32_t rows, ProductKind kind, uint32_t units = 132) {
    return plan_product(shape_of(rows, 4096), kTileQ4K, {}, {}, 1, {90, 227 << 10, units}, kind);
  };
  EXPECT_EQ(plan(6144, ProductKind::heads).row_tiles[0], 384u);
  EXPECT_EQ(plan(6144, ProductKind::heads).threads, 128u);
  EXPECT_EQ(plan(6144, ProductKind::add).row_tiles[0], 192u);
  EXPECT_EQ(plan(6144, ProductKind::heads, 0).row_tiles[0], 192u);
  EXPECT_EQ(plan(4096, ProductKind::store).row_tiles[0], 128u);
}

// Whatever the scales are, the largest one of a weight is a half in tiles, and not far below the largest half.
TEST(WeightUnitTest, FollowsTheLargestScale) {
  for (uint32_t i = 0; i < kWeightTypes; ++i) {
    const auto type = static_cast<WeightType>(i);
    SCOPED_TRACE(to_string(type));
    for (const float scale : {0.0f, 0x1p-12f, 1.0f, 0x1p12f}) {
      Random random(i);
      const FileMatrix matrix = random.matrix(type, 80, 256, scale);
      const WeightPart part = matrix.part();
      TileLayout tiles = tile_layout({&part, 1}, WeightLayout::stacked);
      const bool is_dense = tiles.shape.code_bytes >= 16;
      std::vector<std::byte> group(tiles.group_bytes()), scratch;
      const auto largest = [&] {
        float of_all = 0;
        for (uint32_t g = 0; g < tiles.groups(); ++g) {
          of_all = std::max(of_all, fill_group({&part, 1}, WeightLayout::stacked, tiles, g, group, scratch));
        }
        return of_all;
      };
      tiles.unit = likely_unit({&part, 1}, WeightLayout::stacked, tiles);
      EXPECT_TRUE(fits_unit(largest()));
      EXPECT_EQ(tiles.unit == 1, is_dense || (scale == 0 && type != WeightType::mxfp4));
      tiles.unit = unit_for(tiles.unit, largest());
      EXPECT_TRUE(fits_unit(largest()));
    }
  }
}

}  // namespace
}  // namespace canopy::test
