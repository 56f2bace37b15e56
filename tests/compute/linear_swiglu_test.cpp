#include "tests/compute/op_test.h"

namespace canopy::test {
namespace {

struct SwigluCase {
  WeightType type;
  uint32_t ffn;
  uint32_t cols;
  uint32_t width;
  float norm_eps = 0;
  float magnitude = 1;  // of the inputs

  Results operator()(Device& device) const {
    OpBench bench(device);
    Random random(ffn + cols + width);
    const FileMatrix gate = random.matrix(type, ffn, cols);
    const FileMatrix up = random.matrix(type, ffn, cols);
    std::vector<float> inputs = random.values(size_t{width} * cols);
    for (float& v : inputs) v *= magnitude;
    const Weight* weight = bench.paired_weight(gate, up);
    const Activations* in = bench.activations(width, cols, inputs);
    Activations* out = bench.output_activations(width, ffn);
    bench.run([&](Recorder& r) { r(LinearSwigluArgs{width, weight, in, norm_eps, out}); });
    return {bench.result("out", out, width, bench.of_products(f32_exp, type))};
  }
};

class LinearSwigluTest : public OpTest {};

TEST_P(LinearSwigluTest, AgreesWithTheOracle) {
  struct Shape {
    uint32_t ffn, cols, width;
  };
  static constexpr Shape shapes[] = {{256, 96, 1},  {1, 32, 3},     {33, 160, 8},
                                     {100, 96, 17}, {130, 576, 33}, {7, 800, 65}};
  for (const WeightType type : weight_types_under_test()) {
    for (const Shape& s : shapes) {
      SCOPED_TRACE(std::string(to_string(type)) + " ffn " + std::to_string(s.ffn) + ", cols " + std::to_string(s.cols) +
                   ", width " + std::to_string(s.width));
      compare(SwigluCase{type, s.ffn, columns_for(type, {s.cols})[0], s.width, s.width % 2 == 0 ? 0.0f : 1e-6f});
    }
  }
}

// For a very negative g, exp(-g) is infinite in f32; then the result must be 0, not NaN.
TEST_P(LinearSwigluTest, StaysFiniteForLargeGates) {
  compare(SwigluCase{WeightType::f32, 64, 96, 5, 0, 1e4f});
}

CANOPY_OP_TESTS(LinearSwigluTest);

}  // namespace
}  // namespace canopy::test
