#include <cmath>
#include <limits>

#include "tests/base/expect_error.h"
#include "tests/compute/op_test.h"

namespace canopy::test {
namespace {

struct ConvRowsCase {
  uint32_t width, groups, group, taps, side;
  bool integers = false;  // small ones, of which every sum is exact
  uint32_t rows = 0;      // that inputs have values for; the others are NaN. 0: all

  Results operator()(Device& device) const {
    OpBench bench(device);
    const uint32_t cols = groups * group;
    Random random(width * 1000 + cols * 10 + taps);
    const auto values = [&](size_t count) {
      std::vector<float> result = random.values(count);
      if (integers) {
        for (float& value : result) value = std::round(value * 8);
      }
      return result;
    };
    std::vector<float> in = values(size_t{width} * cols);
    if (rows > 0) {
      for (size_t i = size_t{rows} * cols; i < in.size(); ++i) in[i] = std::numeric_limits<float>::quiet_NaN();
    }
    const Buffer* input = bench.buffer(in);
    const Buffer* base = bench.buffer(values(size_t{2} * taps * cols));
    const Buffer* kernel = bench.buffer(values(size_t{width} * 2 * taps * groups));
    Buffer* x = bench.buffer(values(size_t{width} * cols));
    const uint32_t done = rows > 0 ? rows : width;
    bench.run([&](Recorder& r) { r(ConvRowsArgs{done, cols, taps, group, side, input, base, kernel, x}); });
    return {bench.result("x", x, integers ? exact : f32_rounding)};
  }
};

class ConvRowsTest : public OpTest {};

TEST_P(ConvRowsTest, MixesEachRowWithThoseBeforeIt) {
  for (const uint32_t width : {1u, 2u, 8u, 17u}) {
    for (const auto& [groups, group] : {std::pair{1u, 1u}, {3u, 7u}, {6u, 16u}, {5u, 13u}, {9u, 64u}}) {
      for (const uint32_t taps : {1u, 2u, 4u}) {
        SCOPED_TRACE(std::to_string(width) + " rows, " + std::to_string(groups) + " groups of " +
                     std::to_string(group) + ", " + std::to_string(taps) + " taps");
        for (const uint32_t side : {0u, 1u}) {
          compare(ConvRowsCase{width, groups, group, taps, side});
          compare(ConvRowsCase{width, groups, group, taps, side, true});
        }
      }
    }
  }
}

/// A row does not see those behind it.
TEST_P(ConvRowsTest, RowsBehindHaveNoInfluence) {
  compare(ConvRowsCase{9, 3, 16, 3, 1, true, 4});
}

TEST(ConvRows, TheReferenceIsTheFormula) {
  OpBench bench(oracle());
  // Two rows of two columns in one group, two taps; side 1 of the tables counts.
  const Buffer* in = bench.buffer(std::vector<float>{1, 2, 3, 4});
  const Buffer* base = bench.buffer(std::vector<float>{9, 9, 9, 9, 10, 20, 30, 40});
  const Buffer* kernel = bench.buffer(std::vector<float>{9, 9, 1, 2, 9, 9, 3, 4});
  Buffer* x = bench.buffer(std::vector<float>{0.5f, 0.25f, 0, 0});
  bench.run([&](Recorder& r) { r(ConvRowsArgs{2, 2, 2, 2, 1, in, base, kernel, x}); });
  std::vector<float> found = floats(bench.result("x", x, exact).words);
  found.resize(4);
  // Row 0: (10 + 1) 1, (20 + 1) 2. Row 1: (10 + 3) 3 + (30 + 4) 1, (20 + 3) 4 + (40 + 4) 2.
  EXPECT_EQ(found, (std::vector<float>{11.5f, 42.25f, 73, 180}));
  const auto refused = [&](const char* message, ConvRowsArgs args) {
    expect_error(message, [&] { check_conv_rows(args); });
  };
  refused("3 columns in groups of 2", {1, 3, 2, 2, 0, in, base, kernel, x});
  refused("0 taps", {1, 2, 0, 2, 0, in, base, kernel, x});
  refused("side 2", {1, 2, 2, 2, 2, in, base, kernel, x});
  refused("one buffer as input and output", {1, 2, 2, 2, 0, x, base, kernel, x});
}

CANOPY_OP_TESTS(ConvRowsTest);

}  // namespace
}  // namespace canopy::test
