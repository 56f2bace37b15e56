// Products with many columns, which are cut into chunks and segments: what the cases of the ops are too small for.
#include <algorithm>

#include "engine/cuda_backend/product_plan.h"
#include "engine/cuda_backend/weight_tiles.h"
#include "tests/compute/op_test.h"
#include "tests/compute/rope_data.h"
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
  EXPECT_EQ(blocks(4096, 12288, {89, 99 << 10, 128}), (Blocks{64, 256}));
}

/// A product with a norm at several widths: each row against the same row alone, the last pass against the oracle.
struct DeepCase {
  WeightType type;
  uint32_t rows, cols;

  Results run(Device& device, const std::vector<uint32_t>& which) const {
    OpBench bench(device);
    Random random(rows + cols);
    const Weight* weight = bench.weight(random.matrix(type, rows, cols));
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

class DeepProductTest : public OpTest {};

TEST_P(DeepProductTest, HasTheSameRowsAtAllWidths) {
  static constexpr DeepCase cases[] = {{WeightType::q4_k, 270, 4352},  {WeightType::q6_k, 40, 12544},
                                       {WeightType::f32, 70, 2100},    {WeightType::f16, 33, 4200},
                                       {WeightType::q8_0, 8200, 1056}, {WeightType::q5_1, 16400, 1184}};
  for (const DeepCase& c : cases) {
    SCOPED_TRACE(std::string(to_string(c.type)) + " [" + std::to_string(c.rows) + ", " + std::to_string(c.cols) + "]");
    const bool is_large = c.rows > 1000;
    std::vector<std::vector<uint32_t>> alone;
    for (uint32_t row = 0; row < DeepCase::pool; ++row) alone.push_back(c.run(device(), {row})[0].words);
    for (const uint32_t width : is_large ? std::vector{7u, 33u} : std::vector{2u, 8u, 9u, 17u, 33u, 65u}) {
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
