#include <cmath>
#include <limits>

#include "engine/base/error.h"
#include "tests/compute/op_test.h"

namespace canopy::test {
namespace {

struct TopKCase {
  uint32_t vocab;
  uint32_t k;
  std::vector<float> logits;  // [W, vocab]
  float multiplier = 1;
  float softcap = 0;
  uint32_t first_out = 0;

  Results operator()(Device& device) const {
    OpBench bench(device);
    const auto width = static_cast<uint32_t>(logits.size() / vocab);
    const Buffer* in = bench.buffer(logits);
    const uint64_t rows = uint64_t{first_out} + width;
    Buffer* ids = bench.output(rows * k);
    Buffer* values = bench.output(rows * k);
    Buffer* sums = bench.output(rows);
    bench.run([&](Recorder& r) {
      r(TopKArgs{width, in, vocab, k, ids, values, sums, first_out, multiplier, softcap});
    });
    return {bench.integers("ids", ids), bench.result("values", values, softcap > 0 ? f32_rounding : exact),
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

// All large logits next to each other: however a backend splits a row, one part may have the whole answer.
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
  compare(TopKCase{500, 5, logits});  // log sum exp of an empty sum is minus infinity, not NaN
  logits[3] = 1;
  logits[499] = 2;
  compare(TopKCase{500, 5, logits});
}

TEST_P(TopKTest, SumsLogitsFarFromZero) {
  compare(TopKCase{1010, 5, std::vector<float>(1010, 300.0f)});
  compare(TopKCase{1010, 5, std::vector<float>(1010, -300.0f)});
}

// Integers, so that logits are equal or far apart: rounding of tanh on the device must not change the order.
TEST_P(TopKTest, RanksAndSumsCappedLogits) {
  static constexpr struct { float multiplier, softcap; } caps[] = {{0.5f, 15}, {-0.25f, 0}};
  Random random(12);
  for (const auto& cap : caps) {
    static constexpr struct { uint32_t vocab, k; } shapes[] = {{7, 5}, {1010, 64}, {49152, 64}};
    for (const auto& [vocab, k] : shapes) {
      SCOPED_TRACE("multiplier " + std::to_string(cap.multiplier) + ", softcap " + std::to_string(cap.softcap) +
                   ", vocab " + std::to_string(vocab) + ", k " + std::to_string(k));
      compare(TopKCase{vocab, k, random.integers(size_t{vocab} * 3, 40), cap.multiplier, cap.softcap});
    }
  }
}

// Where tanh reaches 1, different logits count as equal, and the lowest id wins.
TEST_P(TopKTest, HoldsSaturatedLogitsEqual) {
  Random random(13);
  std::vector<float> logits = random.integers(1010 * 2, 5);
  for (float& v : logits) v *= 4;
  compare(TopKCase{1010, 64, logits, 1, 1});
  logits[17] = -std::numeric_limits<float>::infinity();
  compare(TopKCase{1010, 64, logits, 1, 1});
  compare(TopKCase{500, 5, std::vector<float>(500, -std::numeric_limits<float>::infinity()), 0.5f, 15});
}

// Near 0 the cap changes values very little and must keep their precision.
TEST_P(TopKTest, CapsSmallLogitsWithTheirDigits) {
  std::vector<float> logits(64);
  for (uint32_t i = 0; i < 64; ++i) logits[i] = 30.0f * std::pow(1.5f, static_cast<float>(i) - 55.0f);
  OpBench bench(device());
  Buffer* ids = bench.output(64);
  Buffer* values = bench.output(64);
  Buffer* sums = bench.output(1);
  const Buffer* in = bench.buffer(logits);
  bench.run([&](Recorder& r) { r(TopKArgs{1, in, 64, 64, ids, values, sums, 0, 1, 30}); });
  const std::vector<float> y = floats(bench.result("values", values, exact).words);
  for (uint32_t i = 0; i < 64; ++i) {
    const double want = 30 * std::tanh(double{logits[63 - i]} / 30);
    EXPECT_NEAR(y[i] / want, 1, 1e-6) << "rank " << i;
  }
}

TEST_P(TopKTest, WritesFromItsFirstOutputRowOn) {
  Random random(14);
  for (const uint32_t first_out : {1u, 9u}) {
    compare(TopKCase{500, 5, random.values(size_t{500} * 4), 1, 0, first_out});
  }
}

TEST_P(TopKTest, RefusesCapsThatAreNone) {
  const auto refused = [&](float multiplier, float softcap) {
    EXPECT_THROW((TopKCase{64, 5, std::vector<float>(64), multiplier, softcap}(device())), Error);
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  refused(0, 0);
  refused(nan, 0);
  refused(1, -1);
  refused(1, nan);
  refused(1, std::numeric_limits<float>::infinity());
}

CANOPY_OP_TESTS(TopKTest);

}  // namespace
}  // namespace canopy::test
