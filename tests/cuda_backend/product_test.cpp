// Products with many columns, which are cut into chunks and segments: what the cases of the ops are too small for.
#include "tests/compute/op_test.h"
#include "tests/compute/rope_data.h"
#include "tests/cuda_backend/deep_case.h"

namespace canopy::test {
namespace {

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
