// The reference device, compared with numbers computed by hand.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "engine/compute/rows.h"
#include "tests/compute/devices.h"
#include "tests/compute/op_bench.h"

namespace canopy::test {
namespace {

FileMatrix f32_matrix(uint32_t rows, uint32_t cols, const std::vector<float>& values) {
  const auto bytes = as_bytes_of(values);
  return {WeightType::f32, rows, cols, {bytes.begin(), bytes.end()}};
}

/// The first `count` floats of a result.
std::vector<float> head(const Result& result, size_t count) {
  std::vector<float> values = floats(result.words);
  values.resize(count);
  return values;
}

class OracleTest : public testing::Test {
 protected:
  OpBench bench{oracle()};
};

TEST_F(OracleTest, EmbedLooksUpAndAppliesTheNormWeight) {
  const Weight* table = bench.weight(f32_matrix(2, 2, {1, 2, 3, 4}));
  RowBatch batch;
  batch.add_text(1, 0);
  const Buffer* norm = bench.buffer(std::vector<float>{10, 100});
  const Buffer* rows = bench.buffer(batch.rows);
  Buffer* x = bench.output(2);
  Activations* out = bench.output_activations(1, 2);
  const Weight* sum = bench.weight(f32_matrix(1, 2, {1, 1}));
  Buffer* y = bench.output(1);
  bench.run([&](Recorder& r) {
    r(EmbedArgs{1, table, rows, x, {norm}, out});
    r(LinearArgs{1, sum, out, 0.5f, y, 1, 0});
  });
  EXPECT_EQ(head(bench.result("x", x, exact), 2), (std::vector<float>{3, 4}));
  EXPECT_EQ(head(bench.result("out", out, 1, exact), 2), (std::vector<float>{30, 400}));
  // The norm uses the mean of squares of x, 12.5, not that of the weighted values.
  EXPECT_FLOAT_EQ(head(bench.result("y", y, exact), 1)[0], 430.0f / std::sqrt(13.0f));
}

TEST_F(OracleTest, LinearMultipliesRowsByColumns) {
  const Weight* weight = bench.weight(f32_matrix(3, 2, {1, 2, 3, 4, 5, 6}));
  const Activations* in = bench.activations(2, 2, {1, 10, 2, 20});
  Buffer* out = bench.output(2 * 5);
  bench.run([&](Recorder& r) { r(LinearArgs{2, weight, in, 0, out, 5, 1}); });
  const Result result = bench.result("out", out, exact);
  const std::vector<float> values = floats(result.words);
  EXPECT_EQ(std::vector<float>(values.begin() + 1, values.begin() + 4), (std::vector<float>{21, 43, 65}));
  EXPECT_EQ(std::vector<float>(values.begin() + 6, values.begin() + 9), (std::vector<float>{42, 86, 130}));
  for (const size_t gap : {0, 4, 5, 9, 10}) EXPECT_EQ(result.words[gap], poison) << gap;
}

TEST_F(OracleTest, LinearAddAddsToTheResidualAndTaps) {
  const Weight* weight = bench.weight(f32_matrix(2, 2, {1, 2, 3, 4}));
  const Activations* in = bench.activations(1, 2, {1, 1});
  Buffer* x = bench.buffer(std::vector<float>{100, 200});
  const Buffer* norm = bench.buffer(std::vector<float>{2, -1});
  Activations* out = bench.output_activations(1, 2);
  Buffer* aux = bench.output(4);
  bench.run([&](Recorder& r) { r(LinearAddArgs{1, weight, in, x, {norm}, out, aux, 4, 1}); });
  EXPECT_EQ(head(bench.result("x", x, exact), 2), (std::vector<float>{103, 207}));
  EXPECT_EQ(head(bench.result("out", out, 1, exact), 2), (std::vector<float>{206, -207}));
  const Result copied = bench.result("tap", aux, exact);
  EXPECT_EQ(copied.words[0], poison);
  EXPECT_EQ(floats({copied.words[1], copied.words[2]}), (std::vector<float>{103, 207}));
  EXPECT_EQ(copied.words[3], poison);
}

TEST_F(OracleTest, LinearSwigluGatesWithItsEvenRows) {
  const Weight* weight = bench.paired_weight(f32_matrix(2, 1, {2, 0}), f32_matrix(2, 1, {5, 7}));
  const Activations* in = bench.activations(1, 1, {1});
  Activations* out = bench.output_activations(1, 2);
  bench.run([&](Recorder& r) { r(LinearSwigluArgs{1, weight, in, 0, out}); });
  const std::vector<float> values = head(bench.result("out", out, 1, exact), 2);
  EXPECT_FLOAT_EQ(values[0], 8.80797078f);  // 2 / (1 + e^-2) * 5
  EXPECT_EQ(values[1], 0.0f);               // silu(0) = 0
}

/// One head, one kv head of dimension 4, position 1, a quarter turn for pair 0 and none for pair 1.
class OracleRopeTest : public OracleTest {
 protected:
  std::vector<float> q;
  std::vector<float> k;
  std::vector<float> v;

  void run(bool interleaved, const std::vector<float>& norm) {
    const KvShape shape{3, 1, 4, CacheType::f16};
    RowBatch batch;
    batch.add_node(0, 2, 1, -1);  // at position 1, in slot 2
    RopeStoreArgs args;
    args.width = 1;
    args.qkv = bench.buffer(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 1.0f / 3});
    args.rows = bench.buffer(batch.rows);
    args.rotation = bench.buffer(std::vector<float>{9, 9, 9, 9, 0, 1, 1, 0});
    if (!norm.empty()) args.q_norm = bench.buffer(norm);
    args.heads = 1;
    args.shape = shape;
    args.interleaved = interleaved;
    KvLayer* cache = bench.kv(shape, std::vector<float>(12), std::vector<float>(12));
    args.cache = cache;
    args.q = bench.output(4);
    bench.run([&](Recorder& r) { r(args); });
    q = head(bench.result("q", args.q, exact), 4);
    k = floats(bench.keys("k", cache, shape, exact).words);
    v = floats(bench.values("v", cache, shape, exact).words);
  }
};

TEST_F(OracleRopeTest, TurnsHalvesAndWritesTheRowsSlot) {
  run(false, {});
  EXPECT_EQ(q, (std::vector<float>{-3, 2, 1, 4}));
  EXPECT_EQ(k, (std::vector<float>{0, 0, 0, 0, 0, 0, 0, 0, -7, 6, 5, 8}));
  EXPECT_EQ(v, (std::vector<float>{0, 0, 0, 0, 0, 0, 0, 0, 9, 10, 11, 0x1.554p-2f}));  // 1/3 as a half
}

TEST_F(OracleRopeTest, TurnsNeighbours) {
  run(true, {});
  EXPECT_EQ(q, (std::vector<float>{-2, 1, 3, 4}));
}

TEST_F(OracleRopeTest, NormalisesBeforeItTurns) {
  run(false, {2, 1, 1, 1});
  const float scale = 1 / std::sqrt(7.5f);  // mean of 1, 4, 9, 16
  EXPECT_FLOAT_EQ(q[0], -3 * scale);
  EXPECT_FLOAT_EQ(q[2], 2 * scale);
  EXPECT_EQ(k[8], -7);  // k has no norm here
}

TEST_F(OracleTest, AttentionWeighsValuesByTheSoftmaxOfItsPath) {
  // Slots 0 and 3 are visible: the prefix of one position, and the row itself in slot 3.
  const KvShape shape{4, 1, 2, CacheType::f32};
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const KvLayer* cache = bench.kv(shape, {0, 0, nan, nan, nan, nan, 1, 0}, {1, 10, nan, nan, nan, nan, 3, 30});
  RowBatch batch;
  batch.add_node(0, 3, 1, -1);
  AttentionArgs args;
  args.width = 1;
  args.q = bench.buffer(std::vector<float>{2, 5, 0, 7});  // two heads share the kv head
  args.rows = bench.buffer(batch.rows);
  args.ancestors = bench.buffer(batch.ancestors);
  args.pages = bench.buffer(std::vector<uint32_t>{0});
  args.heads = 2;
  args.shape = shape;
  args.scale = std::log(3.0f) / 2;  // scores 0 and log 3 for head 0: weights 1/4 and 3/4; 0 and 0 for head 1
  args.max_positions = 2;
  args.cache = cache;
  Activations* out = bench.output_activations(1, 4);
  args.out = out;
  bench.run([&](Recorder& r) { r(args); });
  const std::vector<float> values = head(bench.result("out", out, 1, exact), 4);
  EXPECT_FLOAT_EQ(values[0], 2.5f);
  EXPECT_FLOAT_EQ(values[1], 25.0f);
  EXPECT_FLOAT_EQ(values[2], 2.0f);
  EXPECT_FLOAT_EQ(values[3], 20.0f);
}

TEST_F(OracleTest, AddBiasAddsByColumn) {
  Buffer* x = bench.buffer(std::vector<float>{1, 2, 3, 4});
  const Buffer* bias = bench.buffer(std::vector<float>{10, -2});
  bench.run([&](Recorder& r) { r(AddBiasArgs{2, 2, bias, x}); });
  EXPECT_EQ(head(bench.result("x", x, exact), 4), (std::vector<float>{11, 0, 13, 2}));
}

TEST_F(OracleTest, SelectKeepsTheSumsOfSquares) {
  const Activations* in = bench.activations(2, 2, {9, 9, 3, 4});
  const Buffer* index = bench.buffer(std::vector<uint32_t>{1});
  Activations* out = bench.output_activations(1, 2);
  const Weight* sum = bench.weight(f32_matrix(1, 2, {1, 1}));
  Buffer* y = bench.output(1);
  bench.run([&](Recorder& r) {
    r(SelectArgs{2, 1, in, index, out});
    r(LinearArgs{1, sum, out, 0.5f, y, 1, 0});
  });
  EXPECT_EQ(head(bench.result("out", out, 1, exact), 2), (std::vector<float>{3, 4}));
  EXPECT_FLOAT_EQ(head(bench.result("y", y, exact), 1)[0], 7 / std::sqrt(13.0f));
}

TEST_F(OracleTest, ArgmaxTakesTheFirstOfTheLargest) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Buffer* logits = bench.buffer(std::vector<float>{1, 3, 3, nan, nan, -5, -2, nan, nan, nan, nan, nan});
  Buffer* out = bench.output(6);
  bench.run([&](Recorder& r) { r(ArgmaxArgs{3, logits, 4, out}); });
  const Result result = bench.integers("out", out);
  EXPECT_EQ(result.words[0], 1u);
  EXPECT_EQ(result.words[1], std::bit_cast<uint32_t>(3.0f));
  EXPECT_EQ(result.words[2], 2u);
  EXPECT_EQ(result.words[3], std::bit_cast<uint32_t>(-2.0f));
  EXPECT_EQ(result.words[4], 0xFFFFFFFFu);
}

TEST_F(OracleTest, TopKOrdersAndSums) {
  const Buffer* logits = bench.buffer(std::vector<float>{0, 1, 1, -1});
  Buffer* ids = bench.output(3);
  Buffer* values = bench.output(3);
  Buffer* sum = bench.output(1);
  bench.run([&](Recorder& r) { r(TopKArgs{1, logits, 4, 3, ids, values, sum}); });
  const Result order = bench.integers("ids", ids);
  EXPECT_EQ(std::vector<uint32_t>(order.words.begin(), order.words.begin() + 3), (std::vector<uint32_t>{1, 2, 0}));
  EXPECT_EQ(head(bench.result("values", values, exact), 3), (std::vector<float>{1, 1, 0}));
  EXPECT_FLOAT_EQ(head(bench.result("sum", sum, exact), 1)[0], 1.91757580f);  // log(1 + 2 e + 1 / e)
}

TEST_F(OracleTest, KvMoveSwaps) {
  const KvShape shape{3, 1, 2, CacheType::f32};
  KvCache* layers = bench.kv_layers(shape, 1);
  KvLayer* cache = &layers->layer(0);
  oracle().write_kv(*cache, false, 0, std::vector<float>{1, 2, 3, 4, 5, 6});
  oracle().write_kv(*cache, true, 0, std::vector<float>{-1, -2, -3, -4, -5, -6});
  const Buffer* moves = bench.buffer(std::vector<uint32_t>{0, 2, 2, 0});
  bench.run([&](Recorder& r) { r(KvMoveArgs{moves, 2, shape, layers}); });
  EXPECT_EQ(floats(bench.keys("k", cache, shape, exact).words), (std::vector<float>{5, 6, 3, 4, 1, 2}));
  EXPECT_EQ(floats(bench.values("v", cache, shape, exact).words), (std::vector<float>{-5, -6, -3, -4, -1, -2}));
}

/// One head of one row that is [2, 2] at the start: the numbers of a step worked out by hand.
TEST_F(OracleTest, DeltaNetDecaysThenCorrectsWhatTheKeyFinds) {
  const DeltaShape shape{1, 1, 4, 4, 2, false};
  // S = [[1, 2], [3, 4]] in its corner, query (1, 1), key (1, 0), value (10, 20), beta 0.5, decay 0.5.
  const Buffer* in = bench.buffer(std::vector<float>{1, 1, 0, 0, 1, 0, 0, 0, 10, 20, 0, 0, 0.5f, 0.5f, 0, 0});
  Buffer* states = bench.buffer(std::vector<float>{1, 2, 0, 0, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  Buffer* spare = bench.output(16);
  Buffer* out = bench.output(4);
  const Buffer* steps = bench.buffer(std::vector<DeltaStep>{{0, DeltaStep::kNone, 0, 0}});
  bench.run([&](Recorder& r) { r(DeltaNetArgs{1, 1, in, steps, shape, states, spare, out}); });
  // Decayed: [[0.5, 1], [1.5, 2]]. The key finds (0.5, 1); u = 0.5 (9.5, 19) = (4.75, 9.5).
  EXPECT_EQ(head(bench.result("states", states, exact), 8), (std::vector<float>{5.25f, 10.5f, 0, 0, 1.5f, 2, 0, 0}));
  EXPECT_EQ(head(bench.result("out", out, exact), 4), (std::vector<float>{6.75f, 12.5f, 0, 0}));
}

TEST_F(OracleTest, ScansAddWhatTheyAreGiven) {
  const DeltaShape shape{1, 1, 4, 4, 2, false, false};
  // As above, with a skip of 0.5.
  const Buffer* in = bench.buffer(std::vector<float>{1, 1, 0, 0, 1, 0, 0, 0, 10, 20, 0, 0, 0.5f, 0.5f, 0, 0});
  Buffer* states = bench.buffer(std::vector<float>{1, 2, 0, 0, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  Buffer* spare = bench.output(16);
  Buffer* out = bench.output(4);
  const Buffer* skip = bench.buffer(std::vector<float>{0.5f});
  const Buffer* steps = bench.buffer(std::vector<DeltaStep>{{0, DeltaStep::kNone, 0, 0}});
  bench.run([&](Recorder& r) { r(DeltaNetArgs{1, 1, in, steps, shape, states, spare, out, skip}); });
  // Decayed: [[0.5, 1], [1.5, 2]]; u = 0.5 (10, 20).
  EXPECT_EQ(head(bench.result("states", states, exact), 8), (std::vector<float>{5.5f, 11, 0, 0, 1.5f, 2, 0, 0}));
  EXPECT_EQ(head(bench.result("out", out, exact), 4), (std::vector<float>{7 + 5, 13 + 10, 0, 0}));
}

TEST_F(OracleTest, InputsOfScansAreNeitherNormedNorGated) {
  const DeltaShape shape{1, 1, 4, 4, 2, false, false};
  const float nothing = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> row(12, 100);  // where silu is what it is given
  row.insert(row.end(), {-1, nothing, nothing, nothing});
  std::vector<float> taps, conv_bias;
  for (uint32_t c = 0; c < 12; ++c) taps.insert(taps.end(), {1, 10});
  for (uint32_t c = 0; c < 12; ++c) conv_bias.push_back(static_cast<float>(c));
  DeltaInputsArgs args{.width = 1,
                       .rows = 1,
                       .in = bench.buffer(row),
                       .steps = bench.buffer(std::vector<DeltaStep>{{0, DeltaStep::kNone, 0, DeltaStep::kNone}}),
                       .shape = shape,
                       .taps = bench.buffer(taps),
                       .bias = bench.buffer(std::vector<float>{1}),
                       .rate = bench.buffer(std::vector<float>{-2}),
                       .tails = bench.buffer(std::vector<float>(12, 7)),
                       .out = bench.output(16),
                       .conv_bias = bench.buffer(conv_bias)};
  bench.run([&](Recorder& r) { r(args); });
  const std::vector<float> out = floats(bench.result("out", args.out, exact).words);
  for (uint32_t c = 0; c < 12; ++c) EXPECT_FLOAT_EQ(out[c], 1007 + static_cast<float>(c));
  EXPECT_FLOAT_EQ(out[12], std::log(2.0f));  // softplus of 0
  EXPECT_FLOAT_EQ(out[13], 0.25f);           // exp(-2 log 2)
}

TEST_F(OracleTest, GatedNormWithinNormsWhatIsGated) {
  // silu of 100 is 100, of -100 nothing: (100, 0, 200, 0), whose mean of squares is 12500; the heads have their
  // weights.
  const GatedNormArgs args{.width = 1,
                           .heads = 2,
                           .head_dim = 4,
                           .in = bench.buffer(std::vector<float>{1, 5, 2, 7, 1, 1, 1, 1}),
                           .gate = bench.buffer(std::vector<float>{100, -100, 100, -100, 100, 100, 100, 100}),
                           .weight = bench.buffer(std::vector<float>{1, 1, 1, 1, 1, 2, 3, 4}),
                           .eps = 0,
                           .out = bench.output_activations(1, 8),
                           .gate_within = true};
  bench.run([&](Recorder& r) { r(args); });
  const std::vector<float> out = floats(bench.result("out", args.out, 1, exact).words);
  const float mean_root = std::sqrt(12500.0f);
  const std::vector<float> expected = {100 / mean_root, 0, 200 / mean_root, 0, 1, 2, 3, 4};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(out[i], expected[i], 1e-6f) << i;
}

TEST_F(OracleTest, SquareReluLeavesNothingOfWhatIsBelowZero) {
  Activations* out = bench.output_activations(1, 4);
  const Buffer* in = bench.buffer(std::vector<float>{-3, 0, 1.5f, 4});
  bench.run([&](Recorder& r) { r(SquareReluArgs{1, in, out}); });
  EXPECT_EQ(floats(bench.result("out", out, 1, exact).words), (std::vector<float>{0, 0, 2.25f, 16}));
}

TEST_F(OracleTest, DeltaInputsTakesWindowsByParents) {
  const DeltaShape shape{1, 1, 4, 4, 3, false};
  const uint32_t size = shape.row_elements();
  std::vector<float> rows(size_t{3} * size);
  for (uint32_t w = 0; w < 3; ++w) {
    for (uint32_t c = 0; c < 12; ++c) rows[w * size + c] = static_cast<float>(w + 1) * (c < 8 ? 1 : 100);
  }
  std::vector<float> tails(2 * 12, -7);  // of place 0, which nobody names
  tails.insert(tails.end(), 12, 1000);   // of place 1: the older row
  tails.insert(tails.end(), 12, 2000);
  std::vector<float> taps;
  for (uint32_t c = 0; c < 12; ++c) taps.insert(taps.end(), {1, 10, 100});
  // Row 0 follows the text, rows 1 and 2 both follow row 0.
  const std::vector<DeltaStep> steps = {{0, DeltaStep::kNone, 1, DeltaStep::kNone},
                                        {1, 0, DeltaStep::kNone, DeltaStep::kNone},
                                        {2, 0, 1, DeltaStep::kNone}};
  DeltaInputsArgs args{.width = 3,
                       .rows = 3,
                       .in = bench.buffer(rows),
                       .steps = bench.buffer(steps),
                       .shape = shape,
                       .taps = bench.buffer(taps),
                       .bias = bench.buffer(std::vector<float>{0}),
                       .rate = bench.buffer(std::vector<float>{-1}),
                       .tails = bench.buffer(tails),
                       .out = bench.output(uint64_t{3} * size)};
  bench.run([&](Recorder& r) { r(args); });
  const std::vector<float> out = floats(bench.result("out", args.out, exact).words);
  // Of a value, where silu of a large number is the number.
  EXPECT_FLOAT_EQ(out[8], 1000 + 20000 + 10000);
  EXPECT_FLOAT_EQ(out[size + 8], 2000 + 1000 + 20000);
  EXPECT_FLOAT_EQ(out[2 * size + 8], 2000 + 1000 + 30000);
  EXPECT_FLOAT_EQ(out[0], 0.25f);  // a query of four equal elements: 1 / sqrt(4), and 1 / sqrt(key_dim) beside it
  EXPECT_FLOAT_EQ(out[4], 0.5f);   // a key
  EXPECT_FLOAT_EQ(out[12], 0.5f);  // beta of 0
  EXPECT_FLOAT_EQ(out[13], 0.5f);  // exp(-log(1 + exp(0)))
}

TEST_F(OracleTest, ShortConvTakesWindowsByParentsBetweenItsGates) {
  // Of two columns B = (1, 2), C = (1, 3) and x = 1, 2, 3 in rows 0, 1, 2; the tail of the text has 1000, then 2000.
  std::vector<float> rows;
  for (const float x : {1.0f, 2.0f, 3.0f}) rows.insert(rows.end(), {1, 2, 1, 3, x, x});
  const std::vector<float> tails = {-7, -7, -7, -7, 1000, 1000, 2000, 2000, 0, 0, 0, 0};
  // Row 0 follows the text, rows 1 and 2 both follow row 0; the tail behind row 2 is kept.
  const std::vector<DeltaStep> steps = {{0, DeltaStep::kNone, 1, DeltaStep::kNone},
                                        {1, 0, DeltaStep::kNone, DeltaStep::kNone},
                                        {2, 0, DeltaStep::kNone, 2}};
  ShortConvArgs args{.width = 3,
                     .rows = 3,
                     .cols = 2,
                     .taps = 3,
                     .in = bench.buffer(rows),
                     .steps = bench.buffer(steps),
                     .kernel = bench.buffer(std::vector<float>{1, 10, 100, 1, 10, 100}),
                     .tails = bench.buffer(tails),
                     .out = bench.output_activations(3, 2)};
  bench.run([&](Recorder& r) { r(args); });
  EXPECT_EQ(floats(bench.result("out", args.out, 3, exact).words),
            (std::vector<float>{1000 + 20000 + 100, 3 * (1000 + 20000 + 200), 2000 + 10 + 200, 3 * (2000 + 20 + 400),
                                2000 + 10 + 300, 3 * (2000 + 20 + 600)}));
  EXPECT_EQ(head(bench.result("tails", args.tails, exact), 12),
            (std::vector<float>{-7, -7, -7, -7, 1000, 1000, 2000, 2000, 1, 2, 3, 6}));
}

}  // namespace
}  // namespace canopy::test
