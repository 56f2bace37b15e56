// The halves of activations: their units, rows that grow, and steps of all magnitudes.
#include <bit>
#include <cmath>
#include <limits>

#include "engine/cuda_backend/kernels/params.h"
#include "tests/compute/op_test.h"

namespace canopy::test {
namespace {

using namespace cuda;

TEST(ActivationUnitTest, IsAPowerOfTwoAboveTheMean) {
  for (const float mean : {1e-6f, 3e-4f, 0.5f, 1.0f, 1.9f, 70.0f, 1e5f, 1e9f}) {
    const float unit = unit_of(1.0f / mean);
    EXPECT_EQ(std::bit_cast<uint32_t>(unit) & 0x7FFFFFu, 0u) << mean;
    EXPECT_GE(unit, 31 * mean) << mean;
    EXPECT_LE(unit, 65 * mean) << mean;
    EXPECT_EQ(unit * inverse_of_unit(unit), 1.0f) << mean;
  }
  // Rows of zeros, and of what is no number, have one, too.
  for (const float factor : {0.0f, 1e30f, std::numeric_limits<float>::infinity(), std::nanf("")}) {
    EXPECT_TRUE(std::isnormal(unit_of(factor)) && std::isnormal(inverse_of_unit(unit_of(factor)))) << factor;
  }
  EXPECT_GT(unit_of_squares(0), 0);
}

TEST(ActivationUnitTest, HalvesOfAStepHaveEachAPlace) {
  std::vector<bool> taken(2 * kStep);
  for (uint32_t k = 0; k < taken.size(); ++k) {
    ASSERT_LT(half_place(k), taken.size());
    EXPECT_EQ(half_place(k) / kStep, k / kStep);
    EXPECT_FALSE(taken[half_place(k)]);
    taken[half_place(k)] = true;
  }
}

/// A row that a norm has read, then a sum that makes it `growth` times as large, then a product that reads that.
struct GrowingCase {
  float small, growth;

  Results operator()(Device& device) const {
    constexpr uint32_t rows = 64, cols = 128, width = 3;
    OpBench bench(device);
    Random random(5);
    std::vector<float> begin = random.values(width * rows), more = random.values(width * cols);
    for (float& value : begin) value *= small;
    for (float& value : more) value *= small * growth;
    Buffer* x = bench.buffer(begin);
    const Weight* weight = bench.weight(random.matrix(WeightType::f16, rows, cols));
    const Weight* probe = bench.weight(random.matrix(WeightType::f16, 32, rows));
    const Buffer* norm = bench.buffer(random.values(rows));
    Activations* out = bench.output_activations(width, rows);
    Buffer *before = bench.output(width * 32), *after = bench.output(width * 32);
    const Activations* in = bench.activations(width, cols, more);
    bench.run([&](Recorder& r) {
      r(NormRowsArgs{.width = width, .in = x, .norm = {norm}, .out = out});
      r(LinearArgs{width, probe, out, 1e-30f, before, 32, 0});
      r(LinearAddArgs{.width = width, .weight = weight, .in = in, .x = x, .norm = {norm}, .out = out});
      r(LinearArgs{width, probe, out, 1e-30f, after, 32, 0});
    });
    const Tolerance tolerance = bench.of_products(f32_rounding);
    return {bench.result("before", before, tolerance), bench.result("after", after, tolerance)};
  }
};

class GrowingRowTest : public OpTest {};

TEST_P(GrowingRowTest, AgreesWithTheOracle) {
  for (const float small : {1e-4f, 1.0f, 1e3f}) {
    for (const float growth : {0.01f, 1.0f, 1e2f, 3e4f}) {
      SCOPED_TRACE("values around " + std::to_string(small) + ", then " + std::to_string(growth) + " times as large");
      compare(GrowingCase{small, growth});
    }
  }
}

CANOPY_OP_TESTS(GrowingRowTest);

/// A product whose row of the pass has another magnitude in each step of 128 columns.
struct StepsCase {
  WeightType type;
  std::vector<float> magnitudes;
  bool largest = false;  // all of the row is `magnitudes`, and all of the weight the most that Q8_0 has in tiles

  Results operator()(Device& device) const {
    const uint32_t rows = 40, cols = static_cast<uint32_t>(magnitudes.size()) * kStep;
    OpBench bench(device);
    Random random(cols);
    FileMatrix matrix = random.matrix(type, rows, cols);
    constexpr size_t block = 34;  // of Q8_0: a scale, here the largest below 1, then 32 codes
    for (size_t i = 0; largest && i < matrix.data.size(); ++i) {
      matrix.data[i] = i % block == 0 ? std::byte{0xFF} : i % block == 1 ? std::byte{0x3B} : std::byte{0x80};
    }
    std::vector<float> values = random.values(cols);
    for (uint32_t k = 0; k < cols; ++k) values[k] = (largest ? 1 : values[k]) * magnitudes[k / kStep];
    const Weight* weight = bench.weight(matrix);
    const Activations* in = bench.activations(1, cols, values);
    Buffer* out = bench.output(rows);
    bench.run([&](Recorder& r) { r(LinearArgs{1, weight, in, 0, out, rows, 0}); });
    return {bench.result("out", out, bench.of_products(f32_rounding, type))};
  }
};

class StepsTest : public OpTest {};

TEST_P(StepsTest, HaveAnyMagnitude) {
  for (const WeightType type : {WeightType::q8_0, WeightType::q4_k, WeightType::q6_k, WeightType::iq4_nl}) {
    for (const float magnitude : {0.0f, 1e-3f, 1.0f, 4e3f}) {
      SCOPED_TRACE(std::string(to_string(type)) + ", magnitude " + std::to_string(magnitude));
      compare(StepsCase{type, {magnitude, magnitude}});
      compare(StepsCase{type, {magnitude / 64, 0, magnitude, magnitude / 8}});
    }
  }
}

// Sums of 32 columns come to their bound, which is half of what halves end at.
TEST_P(StepsTest, MayAllBeTheLargest) {
  compare(StepsCase{WeightType::q8_0, {65504, 65504, -65504, 65504}, true});
  compare(StepsCase{WeightType::q8_0, {1, 2047, 1e-4f, 65504}, true});
}

CANOPY_OP_TESTS(StepsTest);

}  // namespace
}  // namespace canopy::test
