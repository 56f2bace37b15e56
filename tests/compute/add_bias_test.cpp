#include <limits>

#include "tests/compute/op_test.h"

namespace canopy::test {
namespace {

struct AddBiasCase {
  uint32_t width;
  uint32_t cols;

  Results operator()(Device& device) const {
    OpBench bench(device);
    Random random(width * 1000 + cols);
    // A row more than the op may touch, which must stay as it is.
    std::vector<float> values = random.values(size_t{width} * cols);
    values.resize(values.size() + cols, std::numeric_limits<float>::quiet_NaN());
    Buffer* x = bench.buffer(values);
    const Buffer* bias = bench.buffer(random.values(cols));
    bench.run([&](Recorder& r) { r(AddBiasArgs{width, cols, bias, x}); });
    return {bench.integers("x", x)};  // a sum of two floats has one right rounding
  }
};

class AddBiasTest : public OpTest {};

TEST_P(AddBiasTest, AddsTheSameToEveryRow) {
  for (const uint32_t cols : {1u, 3u, 63u, 64u, 65u, 130u, 577u}) {
    for (const uint32_t width : {1u, 2u, 33u}) {
      SCOPED_TRACE("width " + std::to_string(width) + ", cols " + std::to_string(cols));
      compare(AddBiasCase{width, cols});
    }
  }
}

CANOPY_OP_TESTS(AddBiasTest);

}  // namespace
}  // namespace canopy::test
