#include "engine/base/error.h"
#include "tests/compute/op_test.h"

namespace canopy::test {
namespace {

struct CopyRowsCase {
  uint32_t cols;
  uint32_t rows;                // of both buffers
  std::vector<uint32_t> moves;  // from, to, from, to, ...

  Results operator()(Device& device) const {
    OpBench bench(device);
    std::vector<uint32_t> contents(size_t{rows} * cols);  // any bits, some of them NaN
    for (size_t i = 0; i < contents.size(); ++i) contents[i] = static_cast<uint32_t>(i * 2654435761u);
    const Buffer* in = bench.buffer(contents);
    const Buffer* list = bench.buffer(moves);
    Buffer* out = bench.output(contents.size());
    const auto count = static_cast<uint32_t>(moves.size() / 2);
    bench.run([&](Recorder& r) { r(CopyRowsArgs{count, cols, in, list, out}); });
    return {bench.integers("out", out)};
  }
};

class CopyRowsTest : public OpTest {};

TEST_P(CopyRowsTest, PutsEachRowWhereItsMoveSays) {
  std::vector<uint32_t> backwards;
  for (uint32_t i = 0; i < 70; ++i) backwards.insert(backwards.end(), {69 - i, i});
  for (const uint32_t cols : {1u, 3u, 4u, 64u, 100u, 255u, 256u, 257u, 576u}) {
    SCOPED_TRACE("cols " + std::to_string(cols));
    compare(CopyRowsCase{cols, 9, {8, 0}});
    compare(CopyRowsCase{cols, 9, {0, 3, 3, 8, 3, 0}});  // one row goes to two places, others are left out
    compare(CopyRowsCase{cols, 9, {2, 2, 5, 1, 5, 1}});  // a list padded with a move that it has already
    compare(CopyRowsCase{cols, 70, backwards});
  }
}

// More than a Vulkan device has workgroups for along one axis.
TEST_P(CopyRowsTest, PutsManyRows) {
  std::vector<uint32_t> all;
  for (uint32_t i = 0; i < 65537; ++i) all.insert(all.end(), {i, 65536 - i});
  compare(CopyRowsCase{3, 65537, all});
}

TEST_P(CopyRowsTest, MovesNothingForAnEmptyList) {
  compare(CopyRowsCase{8, 3, {}});
}

TEST_P(CopyRowsTest, RefusesToCopyWithinABuffer) {
  OpBench bench(device());
  Buffer* both = bench.output(64);
  const Buffer* moves = bench.buffer(std::vector<uint32_t>{0, 1});
  EXPECT_THROW(bench.run([&](Recorder& r) { r(CopyRowsArgs{1, 8, both, moves, both}); }), Error);
}

CANOPY_OP_TESTS(CopyRowsTest);

}  // namespace
}  // namespace canopy::test
