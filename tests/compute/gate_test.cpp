#include "tests/compute/op_test.h"

namespace canopy::test {
namespace {

struct GateCase {
  uint32_t width, cols;

  Results operator()(Device& device) const {
    OpBench bench(device);
    Random random(width + cols);
    std::vector<float> gates = random.values(size_t{width} * cols);
    for (float& gate : gates) gate *= 10;
    gates[0] = -200;  // closed
    gates.back() = 200;
    const Buffer* in = bench.buffer(random.values(size_t{width} * cols));
    Activations* x = bench.output_activations(width, cols);
    const Buffer* gate = bench.buffer(gates);
    bench.run([&](Recorder& r) {
      r(NormRowsArgs{width, in, {nullptr}, x});
      r(GateArgs{width, gate, x});
    });
    return {bench.result("x", x, width, f32_exp)};
  }
};

class GateTest : public OpTest {};

TEST_P(GateTest, MultipliesByTheSigmoid) {
  for (const uint32_t cols : {2u, 3u, 64u, 65u, 290u}) {
    for (const uint32_t width : {1u, 2u, 7u, 65u}) {
      SCOPED_TRACE("width " + std::to_string(width) + ", cols " + std::to_string(cols));
      compare(GateCase{width, cols});
    }
  }
}

CANOPY_OP_TESTS(GateTest);

}  // namespace
}  // namespace canopy::test
