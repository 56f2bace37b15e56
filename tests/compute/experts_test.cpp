// Mixtures of experts: the router's choice, and products with the experts that each row has chosen.

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/compute/expert_data.h"
#include "tests/compute/op_test.h"

namespace canopy::test {
namespace {

struct RouteCase {
  ExpertCounts experts;
  uint32_t cols, width;
  bool of_chosen = true;
  float norm_eps = 1e-6f;
  bool integers = false;  // logits that are exact in f32, with many ties
  bool has_bias = false;
  bool has_scales = false;
  float factor = 1;
  bool sigmoid = false;
  bool has_choice_bias = false;
  uint32_t groups = 1, groups_used = 1;

  Results operator()(Device& device) const {
    OpBench bench(device);
    Random random(experts.all + cols + width);
    const size_t router_size = size_t{experts.router_rows()} * cols, in_size = size_t{width} * cols;
    const std::vector<float> router = integers ? random.integers(router_size, 1) : random.values(router_size);
    const std::vector<float> inputs = integers ? random.integers(in_size, 1) : random.values(in_size);
    const std::vector<float> biases = random.integers(experts.router_rows(), 3);
    const std::vector<float> scales = random.values(experts.all);
    // Halves, so that sums with the scores of equal logits stay equal.
    std::vector<float> choice_biases = random.integers(experts.all, 1);
    for (float& bias : choice_biases) bias /= 2;
    Buffer* logits = bench.output(uint64_t{width} * experts.router_rows());
    Buffer* chosen = bench.output(uint64_t{width} * experts.used);
    Buffer* shares = bench.output(uint64_t{width} * experts.row_shares());
    bench.run([&](Recorder& r) {
      r(RouteArgs{.width = width,
                  .experts = experts,
                  .router = bench.buffer(router),
                  .in = bench.activations(width, cols, inputs),
                  .norm_eps = norm_eps,
                  .of_chosen = of_chosen,
                  .logits = logits,
                  .chosen = chosen,
                  .shares = shares,
                  .bias = has_bias ? bench.buffer(biases) : nullptr,
                  .scales = has_scales ? bench.buffer(scales) : nullptr,
                  .factor = factor,
                  .sigmoid = sigmoid,
                  .choice_bias = has_choice_bias ? bench.buffer(choice_biases) : nullptr,
                  .groups = groups,
                  .groups_used = groups_used});
    });
    return {bench.result("logits", logits, integers ? exact : f32_rounding), bench.integers("chosen", chosen),
            bench.result("shares", shares, f32_exp)};
  }
};

class RouteTest : public OpTest {};

TEST_P(RouteTest, AgreesWithTheOracle) {
  static constexpr RouteCase cases[] = {{{8, 2}, 64, 1},          {{128, 8}, 256, 3},       {{5, 1}, 33, 7, false},
                                        {{6, 6}, 290, 17},        {{130, 9}, 96, 2, false}, {{2, 1}, 1, 5},
                                        {{1024, 64}, 20, 2},      {{256, 8, true}, 64, 5},  {{3, 1, true}, 7, 9, false},
                                        {{1024, 64, true}, 12, 1}};
  for (const RouteCase& one : cases) {
    SCOPED_TRACE(describe(one.experts) + ", cols " + std::to_string(one.cols) + ", width " + std::to_string(one.width));
    compare(one);
  }
}

TEST_P(RouteTest, ScalesTheSharesOfTheChosen) {
  for (const ExpertCounts experts : {ExpertCounts{6, 2}, ExpertCounts{130, 64}, ExpertCounts{9, 9, true}}) {
    SCOPED_TRACE(describe(experts));
    compare(RouteCase{experts, 70, 5, true, 1e-6f, false, true, true});
    compare(RouteCase{experts, 9, 3, false, 0, true, false, true});
  }
}

// As DeepSeek 3 and GLM 4.5 choose.
TEST_P(RouteTest, ChoosesBySigmoidsABiasAndGroups) {
  static constexpr ExpertCounts some = {8, 3}, many = {256, 8, true, false}, odd = {33, 4}, gated = {12, 2, true};
  const auto by_sigmoid = [](ExpertCounts experts, uint32_t width, bool of_chosen, bool has_choice_bias,
                             uint32_t groups, uint32_t groups_used, bool integers = false) {
    RouteCase one{experts, integers ? 9u : 64u, width, of_chosen, integers ? 0 : 1e-6f, integers};
    one.factor = 2.5f;
    one.sigmoid = true;
    one.has_choice_bias = has_choice_bias;
    one.groups = groups;
    one.groups_used = groups_used;
    return one;
  };
  for (const bool integers : {false, true}) {
    SCOPED_TRACE(integers ? "with ties" : "without ties");
    compare(by_sigmoid(some, 5, true, true, 4, 2, integers));
    compare(by_sigmoid(some, 9, false, true, 1, 1, integers));
    compare(by_sigmoid(odd, 3, true, false, 1, 1, integers));
    compare(by_sigmoid(odd, 3, true, true, 11, 7, integers));
    compare(by_sigmoid(gated, 4, true, true, 6, 1, integers));
    compare(by_sigmoid(many, 3, true, true, 8, 4, integers));
    compare(by_sigmoid(many, 1, false, false, 128, 5, integers));
  }
}

TEST_P(RouteTest, CountsASharedExpertWithoutAGateAsOne) {
  RouteCase one{{8, 2, true, false}, 32, 7, false};
  one.factor = 0.5f;
  compare(one);
  one.of_chosen = true;
  one.has_scales = true;
  compare(one);
}

TEST_P(RouteTest, RefusesGroupsThatDoNotFit) {
  for (const auto& [groups, groups_used] : {std::pair{3u, 1u}, {8u, 2u}, {4u, 5u}, {4u, 0u}, {4u, 1u}}) {
    RouteCase one{{8, 3}, 8, 1};
    one.sigmoid = true;
    one.groups = groups;
    one.groups_used = groups_used;
    EXPECT_THROW(one(device()), Error) << groups << ", " << groups_used;
  }
  RouteCase softmax{{8, 3}, 8, 1};
  softmax.has_choice_bias = true;
  EXPECT_THROW(softmax(device()), Error);
}

// Small integers: many logits are equal, and a choice by anything but the lower number shows.
TEST_P(RouteTest, TiesGoToTheLowerExpert) {
  for (const ExpertCounts experts :
       {ExpertCounts{64, 8}, ExpertCounts{200, 33}, ExpertCounts{7, 7}, ExpertCounts{60, 60, true}}) {
    compare(RouteCase{experts, 9, 11, true, 0, true});
    compare(RouteCase{experts, 9, 11, true, 0, true, true});
  }
}

/// Marks of two layers' experts, then how many there are. Some rows stand for nothing, and some bits were set before.
struct TouchedCase {
  ExpertCounts experts;
  uint32_t width;

  Results operator()(Device& device) const {
    OpBench bench(device);
    Random random(experts.all + width);
    const uint32_t cols = 20, words = experts.touched_words();
    RowBatch batch;
    for (uint32_t w = 0; w < width; ++w) batch.add_text(w, w);
    for (uint32_t w = 2; w < width; w += 3) batch.rows[w] = Row();
    std::vector<uint32_t> before(3 * words);
    before[words] = 1;
    Buffer* touched = bench.buffer(before);
    Buffer* marks = bench.buffer(before);
    Buffer* counts = bench.output(3);
    const auto route = [&](uint32_t layer, Buffer* to) {
      return RouteArgs{.width = width,
                       .experts = experts,
                       .router = bench.buffer(random.integers(size_t{experts.router_rows()} * cols, 1)),
                       .in = bench.activations(width, cols, random.integers(size_t{width} * cols, 1)),
                       .logits = bench.output(uint64_t{width} * experts.router_rows()),
                       .chosen = bench.output(uint64_t{width} * experts.used),
                       .shares = bench.output(uint64_t{width} * experts.row_shares()),
                       .rows = bench.buffer(batch.rows),
                       .touched = to,
                       .layer = layer};
    };
    bench.run([&](Recorder& r) {
      r(route(2, marks));
      r(route(1, touched));
      r(route(2, touched));
      r(CountExpertsArgs{3, experts, touched, counts});
    });
    return {bench.integers("marks", marks), bench.integers("touched", touched), bench.integers("counts", counts)};
  }
};

TEST_P(RouteTest, MarksTheExpertsThatRowsTouchAndCountsThem) {
  for (const uint32_t width : {1u, 2u, 9u, 33u}) {
    SCOPED_TRACE(width);
    compare(TouchedCase{{8, 2}, width});
    compare(TouchedCase{{130, 9, true}, width});
  }
  compare(TouchedCase{{1024, 64}, 5});
  compare(TouchedCase{{32, 1}, 3});
}

TEST_P(RouteTest, AddsABias) {
  for (const uint32_t width : {1u, 6u}) compare(RouteCase{{33, 4}, 96, width, true, 1e-5f, false, true});
}

TEST_P(RouteTest, NanIsBelowAllNumbersAndChosenExpertsExist) {
  compare([](Device& device) {
    OpBench bench(device);
    const uint32_t cols = 3;
    const ExpertCounts experts{6, 4};
    const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
    // Expert e's logit is its first weight: NaN, -inf, 2, NaN, -1, -inf.
    std::vector<float> router;
    for (const float first : {nan, -infinity, 2.0f, nan, -1.0f, -infinity}) router.insert(router.end(), {first, 0, 0});
    // The second row has nothing but NaN.
    const std::vector<float> inputs = {1, 0, 0, nan, 0, 0};
    Buffer* chosen = bench.output(2 * experts.used);
    bench.run([&](Recorder& r) {
      r(RouteArgs{.width = 2,
                  .experts = experts,
                  .router = bench.buffer(router),
                  .in = bench.activations(2, cols, inputs),
                  .logits = bench.output(uint64_t{2} * experts.all),
                  .chosen = chosen,
                  .shares = bench.output(2 * experts.used)});
    });
    const Result result = bench.integers("chosen", chosen);
    const std::vector<uint32_t> expected = {2, 4, 1, 5, 0, 1, 2, 3};
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), result.words.begin()));
    return Results{result};
  });
}

TEST_P(RouteTest, CountsOutOfBoundsAreRefused) {
  for (const ExpertCounts experts :
       {ExpertCounts{0, 0}, ExpertCounts{4, 5}, ExpertCounts{4, 0}, ExpertCounts{1025, 2}, ExpertCounts{100, 65}}) {
    SCOPED_TRACE(describe(experts));
    EXPECT_THROW(RouteCase({experts, 8, 1})(device()), std::exception);
  }
}

CANOPY_OP_TESTS(RouteTest);

struct ExpertCase {
  WeightType type;
  ExpertCounts experts;
  uint32_t ffn, hidden, width;
  float norm_eps = 1e-6f;
  bool same = false;  // all rows have chosen the same experts
  bool aux = false;
  float limit = 0;  // with biases, where above 0
  bool gelu = false;

  Results operator()(Device& device) const {
    OpBench bench(device);
    Random random(ffn + hidden + width);
    const ExpertMatrices matrices(random, type, experts, ffn, hidden);
    const ExpertMatrices::Weights weights = matrices.on(bench);
    const uint32_t pairs = width * experts.used, stride = 2 * hidden + 3;
    const Buffer* chosen = bench.buffer(random_choice(random, experts, width, same));
    const Buffer* shares = bench.buffer(random.values(size_t{width} * experts.row_shares()));
    const Buffer* shared = experts.shared ? bench.buffer(random.values(size_t{width} * hidden)) : nullptr;
    const Activations* in = bench.activations(width, hidden, random.values(size_t{width} * hidden));
    Activations* gated = bench.output_activations(pairs, ffn);
    const Activations* to_add = bench.activations(pairs, ffn, random.values(size_t{pairs} * ffn));
    Buffer* products = bench.output(uint64_t{pairs} * hidden);
    Buffer* x = bench.buffer(random.values(size_t{width} * hidden));
    Buffer* taps = aux ? bench.output(uint64_t{width} * stride) : nullptr;
    Activations* out = bench.output_activations(width, hidden);
    const Buffer *gate_up_bias = nullptr, *down_bias = nullptr;
    if (limit > 0) gate_up_bias = bench.buffer(random.values(size_t{experts.all} * 2 * ffn));
    if (limit > 0) down_bias = bench.buffer(random.values(size_t{experts.all} * hidden));
    bench.run([&](Recorder& r) {
      r(ExpertSwigluArgs{width, experts, weights.gate_up, in, norm_eps, chosen, gated, gate_up_bias, limit,
                         gelu ? GateFunction::gelu : GateFunction::silu});
      r(ExpertAddArgs{.width = width,
                      .experts = experts,
                      .weight = weights.down,
                      .in = to_add,
                      .chosen = chosen,
                      .shares = shares,
                      .shared = shared,
                      .products = products,
                      .x = x,
                      .norm = {bench.buffer(random.values(hidden))},
                      .out = out,
                      .aux = taps,
                      .aux_stride = stride,
                      .aux_offset = 2,
                      .bias = down_bias});
    });
    Results results = {bench.result("gated", gated, pairs, bench.of_products(f32_exp, type)),
                       bench.result("products", products, bench.of_products(f32_rounding, type)),
                       bench.result("x", x, bench.of_products(f32_rounding, type)),
                       bench.result("out", out, width, bench.of_products(f32_rounding, type)),
                       bench.norm_probe(out, width)};
    if (aux) results.push_back(bench.result("aux", taps, bench.of_products(f32_rounding, type)));
    return results;
  }
};

class ExpertTest : public OpTest {
 protected:
  /// Of those experts, what the device takes: CUDA's begin at whole tiles.
  static bool is_for(const Device& device, uint32_t ffn, uint32_t hidden) {
    return device.info().backend != "cuda" || (2 * ffn % 16 == 0 && hidden % 16 == 0);
  }
  static bool is_under_test(WeightType type) {
    const std::vector<WeightType> types = weight_types_under_test();
    return std::ranges::find(types, type) != types.end();
  }
};

TEST_P(ExpertTest, AgreeWithTheOracle) {
  struct Shape {
    ExpertCounts experts;
    uint32_t ffn, hidden, width;
  };
  static constexpr Shape shapes[] = {{{8, 2}, 32, 64, 1},        {{5, 3}, 96, 32, 3},   {{4, 4}, 32, 160, 7},
                                     {{3, 1, true}, 64, 288, 8}, {{16, 4}, 32, 96, 19}, {{6, 2, true}, 160, 32, 65}};
  for (const WeightType type : weight_types_under_test()) {
    for (const Shape& s : shapes) {
      const uint32_t ffn = columns_for(type, {s.ffn})[0], hidden = columns_for(type, {s.hidden})[0];
      SCOPED_TRACE(std::string(to_string(type)) + " " + describe(s.experts) + ", ffn " + std::to_string(ffn) +
                   ", hidden " + std::to_string(hidden) + ", width " + std::to_string(s.width));
      compare(ExpertCase{type, s.experts, ffn, hidden, s.width, s.width % 2 == 0 ? 0.0f : 1e-6f, false, s.width == 7});
      if (block_size(type).elements == 256) break;  // one shape that rows of such blocks can have
    }
  }
}

/// Heads with a matrix of their own each, as those that make keys and values of a latent.
struct HeadsCase {
  WeightType type;
  uint32_t heads, rows, cols, width;

  Results operator()(Device& device) const {
    OpBench bench(device);
    const uint32_t pairs = width * heads;
    Random random(pairs);
    std::vector<uint32_t> chosen;
    for (uint32_t i = 0; i < pairs; ++i) chosen.push_back(i % heads);
    Buffer* products = bench.output(uint64_t{pairs} * rows);
    const ExpertAddArgs args{.width = pairs,
                             .experts = {heads, 1},
                             .weight = bench.weight(random.matrix(type, heads * rows, cols)),
                             .in = bench.activations(pairs, cols, random.values(size_t{pairs} * cols)),
                             .chosen = bench.buffer(chosen),
                             .products = products,
                             .norm = {}};
    bench.run([&](Recorder& r) { r(args); });
    return {bench.result("products", products, bench.of_products(f32_rounding, type))};
  }
};

TEST_P(ExpertTest, GiveProductsAloneOfHeads) {
  struct Shape {
    uint32_t heads, rows, cols, width;
  };
  static constexpr Shape shapes[] = {{4, 48, 32, 1}, {4, 16, 96, 9}, {1, 32, 64, 3}, {20, 64, 64, 33}};
  for (const WeightType type : weight_types_under_test()) {
    for (const Shape& s : shapes) {
      const uint32_t cols = columns_for(type, {s.cols})[0];
      SCOPED_TRACE(std::string(to_string(type)) + " " + std::to_string(s.heads) + " heads of [" +
                   std::to_string(s.rows) + ", " + std::to_string(cols) + "], width " + std::to_string(s.width));
      compare(HeadsCase{type, s.heads, s.rows, cols, s.width});
      if (block_size(type).elements == 256) break;  // one shape that rows of such blocks can have
    }
  }
}

// As of DeepSeek 3 in a pass of 512 rows and one more: more pairs than devices have workgroups for along one axis.
TEST_P(ExpertTest, GiveProductsOfManyHeadsAndRows) {
  compare(HeadsCase{WeightType::f16, 128, 16, 32, 513});
}

// Experts whose rows are no whole number of tiles, bands or blocks.
TEST_P(ExpertTest, OfOddSizesAgreeWithTheOracle) {
  for (const auto& [ffn, hidden] : {std::pair{33u, 70u}, {5u, 131u}, {129u, 1u}, {1u, 9u}, {70u, 322u}}) {
    if (!is_for(device(), ffn, hidden)) {
      EXPECT_THROW((ExpertCase{WeightType::f16, {7, 3}, ffn, hidden, 1})(device()), std::exception);
      continue;
    }
    for (const uint32_t width : {1u, 5u, 12u, 33u}) {
      SCOPED_TRACE("ffn " + std::to_string(ffn) + ", hidden " + std::to_string(hidden) + ", width " +
                   std::to_string(width));
      compare(ExpertCase{WeightType::f16, {7, 3, width > 1}, ffn, hidden, width, 1e-6f, false, true});
    }
  }
}

// The limit is in the middle of what gates and their factors are, which random blocks of MXFP4 make large.
TEST_P(ExpertTest, WithBiasesAndClampedGatesAgreeWithTheOracle) {
  for (const auto& [type, limit] : {std::pair{WeightType::f16, 3.0f}, {WeightType::mxfp4, 100.0f}}) {
    if (!is_under_test(type)) continue;
    for (const uint32_t width : {1u, 7u, 19u}) {
      SCOPED_TRACE(std::string(to_string(type)) + ", width " + std::to_string(width));
      compare(ExpertCase{type, {5, 2}, 96, 160, width, 1e-6f, false, true, limit});
    }
  }
  if (is_for(device(), 33, 70)) compare(ExpertCase{WeightType::f16, {7, 3}, 33, 70, 9, 1e-6f, false, false, 0.75f});
}

// All rows with the same experts, as rows of one tree may have, and with all experts.
TEST_P(ExpertTest, ThatAllRowsHaveChosenAgreeWithTheOracle) {
  for (const uint32_t width : {4u, 9u, 64u, 130u}) {
    SCOPED_TRACE("width " + std::to_string(width));
    compare(ExpertCase{WeightType::q8_0, {12, 2}, 32, 64, width, 1e-6f, true});
    compare(ExpertCase{WeightType::q8_0, {3, 3}, 32, 64, width, 1e-6f});
  }
}

/// Groups of rows are shared by the two products of a layer, but not by those of the next: in one recording the choice
/// is made anew in the same buffer, between two layers and between the products of one.
struct ChangingChoice {
  uint32_t width;

  Results operator()(Device& device) const {
    OpBench bench(device);
    Random random(width);
    const ExpertCounts experts{6, 2};
    const uint32_t ffn = 32, hidden = 64, pairs = width * experts.used;
    const ExpertMatrices::Weights weights = ExpertMatrices(random, WeightType::f16, experts, ffn, hidden).on(bench);
    Buffer* chosen = bench.buffer(random_choice(random, experts, width, true));
    const Activations* in = bench.activations(width, hidden, random.values(size_t{width} * hidden));
    const Activations* to_add = bench.activations(pairs, ffn, random.values(size_t{pairs} * ffn));
    Activations *first = bench.output_activations(pairs, ffn), *second = bench.output_activations(pairs, ffn);
    Buffer *products = bench.output(uint64_t{pairs} * hidden), *last = bench.output(uint64_t{pairs} * hidden);
    const auto route = [&] {
      return RouteArgs{.width = width,
                       .experts = experts,
                       .router = bench.buffer(random.values(size_t{experts.all} * hidden)),
                       .in = in,
                       .logits = bench.output(uint64_t{width} * experts.all),
                       .chosen = chosen,
                       .shares = bench.output(uint64_t{pairs})};
    };
    const auto add = [&](Buffer* to) {
      return ExpertAddArgs{.width = width,
                           .experts = experts,
                           .weight = weights.down,
                           .in = to_add,
                           .chosen = chosen,
                           .shares = bench.buffer(random.values(pairs)),
                           .products = to,
                           .x = bench.buffer(random.values(size_t{width} * hidden)),
                           .norm = {bench.buffer(random.values(hidden))},
                           .out = bench.output_activations(width, hidden)};
    };
    bench.run([&](Recorder& r) {
      r(ExpertSwigluArgs{width, experts, weights.gate_up, in, 0, chosen, first});
      r(route());
      r(ExpertSwigluArgs{width, experts, weights.gate_up, in, 0, chosen, second});
      r(add(products));
      r(ExpertSwigluArgs{width, experts, weights.gate_up, in, 0, chosen, first});
      r(route());
      r(add(last));
    });
    return {bench.result("second", second, pairs, bench.of_products(f32_exp, WeightType::f16)),
            bench.result("products", products, bench.of_products(f32_rounding, WeightType::f16)),
            bench.result("last", last, bench.of_products(f32_rounding, WeightType::f16))};
  }
};

TEST_P(ExpertTest, AChoiceThatIsMadeAnewIsGroupedAnew) {
  for (const uint32_t width : {12u, 40u}) compare(ChangingChoice{width});
}

TEST_P(ExpertTest, AWeightThatIsNoWholeNumberOfExpertsIsRefused) {
  EXPECT_THROW(
      {
        OpBench bench(device());
        Random random(1);
        const ExpertMatrices matrices(random, WeightType::f32, {4, 2}, 32, 64);
        const ExpertMatrices::Weights weights = matrices.on(bench);
        const Activations* in = bench.activations(1, 64, random.values(64));
        Activations* out = bench.output_activations(2, 32);
        const Buffer* chosen = bench.buffer(std::vector<uint32_t>{0, 1});
        bench.run([&](Recorder& r) { r(ExpertSwigluArgs{1, {5, 2}, weights.gate_up, in, 0, chosen, out}); });
      },
      std::exception);
}

CANOPY_OP_TESTS(ExpertTest);

}  // namespace
}  // namespace canopy::test
