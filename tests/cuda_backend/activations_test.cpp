// The halves of activations: their units, and rows that grow.
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

}  // namespace
}  // namespace canopy::test
