#include "tests/compute/op_test.h"

namespace canopy::test {
namespace {

struct SquareReluCase {
  uint32_t width, cols;

  Results operator()(Device& device) const {
    OpBench bench(device);
    Random random(width + cols);
    std::vector<float> rows = random.values(size_t{width} * cols);
    for (float& x : rows) x *= 10;
    rows.front() = -0.0f;
    rows.back() = -1e30f;
    const SquareReluArgs args{width, bench.buffer(rows), bench.output_activations(width, cols)};
    bench.run([&](Recorder& r) { r(args); });
    return {bench.result("out", args.out, width, exact)};
  }
};

class SquareReluTest : public OpTest {};

TEST_P(SquareReluTest, SquaresWhatIsAboveZero) {
  for (const uint32_t cols : {1u, 2u, 63u, 64u, 65u, 290u}) {
    for (const uint32_t width : {1u, 2u, 7u, 65u}) {
      SCOPED_TRACE("width " + std::to_string(width) + ", cols " + std::to_string(cols));
      compare(SquareReluCase{width, cols});
    }
  }
}

CANOPY_OP_TESTS(SquareReluTest);

}  // namespace
}  // namespace canopy::test
