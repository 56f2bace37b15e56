#include "tests/compute/op_test.h"

namespace canopy::test {
namespace {

struct SelectCase {
  uint32_t width;
  uint32_t cols;
  std::vector<uint32_t> index;
  uint32_t first = 0;  // of the index

  Results operator()(Device& device) const {
    OpBench bench(device);
    Random random(width + cols);
    const auto count = static_cast<uint32_t>(index.size()) - first;
    const Activations* in = bench.activations(width, cols, random.values(size_t{width} * cols));
    const Buffer* rows = bench.buffer(index);
    Activations* out = bench.output_activations(count, cols);
    bench.run([&](Recorder& r) { r(SelectArgs{width, count, in, rows, out, first}); });
    return {bench.result("out", out, count, exact), bench.norm_probe(out, count)};
  }
};

class SelectTest : public OpTest {};

TEST_P(SelectTest, CopiesRowsAndTheirSumsOfSquares) {
  std::vector<uint32_t> all(65);
  for (uint32_t i = 0; i < 65; ++i) all[i] = 64 - i;
  const SelectCase cases[] = {{1, 96, {0}},
                              {130, 96, {129}},
                              {33, 20, {32, 0, 0, 17}},
                              {17, 576, {16, 3}},
                              {65, 100, all},
                              {3, 64, {2, 2, 2, 2, 1, 1, 0, 0, 2}},
                              {65, 100, all, 60},
                              {9, 96, {1, 2, 3, 4, 5}, 1}};
  for (const SelectCase& c : cases) {
    SCOPED_TRACE("width " + std::to_string(c.width) + ", count " + std::to_string(c.index.size()));
    compare(c);
  }
}

CANOPY_OP_TESTS(SelectTest);

}  // namespace
}  // namespace canopy::test
