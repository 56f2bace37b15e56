#include "engine/base/error.h"
#include "tests/compute/op_test.h"

namespace canopy::test {
namespace {

struct GateInputsCase {
  uint32_t width, cols, stride, offset;
  float scale = 1;

  Results operator()(Device& device) const {
    OpBench bench(device);
    Random random(width + cols);
    std::vector<float> gates = random.values(size_t{width} * cols);
    for (float& gate : gates) gate *= 4 / scale;
    gates[0] = -200 / scale;  // closed
    gates.back() = 200 / scale;
    std::vector<float> inputs(size_t{width} * stride, std::numeric_limits<float>::quiet_NaN());
    const std::vector<float> read = random.values(size_t{width} * cols);
    for (size_t i = 0; i < read.size(); ++i) inputs[i / cols * stride + offset + i % cols] = read[i];
    const GateInputsArgs args{.width = width,
                              .gate = bench.buffer(gates),
                              .scale = scale,
                              .inputs = bench.buffer(inputs),
                              .stride = stride,
                              .offset = offset,
                              .out = bench.output_activations(width, cols)};
    bench.run([&](Recorder& r) { r(args); });
    return {bench.result("out", args.out, width, f32_exp)};
  }
};

class GateInputsTest : public OpTest {};

TEST_P(GateInputsTest, MultipliesThePartOfALayerByTheGelu) {
  for (const uint32_t cols : {2u, 3u, 64u, 65u, 256u, 290u}) {
    for (const uint32_t width : {1u, 2u, 7u, 65u}) {
      SCOPED_TRACE("width " + std::to_string(width) + ", cols " + std::to_string(cols));
      compare(GateInputsCase{width, cols, cols, 0});
      compare(GateInputsCase{width, cols, 3 * cols + 1, cols + 1, 256});
    }
  }
}

TEST_P(GateInputsTest, RefusesAPartBeyondTheRows) {
  OpBench bench(device());
  const Buffer* rows = bench.buffer(std::vector<float>(8, 1.0f));
  Activations* out = bench.output_activations(1, 8);
  EXPECT_THROW(bench.run([&](Recorder& r) { r(GateInputsArgs{1, rows, 1, rows, 8, 1, out}); }), Error);
}

CANOPY_OP_TESTS(GateInputsTest);

}  // namespace
}  // namespace canopy::test
