#include <limits>

#include "tests/compute/op_test.h"

namespace canopy::test {
namespace {

struct TopKCase {
  uint32_t vocab;
  uint32_t k;
  std::vector<float> logits;  // [W, vocab]

  Results operator()(Device& device) const {
    OpBench bench(device);
    const auto width = static_cast<uint32_t>(logits.size() / vocab);
    const Buffer* in = bench.buffer(logits);
    Buffer* ids = bench.output(uint64_t{width} * k);
    Buffer* values = bench.output(uint64_t{width} * k);
    Buffer* sums = bench.output(width);
    bench.run([&](Recorder& r) { r.top_k({width, in, vocab, k, ids, values, sums}); });
    return {bench.integers("ids", ids), bench.result("values", values, exact),
            bench.result("log_sum_exp", sums, f32_exp)};
  }
};

class TopKTest : public OpTest {};

TEST_P(TopKTest, AgreesWithTheOracle) {
  static constexpr struct {
    uint32_t vocab, k, width;
  } shapes[] = {{1, 1, 2},    {5, 5, 3},     {64, 64, 2},    {500, 1, 5},  {500, 64, 17},
                {1010, 5, 8}, {1010, 64, 1}, {49152, 64, 2}, {49152, 5, 1}};
  for (const auto& s : shapes) {
    SCOPED_TRACE("vocab " + std::to_string(s.vocab) + ", k " + std::to_string(s.k));
    Random random(s.vocab + s.k);
    std::vector<float> logits = random.values(size_t{s.vocab} * s.width);
    for (float& v : logits) v *= 20;
    compare(TopKCase{s.vocab, s.k, logits});
  }
}

TEST_P(TopKTest, OrdersTiesById) {
  Random random(11);
  for (const uint32_t vocab : {64u, 500u, 1010u}) {
    for (const uint32_t k : {1u, 5u, 64u}) {
      SCOPED_TRACE("vocab " + std::to_string(vocab) + ", k " + std::to_string(k));
      compare(TopKCase{vocab, k, random.integers(size_t{vocab} * 2, 3)});
      compare(TopKCase{vocab, k, std::vector<float>(vocab, 0.25f)});
    }
  }
}

// All large logits in one place: whatever a backend splits a row into, one part may hold the whole answer.
TEST_P(TopKTest, FindsNeighbours) {
  for (const uint32_t first : {0u, 400u, 946u}) {
    std::vector<float> logits(1010, -3.0f);
    for (uint32_t i = 0; i < 64; ++i) logits[first + i] = static_cast<float>((i * 29) % 64);
    SCOPED_TRACE("first " + std::to_string(first));
    compare(TopKCase{1010, 64, logits});
  }
}

TEST_P(TopKTest, TakesMinusInfinity) {
  std::vector<float> logits(500, -std::numeric_limits<float>::infinity());
  compare(TopKCase{500, 5, logits});  // log sum exp of nothing is minus infinity, not NaN
  logits[3] = 1;
  logits[499] = 2;
  compare(TopKCase{500, 5, logits});
}

TEST_P(TopKTest, SumsLogitsFarFromZero) {
  compare(TopKCase{1010, 5, std::vector<float>(1010, 300.0f)});
  compare(TopKCase{1010, 5, std::vector<float>(1010, -300.0f)});
}

CANOPY_OP_TESTS(TopKTest);

}  // namespace
}  // namespace canopy::test
