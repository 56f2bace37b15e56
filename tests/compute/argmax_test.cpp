#include <bit>
#include <limits>

#include "tests/compute/op_test.h"

namespace canopy::test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

struct ArgmaxCase {
  uint32_t vocab;
  std::vector<float> logits;  // [W, vocab]
  uint32_t first_out = 0;

  Results operator()(Device& device) const {
    OpBench bench(device);
    const auto width = static_cast<uint32_t>(logits.size() / vocab);
    const Buffer* in = bench.buffer(logits);
    Buffer* out = bench.output((uint64_t{first_out} + width) * 2);
    bench.run([&](Recorder& r) { r(ArgmaxArgs{width, in, vocab, out, first_out}); });
    Result result = bench.integers("out", out);
    for (uint32_t w = first_out; w < first_out + width; ++w) {
      if (result.words[2 * w] == 0xFFFFFFFF) result.words[2 * w + 1] = 0;  // no winner: its logit means nothing
    }
    return {result};
  }
};

class ArgmaxTest : public OpTest {};

TEST_P(ArgmaxTest, AgreesWithTheOracle) {
  static constexpr struct {
    uint32_t vocab, width;
  } shapes[] = {{1, 3}, {2, 1}, {500, 33}, {1010, 17}, {49152, 3}, {151936, 1}};
  for (const auto& s : shapes) {
    SCOPED_TRACE("vocab " + std::to_string(s.vocab));
    Random random(s.vocab);
    compare(ArgmaxCase{s.vocab, random.values(size_t{s.vocab} * s.width)});
  }
}

TEST_P(ArgmaxTest, GivesTiesToTheLowestId) {
  Random random(3);
  for (const uint32_t vocab : {2u, 500u, 1010u, 49152u}) {
    SCOPED_TRACE("vocab " + std::to_string(vocab));
    // About a seventh of all ids have the largest value.
    compare(ArgmaxCase{vocab, random.integers(size_t{vocab} * 3, 3)});
    compare(ArgmaxCase{vocab, std::vector<float>(vocab, -7.0f)});
    std::vector<float> two(vocab, -1.0f);
    two[vocab - 1] = two[vocab / 2] = 2.0f;
    compare(ArgmaxCase{vocab, two});
  }
}

// A pass over one chunk of the head leaves the answers of the chunks before it alone.
TEST_P(ArgmaxTest, WritesFromItsFirstOutputRowOn) {
  Random random(8);
  for (const uint32_t first_out : {1u, 7u, 64u}) {
    compare(ArgmaxCase{500, random.values(size_t{500} * 5), first_out});
    compare(ArgmaxCase{1025, random.values(size_t{1025} * 3), first_out});
  }
}

TEST_P(ArgmaxTest, FindsTheLargestAnywhere) {
  std::vector<float> logits;
  for (uint32_t w = 0; w < 70; ++w) {
    std::vector<float> row(1010, -2.0f);
    row[(w * 131 + 1009) % 1010] = -1.0f;
    logits.insert(logits.end(), row.begin(), row.end());
  }
  compare(ArgmaxCase{1010, logits});
}

TEST_P(ArgmaxTest, NeverPicksNaN) {
  std::vector<float> logits(3 * 500, nan);
  logits[499] = -5.0f;               // the only number of row 0
  logits[500 + 17] = -infinity;      // row 1: minus infinity still beats NaN
  compare(ArgmaxCase{500, logits});  // row 2: nothing but NaN
}

TEST_P(ArgmaxTest, TakesInfinities) {
  compare(ArgmaxCase{500, std::vector<float>(500, -infinity)});
  std::vector<float> logits(500, 3.0f);
  logits[7] = -infinity;
  logits[300] = infinity;
  compare(ArgmaxCase{500, logits});
}

TEST_P(ArgmaxTest, HoldsBothZerosEqual) {
  std::vector<float> logits(500, -1.0f);
  logits[4] = -0.0f;
  logits[9] = 0.0f;
  compare(ArgmaxCase{500, logits});
}

CANOPY_OP_TESTS(ArgmaxTest);

}  // namespace
}  // namespace canopy::test
