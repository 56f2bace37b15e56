// Products with experts: tiles of pairs, and weights with so many columns that they are cut into chunks and segments.
#include <algorithm>
#include <map>

#include "cuda_backend/plan.h"
#include "cuda_backend/weight_tiles.h"
#include "tests/compute/contract_rows.h"
#include "tests/compute/expert_data.h"
#include "tests/compute/op_test.h"
#include "tests/cuda_backend/gpu_limits.h"

namespace canopy::test {
namespace {

using namespace cuda;

// Pairs that are together read weights once; a kernel that groups them is worth it where several would be read again.
TEST(ExpertPlanTest, GroupsPairsWhereExpertsAreSharedByRows) {
  const ExpertCounts many{128, 8}, few{32, 4};
  for (const uint32_t width : {1u, 2u}) EXPECT_EQ(columns_of_experts(many, width), 1u);
  for (const uint32_t width : {8u, 16u}) EXPECT_EQ(columns_of_experts(many, width), 8u);
  EXPECT_EQ(columns_of_experts(few, 1), 1u);
  EXPECT_EQ(columns_of_experts(few, 8), 8u);
  EXPECT_EQ(columns_of_experts(many, 512), 16u);
  // Five rows of an expert are a narrow product.
  EXPECT_EQ(columns_of_experts(many, 80), 8u);
}

TEST(ExpertPlanTest, FitsIntoTheSharedMemoryOfEachGpu) {
  for (uint32_t type = 0; type < kWeightTypes; ++type) {
    const TileShape& shape = tile_shape(static_cast<WeightType>(type));
    for (const GpuLimits& gpu : kGpus) {
      for (const uint32_t columns : {1u, 8u, 16u}) {
        for (const auto& [rows, cols] : {std::pair{1536u, 2048u}, {2048u, 768u}, {28672u, 4096u}, {48u, 300u}}) {
          SCOPED_TRACE(to_string(static_cast<WeightType>(type)) + ", capability " + std::to_string(gpu.capability) +
                       ", columns " + std::to_string(columns) + ", rows " + std::to_string(rows));
          const ExpertPlan plan = plan_experts({0, rows, cols}, shape, columns, gpu);
          EXPECT_LE(plan.shared_bytes, gpu.shared_bytes);
          EXPECT_LE(plan.product.shared_bytes, plan.totals_at);
          EXPECT_LT(plan.tile_at, plan.shared_bytes);
          EXPECT_GE(plan.product.row_tiles[0] * plan.product.block_rows, rows);
          EXPECT_LE(plan.product.threads, columns == 16 ? 128u : 256u);
          // The order of a row's sums is that of one pair.
          EXPECT_EQ(plan.product.cut, plan_experts({0, rows, cols}, shape, 1, gpu).product.cut);
          if (gpu.capability >= 80) {
            EXPECT_GE(plan.product.stages, 2u);
          }
        }
      }
    }
  }
}

TEST(ExpertPlanTest, HasRoomForTheTilesOfAnyChoice) {
  Random random(5);
  for (const ExpertCounts& experts : {ExpertCounts{8, 2}, {5, 3}, {128, 8}, {3, 1}, {4, 4}}) {
    for (const uint32_t width : {1u, 2u, 7u, 33u, 200u}) {
      for (const uint32_t columns : {1u, 8u, 16u}) {
        const std::vector<uint32_t> chosen = random_choice(random, experts, width, width == 7);
        std::map<uint32_t, uint32_t> counts;
        for (const uint32_t e : chosen) ++counts[e];
        uint32_t tiles = 0;
        for (const auto& [expert, count] : counts) tiles += (count + columns - 1) / columns;
        const auto pairs = static_cast<uint32_t>(chosen.size());
        EXPECT_LE(tiles, most_expert_tiles(experts, pairs, columns));
        EXPECT_LE(most_expert_tiles(experts, pairs, columns), pairs + (columns > 1 ? pairs / columns : 0));
      }
    }
  }
}

/// Down and up of experts with many columns: the products of each pair against those of its row alone.
struct DeepExperts {
  WeightType type;
  uint32_t ffn, hidden;
  ExpertCounts experts{4, 2};
  static constexpr uint32_t kPool = 5;

  Results run(Device& device, const std::vector<uint32_t>& which) const {
    OpBench bench(device);
    Random random(ffn + hidden);
    const ExpertMatrices::Weights weights = ExpertMatrices(random, type, experts, ffn, hidden).on(bench);
    const std::vector<uint32_t> choice = random_choice(random, experts, kPool, false);
    const std::vector<float> all = random.values(size_t{kPool} * hidden),
                             inner = random.values(size_t{kPool} * 2 * ffn), shares = random.values(size_t{kPool} * 2);
    const auto width = static_cast<uint32_t>(which.size());
    std::vector<uint32_t> chosen;
    std::vector<float> rows, gated_rows, row_shares;
    for (const uint32_t w : which) {
      chosen.insert(chosen.end(), choice.begin() + 2 * w, choice.begin() + 2 * w + 2);
      rows.insert(rows.end(), all.begin() + w * hidden, all.begin() + (w + 1) * hidden);
      gated_rows.insert(gated_rows.end(), inner.begin() + 2 * w * ffn, inner.begin() + 2 * (w + 1) * ffn);
      row_shares.insert(row_shares.end(), shares.begin() + 2 * w, shares.begin() + 2 * w + 2);
    }
    const Buffer* chosen_buffer = bench.buffer(chosen);
    Activations* gated = bench.output_activations(2 * width, ffn);
    Buffer* products = bench.output(uint64_t{width} * 2 * hidden);
    bench.run([&](Recorder& r) {
      r(ExpertSwigluArgs{width, experts, weights.gate_up, bench.activations(width, hidden, rows), 1e-5f, chosen_buffer,
                         gated});
      r(ExpertAddArgs{.width = width,
                      .experts = experts,
                      .weight = weights.down,
                      .in = bench.activations(2 * width, ffn, gated_rows),
                      .chosen = chosen_buffer,
                      .shares = bench.buffer(row_shares),
                      .products = products,
                      .x = bench.buffer(std::vector<float>(size_t{width} * hidden)),
                      .norm = {bench.buffer(std::vector<float>(hidden, 1))},
                      .out = bench.output_activations(width, hidden)});
    });
    return {
        bench.result("gated", gated, 2 * width, bench.of_products(f32_exp, type)),
        trimmed(bench.result("products", products, bench.of_products(f32_rounding, type)), size_t{2} * width * hidden)};
  }
};

class DeepExpertTest : public OpTest {};

TEST_P(DeepExpertTest, HaveTheSameRowsAtAllWidths) {
  static constexpr DeepExperts cases[] = {{WeightType::q8_0, 32, 4352}, {WeightType::f16, 3360, 48}};
  for (const DeepExperts& c : cases) {
    SCOPED_TRACE(std::string(to_string(c.type)) + ", ffn " + std::to_string(c.ffn));
    std::vector<Results> alone;
    for (uint32_t row = 0; row < DeepExperts::kPool; ++row) alone.push_back(c.run(device(), {row}));
    for (const uint32_t width : {5u, 12u, 40u}) {  // pairs in tiles of eight, of eight or 16, and of 16
      std::vector<uint32_t> which(width);
      for (uint32_t w = 0; w < width; ++w) which[w] = (3 * w + width) % DeepExperts::kPool;
      const Results together = c.run(device(), which);
      for (size_t i = 0; i < together.size(); ++i) {
        const size_t of_row = alone[0][i].words.size();
        for (uint32_t w = 0; w < width; ++w) {
          ASSERT_TRUE(std::equal(alone[which[w]][i].words.begin(), alone[which[w]][i].words.end(),
                                 together[i].words.begin() + static_cast<ptrdiff_t>(w * of_row)))
              << together[i].name << " of row " << w << " of width " << width;
        }
      }
    }
    expect_same(c.run(oracle(), {3, 1, 2}), c.run(device(), {3, 1, 2}));
  }
}

CANOPY_OP_TESTS(DeepExpertTest);

}  // namespace
}  // namespace canopy::test
