#include "tests/compute/op_test.h"

namespace canopy::test {
namespace {

struct LinearCase {
  WeightType type;
  uint32_t rows;
  uint32_t cols;
  uint32_t width;
  enum Data { random, integers, subnormal } data = random;
  float norm_eps = 0;

  /// The result has an offset in wider rows: the columns beside it must stay unchanged.
  Results operator()(Device& device) const {
    OpBench bench(device);
    Random random_data(rows + cols + width);
    const FileMatrix matrix = data == random     ? random_data.matrix(type, rows, cols)
                              : data == integers ? random_data.integer_matrix(type, rows, cols)
                                                 : random_data.subnormal_matrix(type, rows, cols);
    const size_t inputs = size_t{width} * cols;
    const Weight* weight = bench.weight(matrix);
    const Activations* in = bench.activations(
        width, cols,
        data == integers ? bench.integer_activations(random_data, width, cols) : random_data.values(inputs));
    const uint32_t offset = width % 3;
    const uint32_t stride = rows + offset + width % 2;
    Buffer* out = bench.output(uint64_t{width} * stride);
    bench.run([&](Recorder& r) { r(LinearArgs{width, weight, in, norm_eps, out, stride, offset}); });
    return {bench.result("out", out,
                         data == integers ? bench.of_integer_products(type) : bench.of_products(f32_rounding, type))};
  }
};

std::string describe(const LinearCase& c) {
  return std::string(to_string(c.type)) + " [" + std::to_string(c.rows) + ", " + std::to_string(c.cols) + "], width " +
         std::to_string(c.width);
}

/// Every width with some of the shapes, so that each shape has narrow and wide passes; at most 20 MFLOP for each case.
std::vector<LinearCase> covering_cases(WeightType type) {
  static constexpr uint32_t widths[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 64, 65, 130};
  static constexpr uint32_t rows[] = {1, 3, 8, 33, 64, 100, 200, 257};
  const std::vector<uint32_t> cols = columns_for(type, {20, 32, 36, 96, 100, 160, 576, 800});
  std::vector<LinearCase> cases;
  for (size_t i = 0; i < std::size(widths); ++i) {
    for (size_t j = 0; j < 2; ++j) {
      LinearCase c{type, rows[(3 * i + 4 * j) % std::size(rows)], cols[(i + 3 * j) % cols.size()], widths[i]};
      c.data = (i + j) % 2 == 0 ? LinearCase::integers : LinearCase::random;
      if (uint64_t{2} * c.rows * c.cols * c.width <= 20'000'000) cases.push_back(c);
    }
  }
  return cases;
}

class LinearTest : public OpTest {};

TEST_P(LinearTest, AgreesWithTheOracleOnOddShapes) {
  for (const WeightType type : weight_types_under_test()) {
    for (const LinearCase& c : covering_cases(type)) {
      SCOPED_TRACE(describe(c));
      compare(c);
    }
  }
}

TEST_P(LinearTest, AppliesTheNormOfItsInput) {
  for (const uint32_t width : {1u, 5u, 16u, 33u}) {
    const LinearCase c{WeightType::q8_0, 100, 160, width, LinearCase::random, 1e-5f};
    SCOPED_TRACE(describe(c));
    compare(c);
  }
}

TEST_P(LinearTest, KeepsSubnormalHalves) {
  for (const WeightType type : weight_types_under_test()) {
    for (const uint32_t width : {1u, 4u, 17u}) {
      const LinearCase c{type, 33, columns_for(type, {96})[0], width, LinearCase::subnormal};
      SCOPED_TRACE(describe(c));
      compare(c);
    }
  }
}

TEST_P(LinearTest, TakesTheOutputHeadOfAModel) {
  const LinearCase c{WeightType::q4_1, 4100, 576, 3};
  compare(c);
}

TEST_P(LinearTest, StacksPartsInOrder) {
  const auto op_case = [](Device& device) {
    OpBench bench(device);
    Random random(5);
    const FileMatrix q = random.matrix(WeightType::q4_1, 9, 64);
    const FileMatrix k = random.matrix(WeightType::q4_1, 3, 64);
    const FileMatrix v = random.matrix(WeightType::q4_1, 5, 64);
    const WeightPart parts[] = {q.part(), k.part(), v.part()};
    const auto weight = device.make_weight(parts, WeightLayout::stacked, "qkv");
    EXPECT_EQ(weight->rows(), 17u);
    EXPECT_EQ(weight->cols(), 64u);
    const Activations* in = bench.activations(2, 64, random.values(128));
    Buffer* out = bench.output(34);
    bench.run([&](Recorder& r) { r(LinearArgs{2, weight.get(), in, 0, out, 17, 0}); });
    return Results{bench.result("out", out, bench.of_products(f32_rounding, WeightType::q4_1))};
  };
  compare(op_case);
}

CANOPY_OP_TESTS(LinearTest);

}  // namespace
}  // namespace canopy::test
