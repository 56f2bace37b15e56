#include "tests/compute/op_test.h"

namespace canopy::test {
namespace {

struct PickCase {
  uint32_t vocab;
  uint32_t first_row;
  uint32_t rows;
  std::vector<uint32_t> pairs;  // row, token, row, token, ...

  Results operator()(Device& device) const {
    OpBench bench(device);
    Random random(vocab + rows);
    const Buffer* logits = bench.buffer(random.values(size_t{rows} * vocab));
    const Buffer* list = bench.buffer(pairs);
    const auto count = static_cast<uint32_t>(pairs.size() / 2);
    Buffer* out = bench.output(count);
    bench.run([&](Recorder& r) { r(PickArgs{count, first_row, rows, logits, vocab, list, out}); });
    return {bench.integers("out", out)};
  }
};

class PickTest : public OpTest {};

TEST_P(PickTest, TakesThePairsOfItsRowsAndLeavesTheOthers) {
  Random random(21);
  for (const uint32_t vocab : {1u, 7u, 500u, 49152u}) {
    for (const uint32_t first_row : {0u, 5u, 64u}) {
      for (const uint32_t count : {1u, 63u, 64u, 65u, 200u}) {
        SCOPED_TRACE("vocab " + std::to_string(vocab) + ", first row " + std::to_string(first_row) + ", count " +
                     std::to_string(count));
        std::vector<uint32_t> pairs;
        for (uint32_t i = 0; i < count; ++i) {
          pairs.push_back(random.below(first_row + 10));  // some are before the rows, some after them
          pairs.push_back(random.below(vocab));
        }
        compare(PickCase{vocab, first_row, 4, pairs});
      }
    }
  }
}

TEST_P(PickTest, KnowsTheRowsAtBothEnds) {
  compare(PickCase{500, 3, 2, {2, 499, 3, 0, 4, 499, 5, 0, 0xFFFFFFFF, 1, 0, 1, 4, 499}});
}

CANOPY_OP_TESTS(PickTest);

}  // namespace
}  // namespace canopy::test
