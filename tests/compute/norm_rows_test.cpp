#include "tests/compute/op_test.h"

namespace canopy::test {
namespace {

struct NormRowsCase {
  uint32_t width;
  uint32_t cols;
  bool with_norm;
  // Check the sums of squares too; for a new shape of product that costs seconds where the device tunes its kernel.
  bool with_probe;

  Results operator()(Device& device) const {
    OpBench bench(device);
    Random random(width + cols);
    const Buffer* in = bench.buffer(random.values(size_t{width} * cols));
    const Buffer* norm = with_norm ? bench.buffer(random.values(cols)) : nullptr;
    Activations* out = bench.output_activations(width, cols);
    bench.run([&](Recorder& r) { r(NormRowsArgs{width, in, {norm}, out}); });
    Results results = {bench.result("out", out, width, exact)};
    if (with_probe) results.push_back(bench.norm_probe(out, width));
    return results;
  }
};

class NormRowsTest : public OpTest {};

TEST_P(NormRowsTest, MakesActivationsOfRows) {
  for (const uint32_t cols : {1u, 3u, 30u, 128u, 129u, 576u}) {
    for (const uint32_t width : {1u, 3u, 65u}) {
      for (const bool with_norm : {false, true}) {
        SCOPED_TRACE("width " + std::to_string(width) + ", cols " + std::to_string(cols) +
                     (with_norm ? ", norm" : ", no norm"));
        compare(NormRowsCase{width, cols, with_norm, cols == 30 || cols == 576});
      }
    }
  }
}

// More than a Vulkan device has workgroups for along one axis.
TEST_P(NormRowsTest, MakesActivationsOfManyRows) {
  compare(NormRowsCase{65537, 4, true, false});
}

// A product can read the result like the activations of any other op.
TEST_P(NormRowsTest, FeedsAProduct) {
  const auto op_case = [](Device& device) {
    OpBench bench(device);
    Random random(5);
    const uint32_t width = 13, cols = 96, rows = 20;
    const Buffer* in = bench.buffer(random.values(size_t{width} * cols));
    const Weight* weight = bench.weight(random.matrix(WeightType::f32, rows, cols));
    Activations* activations = bench.output_activations(width, cols);
    Buffer* out = bench.output(uint64_t{width} * rows);
    bench.run([&](Recorder& r) {
      r(NormRowsArgs{width, in, {nullptr}, activations});
      r(LinearArgs{width, weight, activations, 0, out, rows, 0});
    });
    return Results{bench.result("out", out, bench.of_products(f32_rounding))};
  };
  compare(op_case);
}

CANOPY_OP_TESTS(NormRowsTest);

}  // namespace
}  // namespace canopy::test
