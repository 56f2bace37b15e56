#include "engine/base/error.h"
#include "tests/compute/op_test.h"
#include "tests/compute/rope_data.h"

namespace canopy::test {
namespace {

struct ProjectHeadsCase {
  WeightType type;    // of the rows of q and k
  WeightType v_type;  // of the rows of v, which many files store in a finer type
  uint32_t cols;
  uint32_t heads;
  uint32_t kv_heads;
  uint32_t head_dim;
  CacheType cache;
  uint32_t width;
  bool interleaved = true;
  bool with_norms = false;
  uint32_t query_offset = 0;
  bool separately = false;  // run it as linear and rope_store, even if the device can do both in one

  Results operator()(Device& device) const {
    OpBench bench(device);
    Random random(heads + head_dim + width);
    const uint32_t context = 200;
    const uint32_t kv_width = kv_heads * head_dim;
    const std::vector<const Weight*> weights = {bench.weight(random.matrix(type, heads * head_dim + kv_width, cols)),
                                                bench.weight(random.matrix(v_type, kv_width, cols))};
    ProjectHeadsArgs args;
    args.weights = weights;
    args.in = bench.activations(width, cols, random.values(size_t{width} * cols));
    args.in_norm_eps = 1e-5f;
    args.qkv = bench.output(uint64_t{width} * (heads * head_dim + 2 * kv_width));
    args.heads.width = width;
    args.heads.qkv = args.qkv;
    args.heads.rows = bench.buffer(text_and_tree_rows(width, context).rows);
    args.heads.rotation = bench.buffer(rotation_table(context + query_offset, head_dim));
    args.heads.query_offset = query_offset;
    args.heads.k_norm = with_norms ? bench.buffer(random.values(head_dim)) : nullptr;
    args.heads.q_norm = heads > 0 ? args.heads.k_norm : nullptr;
    args.heads.norm_eps = 1e-6f;
    args.heads.heads = heads;
    args.heads.shape = {context, kv_heads, head_dim, cache};
    args.heads.interleaved = interleaved;
    const std::vector<float> before(size_t{context} * kv_width, 0.0f);
    KvLayer* layer = bench.kv(args.heads.shape, before, before);
    args.heads.cache = layer;
    args.heads.q = heads > 0 ? bench.output(uint64_t{width} * heads * head_dim) : nullptr;
    bench.run([&](Recorder& r) {
      if (!separately) return r(args);
      for (const Op& op : separate_ops(args)) r(op);
    });
    const auto stored = [&](WeightType of) -> Tolerance {
      const Tolerance products = bench.of_products(cache == CacheType::f32 ? f32_rounding : f16_rounding, of);
      if (cache != CacheType::q8_0) return products;
      return {products.nmse + q8_rounding.nmse, products.max_error + q8_rounding.max_error};
    };
    Results results = {bench.keys("k", layer, args.heads.shape, stored(type)),
                       bench.values("v", layer, args.heads.shape, stored(v_type))};
    if (heads > 0) results.push_back(bench.result("q", args.heads.q, bench.of_products(f32_rounding, type)));
    return results;
  }
};

constexpr ProjectHeadsCase cases[] = {
    {WeightType::q4_1, WeightType::q4_1, 96, 9, 3, 64, CacheType::f16, 1},
    {WeightType::q4_1, WeightType::q8_0, 160, 4, 2, 32, CacheType::f16, 5},
    {WeightType::f32, WeightType::f16, 36, 3, 1, 16, CacheType::f32, 7},
    {WeightType::q4_k, WeightType::q6_k, 256, 2, 1, 64, CacheType::f32, 9},
    {WeightType::bf16, WeightType::bf16, 100, 5, 5, 24, CacheType::f16, 17},
    {WeightType::q8_0, WeightType::q8_0, 64, 4, 4, 8, CacheType::f32, 33},
    {WeightType::q4_1, WeightType::q4_1, 96, 4, 2, 32, CacheType::f16, 4, false},
    {WeightType::q4_1, WeightType::q4_1, 96, 4, 2, 32, CacheType::f32, 6, true, true},
    {WeightType::q4_1, WeightType::q8_0, 96, 0, 3, 64, CacheType::f16, 5},  // K and V only
    {WeightType::f32, WeightType::f32, 36, 0, 2, 16, CacheType::f32, 9, false, true},
    // Heads that lie in several tiles, or tiles with several heads, over chunks of columns.
    {WeightType::q4_k, WeightType::q6_k, 2048, 3, 1, 128, CacheType::f16, 1, false, true},
    {WeightType::q4_1, WeightType::q8_0, 2080, 5, 2, 80, CacheType::f16, 19, false, true},
    {WeightType::q8_0, WeightType::q4_1, 3104, 2, 2, 96, CacheType::q8_0, 3, false, true},
    {WeightType::q4_1, WeightType::q4_1, 2048, 1, 1, 256, CacheType::q8_0, 18, true, true},
    {WeightType::f16, WeightType::q4_1, 2048, 2, 2, 64, CacheType::q8_0, 5, true},
    {WeightType::q4_1, WeightType::q4_1, 96, 2, 1, 256, CacheType::f32, 34, false, true},
    // Queries that turn by rows of their own.
    {WeightType::q4_k, WeightType::q6_k, 256, 4, 2, 64, CacheType::f16, 5, true, false, 200},
    {WeightType::q4_1, WeightType::q8_0, 2080, 3, 1, 96, CacheType::q8_0, 18, false, true, 61},
    {WeightType::f32, WeightType::f32, 36, 3, 1, 16, CacheType::f32, 9, true, false, 200},
    {WeightType::q8_0, WeightType::q8_0, 64, 4, 4, 8, CacheType::f32, 33, true, false, 1},
    {WeightType::bf16, WeightType::bf16, 128, 4, 1, 32, CacheType::f32, 7, true, false, 200},
};

/// On slow devices one of five.
bool is_under_test(const ProjectHeadsCase& c) {
  return !is_slow_device() || (&c - cases) % 5 == 0;
}

class ProjectHeadsTest : public OpTest {};

TEST_P(ProjectHeadsTest, AgreesWithTheOracle) {
  for (const ProjectHeadsCase& c : cases) {
    if (!is_under_test(c)) continue;
    SCOPED_TRACE("case " + std::to_string(&c - cases));
    compare(c);
  }
}

// The bits must not depend on whether a device fuses, as rows of one pass may be computed fused and those of another
// not.
TEST_P(ProjectHeadsTest, HasTheBitsOfItsTwoHalves) {
  for (const ProjectHeadsCase& c : cases) {
    if (!is_under_test(c)) continue;
    SCOPED_TRACE("case " + std::to_string(&c - cases));
    ProjectHeadsCase apart = c;
    apart.separately = true;
    Results expected = apart(device());
    Results actual = c(device());
    for (Results* results : {&expected, &actual}) {
      for (Result& result : *results) result.tolerance = exact;
    }
    expect_same(expected, actual);
  }
}

TEST_P(ProjectHeadsTest, RefusesWeightsThatAreNotTheHeads) {
  OpBench bench(device());
  Random random(1);
  const std::vector<const Weight*> weights = {bench.weight(random.matrix(WeightType::f32, 64, 32))};
  ProjectHeadsArgs args;
  args.weights = weights;
  args.in = bench.activations(1, 32, random.values(32));
  args.qkv = bench.output(96);
  args.heads.width = 1;
  args.heads.qkv = args.qkv;
  args.heads.rows = bench.buffer(text_and_tree_rows(1, 10).rows);
  args.heads.rotation = bench.buffer(rotation_table(10, 16));
  args.heads.heads = 4;
  args.heads.shape = {10, 1, 16, CacheType::f32};
  args.heads.interleaved = true;
  args.heads.cache = bench.kv(args.heads.shape, std::vector<float>(160), std::vector<float>(160));
  args.heads.q = bench.output(64);
  EXPECT_THROW(bench.run([&](Recorder& r) { r(args); }), Error);  // 64 rows, but 4 + 2 heads of 16
}

CANOPY_OP_TESTS(ProjectHeadsTest);

}  // namespace
}  // namespace canopy::test
