#include "tests/compute/op_test.h"

namespace canopy::test {
namespace {

struct LinearAddCase {
  WeightType type;
  uint32_t rows;
  uint32_t cols;
  uint32_t width;
  bool with_aux = false;
  bool integers = false;

  Results operator()(Device& device) const {
    OpBench bench(device);
    Random random(rows + 3 * cols + width);
    const auto data = [&](size_t count) { return integers ? random.integers(count, 4) : random.values(count); };
    const Weight* weight =
        bench.weight(integers ? random.integer_matrix(type, rows, cols) : random.matrix(type, rows, cols));
    const Activations* in = bench.activations(
        width, cols, integers ? bench.integer_activations(random, width, cols) : data(size_t{width} * cols));
    Buffer* x = bench.buffer(data(size_t{width} * rows));
    const Buffer* norm = bench.buffer(data(rows));
    Activations* out = bench.output_activations(width, rows);
    const uint32_t aux_offset = 2;
    const uint32_t aux_stride = rows + 5;
    Buffer* aux = bench.output(uint64_t{width} * aux_stride);

    LinearAddArgs args;
    args.width = width;
    args.weight = weight;
    args.in = in;
    args.x = x;
    args.norm.weight = norm;
    args.out = out;
    if (with_aux) {
      args.aux = aux;
      args.aux_stride = aux_stride;
      args.aux_offset = aux_offset;
    }
    bench.run([&](Recorder& r) { r(args); });

    const Tolerance tolerance = integers ? bench.of_integer_products(type) : bench.of_products(f32_rounding, type);
    return {bench.result("x", x, tolerance), bench.result("out", out, width, tolerance),
            bench.result("tap", aux, tolerance), bench.norm_probe(out, width)};
  }
};

class LinearAddTest : public OpTest {};

TEST_P(LinearAddTest, AgreesWithTheOracle) {
  struct Shape {
    uint32_t rows, cols, width;
  };
  static constexpr Shape shapes[] = {{96, 256, 1},  {33, 32, 3},   {100, 160, 8},
                                     {257, 96, 17}, {64, 576, 33}, {20, 800, 65}};
  uint32_t i = 0;
  for (const WeightType type : weight_types_under_test()) {
    for (const Shape& s : shapes) {
      SCOPED_TRACE(std::string(to_string(type)) + " [" + std::to_string(s.rows) + ", " + std::to_string(s.cols) +
                   "], width " + std::to_string(s.width) + (i % 2 == 0 ? ", tap" : ""));
      compare(LinearAddCase{type, s.rows, columns_for(type, {s.cols})[0], s.width, i % 2 == 0, i % 3 == 0});
      ++i;
    }
  }
}

CANOPY_OP_TESTS(LinearAddTest);

}  // namespace
}  // namespace canopy::test
