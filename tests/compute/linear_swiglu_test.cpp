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
  GateFunction function = GateFunction::silu;

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
    bench.run([&](Recorder& r) { r(LinearSwigluArgs{width, weight, in, norm_eps, out, function}); });
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

TEST_P(LinearSwigluTest, GatesByGelu) {
  constexpr GateFunction gelu = GateFunction::gelu;
  const WeightType type = weight_types_under_test()[0];
  const uint32_t cols = columns_for(type, {160})[0];
  compare(SwigluCase{type, 33, cols, 8, 1e-6f, 1, gelu});
  compare(SwigluCase{type, 130, cols, 1, 0, 0.01f, gelu});
  if (!is_slow_device()) compare(SwigluCase{WeightType::q4_k, 100, 256, 17, 1e-6f, 1, gelu});
}

// For a very negative g, exp(-g) is infinite in f32; then the result must be 0, not NaN.
TEST_P(LinearSwigluTest, StaysFiniteForLargeGates) {
  for (const GateFunction function : {GateFunction::silu, GateFunction::gelu}) {
    compare(SwigluCase{WeightType::f32, 64, 96, 5, 0, 1e4f, function});
  }
}

CANOPY_OP_TESTS(LinearSwigluTest);

}  // namespace
}  // namespace canopy::test
