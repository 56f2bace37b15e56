#include "engine/base/error.h"
#include "tests/compute/op_test.h"

namespace canopy::test {
namespace {

struct NormAddCase {
  uint32_t width;
  uint32_t cols;
  bool with_aux;
  bool with_probe = false;  // of the sums of squares: see NormRowsCase
  float magnitude = 1;      // of the input
  float residual = 1;       // of what it is added to
  float x_scale = 1;

  Results operator()(Device& device) const {
    OpBench bench(device);
    Random random(width * 1000 + cols);
    const auto scaled = [&](size_t count, float by) {
      std::vector<float> values = random.values(count);
      for (float& value : values) value *= by;
      return values;
    };
    const uint32_t stride = 2 * cols + 3;
    NormAddArgs args{.width = width,
                     .in = bench.buffer(scaled(size_t{width} * cols, magnitude)),
                     .weight = bench.buffer(random.values(cols)),
                     .eps = 1e-6f,
                     .x = bench.buffer(scaled(size_t{width} * cols, residual)),
                     .norm = {bench.buffer(random.values(cols))},
                     .x_scale = x_scale};
    if (with_aux) {
      args.aux = bench.output(uint64_t{width} * stride);
      args.aux_stride = stride;
      args.aux_offset = cols % 2 == 0 ? 4 : 3;
      args.aux_scale = 256;
    }
    Activations* out = bench.output_activations(width, cols);
    args.out = out;
    bench.run([&](Recorder& r) { r(args); });
    Results results = {bench.result("x", args.x, f32_rounding), bench.result("out", out, width, f32_rounding)};
    if (with_aux) results.push_back(bench.result("aux", args.aux, f32_rounding));
    if (with_probe) results.push_back(bench.norm_probe(out, width));
    return results;
  }
};

class NormAddTest : public OpTest {};

TEST_P(NormAddTest, AddsNormedRows) {
  for (const uint32_t cols : {1u, 3u, 30u, 64u, 128u, 129u, 576u, 1000u, 2304u}) {
    for (const uint32_t width : {1u, 3u, 65u}) {
      for (const bool with_aux : {false, true}) {
        SCOPED_TRACE("width " + std::to_string(width) + ", cols " + std::to_string(cols) + (with_aux ? ", aux" : ""));
        compare(NormAddCase{width, cols, with_aux, cols == 30 || cols == 576});
      }
    }
  }
}

TEST_P(NormAddTest, NormsSmallAndLargeRows) {
  compare(NormAddCase{3, 129, true, false, 1e-4f});  // the epsilon counts
  compare(NormAddCase{3, 128, true, false, 1e6f, 1e5f});
}

TEST_P(NormAddTest, ScalesTheSum) {
  for (const uint32_t cols : {1u, 30u, 129u, 576u}) {
    SCOPED_TRACE("cols " + std::to_string(cols));
    compare(NormAddCase{3, cols, true, cols == 576, 1, 1, 0.0045f});
    compare(NormAddCase{65, cols, false, false, 1, 100, -1.7f});
  }
}

// More than a Vulkan device has workgroups for along one axis.
TEST_P(NormAddTest, AddsManyRows) {
  compare(NormAddCase{65537, 4, true});
}

TEST_P(NormAddTest, RefusesOneBufferForBoth) {
  OpBench bench(device());
  Buffer* x = bench.buffer(std::vector<float>(8, 1.0f));
  const Buffer* weight = bench.buffer(std::vector<float>(8, 1.0f));
  Activations* out = bench.output_activations(1, 8);
  EXPECT_THROW(bench.run([&](Recorder& r) { r(NormAddArgs{1, x, weight, 1e-6f, x, {weight}, out}); }), Error);
}

CANOPY_OP_TESTS(NormAddTest);

}  // namespace
}  // namespace canopy::test
