// Tests of OpBench itself: that it finds the faults it is made for.

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "engine/format/dequantize.h"
#include "tests/compute/devices.h"
#include "tests/compute/op_bench.h"
#include "tests/compute/random_data.h"

namespace canopy::test {
namespace {

Result result(std::vector<float> values, Tolerance tolerance = exact) {
  return {"r", words(values), true, tolerance};
}
const float untouched = std::bit_cast<float>(poison);
const float nan = std::numeric_limits<float>::quiet_NaN();

TEST(Difference, AcceptsEqualValuesAndBothZeros) {
  EXPECT_EQ(difference(result({1, -2, 0, untouched}), result({1, -2, -0.0f, untouched})), "");
}

TEST(Difference, FindsOneBitWhereResultsAreExact) {
  EXPECT_NE(difference(result({1, 2}), result({1, std::nextafter(2.0f, 3.0f)})), "");
}

TEST(Difference, FindsAWriteIntoTheGuard) {
  EXPECT_NE(difference(result({1, untouched}, {1, 1}), result({1, 0}, {1, 1})), "");
  EXPECT_NE(difference(result({1, untouched}, {1, 1}), result({1, nan}, {1, 1})), "");
}

TEST(Difference, FindsNaNAndInfinityWhereNumbersBelong) {
  EXPECT_NE(difference(result({1, 2}, {1, 1}), result({1, nan}, {1, 1})), "");
  EXPECT_NE(difference(result({1, 2}, {1, 1}), result({1, untouched}, {1, 1})), "");
  EXPECT_NE(difference(result({1, 2}, {1, 1}), result({1, std::numeric_limits<float>::infinity()}, {1, 1})), "");
}

TEST(Difference, BoundsTheWorstElementAndTheMean) {
  const std::vector<float> ones(100, 1.0f);
  std::vector<float> one_off = ones;
  one_off[50] = 1.01f;  // NMSE 1e-6
  EXPECT_EQ(difference(result(ones, {2e-6, 2e-2}), result(one_off)), "");
  EXPECT_NE(difference(result(ones, {2e-6, 1e-3}), result(one_off)), "");
  EXPECT_NE(difference(result(ones, {1e-7, 2e-2}), result(one_off)), "");
}

TEST(Difference, NamesTheWorstElement) {
  const std::string text = difference(result({1, 2, 3}), result({1, 2.5f, 3.25f}));
  EXPECT_NE(text.find("word 1 of 3: expected 2, got 2.5"), std::string::npos) << text;
}

TEST(Difference, FindsMissingResults) {
  EXPECT_NE(difference(result({1, 2}), result({1})), "");
}

TEST(OpBench, FindsActivationsWrittenBeyondItsRows) {
  OpBench bench(oracle());
  Activations* activations = bench.output_activations(2, 5);
  oracle().write_activations(*activations, 3, std::vector<float>(15, 1.0f));
  EXPECT_NONFATAL_FAILURE(bench.result("out", activations, 2, exact), "wrote outside the 2 rows");
}

TEST(RandomData, IntegerMatricesHoldSmallIntegers) {
  const std::pair<WeightType, TensorType> types[] = {{WeightType::f32, TensorType::f32},
                                                     {WeightType::f16, TensorType::f16},
                                                     {WeightType::bf16, TensorType::bf16},
                                                     {WeightType::q8_0, TensorType::q8_0},
                                                     {WeightType::q4_1, TensorType::q4_1}};
  for (const auto& [type, stored] : types) {
    const FileMatrix matrix = Random(1).integer_matrix(type, 3, 64);
    std::vector<float> values(3 * 64);
    dequantize(stored, matrix.data, values);
    float largest = 0;
    for (const float v : values) {
      EXPECT_EQ(v, std::round(v));
      largest = std::max(largest, std::abs(v));
    }
    EXPECT_GT(largest, 4) << to_string(type);
    EXPECT_LE(largest, 8) << to_string(type);
  }
}

TEST(RandomData, IsTheSameInEveryRun) {
  EXPECT_EQ(Random(7).values(50), Random(7).values(50));
  EXPECT_NE(Random(7).values(50), Random(8).values(50));
}

}  // namespace
}  // namespace canopy::test
