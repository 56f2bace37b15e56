// The halves of activations: their units, rows that grow, and steps of all magnitudes.
#include <bit>
#include <cmath>
#include <limits>

#include "cuda_backend/kernels/params.h"
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

/// A product with rows that have another magnitude in each step of 128 columns: each row those of the one before it, a
/// step further on.
struct StepsCase {
  WeightType type;
  std::vector<float> magnitudes;
  uint32_t width = 1;
  bool largest = false;  // all of a step is its magnitude, and all of the weight the most that Q8_0 has in tiles

  Results operator()(Device& device) const {
    const size_t rows = 40, steps = magnitudes.size(), cols = steps * kStep;
    OpBench bench(device);
    Random random(static_cast<uint32_t>(cols));
    FileMatrix matrix = random.matrix(type, rows, static_cast<uint32_t>(cols));
    constexpr size_t block = 34;  // of Q8_0: a scale, here the largest below 1, then 32 codes
    for (size_t i = 0; largest && i < matrix.data.size(); ++i) {
      matrix.data[i] = i % block == 0 ? std::byte{0xFF} : i % block == 1 ? std::byte{0x3B} : std::byte{0x80};
    }
    std::vector<float> values = random.values(width * cols);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = (largest ? 1 : values[i]) * magnitudes[(i / cols + i % cols / kStep) % steps];
    }
    const Weight* weight = bench.weight(matrix);
    const Activations* in = bench.activations(width, static_cast<uint32_t>(cols), values);
    Buffer* out = bench.output(width * rows);
    bench.run([&](Recorder& r) { r(LinearArgs{width, weight, in, 0, out, rows, 0}); });
    return {bench.result("out", out, bench.of_products(f32_rounding, type))};
  }
};

class StepsTest : public OpTest {};

TEST_P(StepsTest, HaveAnyMagnitude) {
  for (const WeightType type : {WeightType::q8_0, WeightType::q4_k, WeightType::q6_k, WeightType::iq4_nl}) {
    for (const float magnitude : {0.0f, 1e-3f, 1.0f, 4e3f}) {
      for (const uint32_t width : {1u, 3u, 12u}) {
        SCOPED_TRACE(std::string(to_string(type)) + ", magnitude " + std::to_string(magnitude) + ", width " +
                     std::to_string(width));
        compare(StepsCase{type, {magnitude / 64, 0, magnitude, magnitude / 8}, width});
      }
    }
  }
}

// Sums of 32 columns come to their bound, which is half of what halves end at: a step that is far above the mean of its
// row is raised as far as any.
TEST_P(StepsTest, MayAllBeTheLargest) {
  for (const uint32_t width : {1u, 12u}) {
    std::vector<float> magnitudes(512);
    magnitudes[5] = 65504;
    compare(StepsCase{WeightType::q8_0, magnitudes, width, true});
    magnitudes[5] = -magnitudes[5];
    compare(StepsCase{WeightType::q8_0, magnitudes, width, true});
  }
}

/// A product with what SwiGLU leaves, whose halves have the unit 1 however small they are.
struct SmallCase {
  WeightType type;

  Results operator()(Device& device) const {
    constexpr uint32_t width = 3, cols = 64, ffn = 256, rows = 40;
    OpBench bench(device);
    Random random(7);
    std::vector<float> values = random.values(width * cols);
    for (float& value : values) value *= 2e-3f;
    const Weight* pair =
        bench.paired_weight(random.matrix(WeightType::f16, ffn, cols), random.matrix(WeightType::f16, ffn, cols));
    const Weight* weight = bench.weight(random.matrix(type, rows, ffn));
    const Activations* in = bench.activations(width, cols, values);
    Activations* gated = bench.output_activations(width, ffn);
    Buffer* out = bench.output(width * rows);
    bench.run([&](Recorder& r) {
      r(LinearSwigluArgs{.width = width, .weight = pair, .in = in, .out = gated});
      r(LinearArgs{width, weight, gated, 0, out, rows, 0});
    });
    return {bench.result("out", out, bench.of_products(f32_rounding, type))};
  }
};

TEST_P(StepsTest, MayBeAsSmallAsHalvesAre) {
  for (const WeightType type : {WeightType::q4_k, WeightType::q5_1, WeightType::q6_k}) {
    SCOPED_TRACE(to_string(type));
    compare(SmallCase{type});
  }
}

CANOPY_OP_TESTS(StepsTest);

}  // namespace
}  // namespace canopy::test
