// Products with many columns, which are cut into chunks and segments: what the cases of the ops are too small for.
#include <algorithm>
#include <set>

#include "engine/cuda_backend/product_plan.h"
#include "engine/cuda_backend/weight_tiles.h"
#include "tests/compute/op_test.h"
#include "tests/compute/rope_data.h"
#include "tests/cuda_backend/fake_device.h"
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

/// A product with a norm at several widths: each row against the same row alone, the last pass against the oracle.
struct DeepCase {
  WeightType type;
  uint32_t rows, cols;
  float scale = 1, last_scale = 1;  // of all rows, and beside that of the last 16

  FileMatrix matrix(Random& random) const {
    FileMatrix all = random.matrix(type, rows, cols, scale);
    if (last_scale == 1) return all;
    const FileMatrix last = random.matrix(type, kTileRows, cols, scale * last_scale);
    std::ranges::copy(last.data, all.data.end() - static_cast<ptrdiff_t>(last.data.size()));
    return all;
  }
  Results run(Device& device, const std::vector<uint32_t>& which) const {
    OpBench bench(device);
    Random random(rows + cols);
    const Weight* weight = bench.weight(matrix(random));
    const std::vector<float> all = random.values(size_t{pool} * cols);
    std::vector<float> values;
    for (const uint32_t row : which)
      values.insert(values.end(), all.begin() + row * cols, all.begin() + (row + 1) * cols);
    const auto width = static_cast<uint32_t>(which.size());
    const Activations* in = bench.activations(width, cols, values);
    Buffer* out = bench.output(uint64_t{width} * rows);
    bench.run([&](Recorder& r) { r(LinearArgs{width, weight, in, 1e-5f, out, rows, 0}); });
    return {bench.result("out", out, bench.of_products(f32_rounding))};
  }
  static constexpr uint32_t pool = 5;
};

class DeepProductTest : public OpTest {
 protected:
  void expect_same_rows(const DeepCase& c, const std::vector<uint32_t>& widths) {
    SCOPED_TRACE(std::string(to_string(c.type)) + " [" + std::to_string(c.rows) + ", " + std::to_string(c.cols) +
                 "] times " + std::to_string(c.scale) + ", " + std::to_string(c.last_scale));
    std::vector<std::vector<uint32_t>> alone;
    for (uint32_t row = 0; row < DeepCase::pool; ++row) alone.push_back(c.run(device(), {row})[0].words);
    for (const uint32_t width : widths) {
      std::vector<uint32_t> which(width);
      for (uint32_t w = 0; w < width; ++w) which[w] = (3 * w + width) % DeepCase::pool;
      const Results together = c.run(device(), which);
      for (uint32_t w = 0; w < width; ++w) {
        ASSERT_TRUE(std::equal(alone[which[w]].begin(), alone[which[w]].begin() + c.rows,
                               together[0].words.begin() + w * c.rows))
            << "row " << w << " of width " << width;
      }
    }
    expect_same(c.run(oracle(), {3, 1, 2}), c.run(device(), {3, 1, 2}));
  }
};

TEST_P(DeepProductTest, HasTheSameRowsAtAllWidths) {
  static constexpr DeepCase cases[] = {{WeightType::q4_k, 270, 4352},  {WeightType::q6_k, 40, 12544},
                                       {WeightType::f32, 70, 2100},    {WeightType::f16, 33, 4200},
                                       {WeightType::q8_0, 8200, 1056}, {WeightType::q5_1, 16400, 1184}};
  for (const DeepCase& c : cases) {
    if (c.rows > 1000) {
      expect_same_rows(c, {7, 33});
    } else {
      expect_same_rows(c, {2, 8, 9, 17, 33, 65});
    }
  }
}

// On GPUs with fewer or more units blocks have more or fewer rows, and after a fall back no warpgroups.
TEST_P(DeepProductTest, HasTheSameRowsInAllBlocks) {
  struct Case {
    uint32_t rows, units;
  };
  std::set<std::string> kernels;
  for (const Case& of : {Case{384, 4}, {384, 132}, {256, 3}}) {
    const DeepCase c{WeightType::q4_k, of.rows, 1280};
    std::vector<std::vector<uint32_t>> alone;
    for (uint32_t row = 0; row < DeepCase::pool; ++row) alone.push_back(c.run(device(), {row})[0].words);
    CudaDeviceOptions options = fake_device_options();
    options.facts.multiprocessors = of.units;
    const std::unique_ptr<Device> gpu = open_cuda_device(options);
    bool warpgroups = has_warpgroups(options.facts);
    do {
      for (const uint32_t width : {12u, 30u, 60u}) {
        const GpuLimits limits{options.facts.architecture, options.facts.shared_bytes, of.units, warpgroups};
        const ProductPlan plan =
            plan_product(shape_of(of.rows, c.cols), kTileQ4K, {}, {}, width, limits, ProductKind::store);
        kernels.insert(product_kernel(c.type, c.type, plan));
        SCOPED_TRACE(*kernels.find(product_kernel(c.type, c.type, plan)));
        std::vector<uint32_t> which(width);
        for (uint32_t w = 0; w < width; ++w) which[w] = (3 * w + width) % DeepCase::pool;
        const Results together = c.run(*gpu, which);
        for (uint32_t w = 0; w < width; ++w) {
          ASSERT_TRUE(std::equal(alone[which[w]].begin(), alone[which[w]].begin() + of.rows,
                                 together[0].words.begin() + w * of.rows))
              << "row " << w << " of width " << width << ", " << of.rows << " rows, " << of.units << " units";
        }
      }
      warpgroups = false;
    } while (gpu->fall_back());
    EXPECT_FALSE(gpu->fall_back());
  }
  if (device().info().adds_in_halves) return;
  const std::set<std::string> all = {"product_q4_k_16",
                                     "product_q4_k_32",
                                     "product_q4_k_64",
                                     "product_q4_k_64_6",
                                     "product_q4_k_16_384",
                                     "product_q4_k_32_384",
                                     "product_q4_k_64_warpgroups_192",
                                     "product_q4_k_64_warpgroups_256",
                                     "product_q4_k_64_warpgroups_384"};
  EXPECT_EQ(kernels, all);
}

// Scales at both ends of what a half can be, and some far larger than those that a weight's unit is guessed by.
TEST_P(DeepProductTest, TakesScalesOfAllSizes) {
  const auto cases = [&](WeightType type, float large, float small) {
    for (const DeepCase& c :
         {DeepCase{type, 80, 2304, large}, DeepCase{type, 80, 2304, small}, DeepCase{type, 80, 1280, 1, 0x1p9f},
          DeepCase{type, 80, 1280, 1, 0x1p-9f}, DeepCase{type, 80, 1280, 0, 1}}) {
      expect_same_rows(c, {2, 9, 33});
    }
  };
  cases(WeightType::q4_0, 0x1p18f, 0x1p-19f);
  cases(WeightType::q4_1, 0x1p15f, 0x1p-15f);
  cases(WeightType::q8_0, 0x1p22f, 0x1p-15f);
  cases(WeightType::q2_k, 0x1p20f, 0x1p-17f);
  cases(WeightType::q4_k, 0x1p21f, 0x1p-12f);
  cases(WeightType::q6_k, 0x1p27f, 0x1p-10f);
}

// Queries and keys in one type, values in another, with more columns than a chunk has: in one kernel, or in two where
// no kernel has both types. Heads of 96 begin anywhere in a block's rows.
TEST_P(DeepProductTest, FinishesHeadsOfWeightsOfTwoTypes) {
  for (const WeightType v_type : {WeightType::q6_k, WeightType::q8_0}) {
    for (const uint32_t width : {1u, 7u, 12u, 70u}) {
      const auto heads_case = [&](bool separately) {
        return [=](Device& device) {
          OpBench bench(device);
          Random random(width);
          const uint32_t cols = 1280, head_dim = 96, heads = 5, kv_heads = 2, context = 300;
          ProjectHeadsArgs args;
          args.weights = {bench.weight(random.matrix(WeightType::q4_k, (heads + kv_heads) * head_dim, cols)),
                          bench.weight(random.matrix(v_type, kv_heads * head_dim, cols))};
          args.in = bench.activations(width, cols, random.values(size_t{width} * cols));
          args.in_norm_eps = 1e-5f;
          args.qkv = bench.output(uint64_t{width} * (heads + 2 * kv_heads) * head_dim);
          args.heads.width = width;
          args.heads.qkv = args.qkv;
          args.heads.rows = bench.buffer(text_and_tree_rows(width, context).rows);
          args.heads.rotation = bench.buffer(rotation_table(context, head_dim));
          args.heads.q_norm = args.heads.k_norm = bench.buffer(random.values(head_dim));
          args.heads.norm_eps = 1e-6f;
          args.heads.heads = heads;
          args.heads.shape = {context, kv_heads, head_dim, CacheType::f32};
          const std::vector<float> empty(size_t{context} * kv_heads * head_dim);
          args.heads.cache = bench.kv(args.heads.shape, empty, empty);
          args.heads.q = bench.output(uint64_t{width} * heads * head_dim);
          bench.run([&](Recorder& r) {
            if (!separately) return r(args);
            for (const Op& op : separate_ops(args)) r(op);
          });
          const Tolerance tolerance = bench.of_products(f32_rounding);
          return Results{bench.keys("k", args.heads.cache, args.heads.shape, tolerance),
                         bench.values("v", args.heads.cache, args.heads.shape, tolerance),
                         bench.result("q", args.heads.q, tolerance)};
        };
      };
      SCOPED_TRACE(std::string(to_string(v_type)) + ", width " + std::to_string(width));
      Results together = heads_case(false)(device()), apart = heads_case(true)(device());
      expect_same(heads_case(false)(oracle()), together);
      for (size_t i = 0; i < together.size(); ++i) EXPECT_EQ(together[i].words, apart[i].words) << together[i].name;
    }
  }
}

CANOPY_OP_TESTS(DeepProductTest);

}  // namespace
}  // namespace canopy::test
