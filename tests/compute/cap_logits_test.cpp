#include <limits>

#include "engine/base/error.h"
#include "tests/compute/op_test.h"

namespace canopy::test {
namespace {

struct CapLogitsCase {
  uint32_t width;
  uint32_t vocab;
  float cap;

  Results operator()(Device& device) const {
    OpBench bench(device);
    Random random(width + vocab);
    std::vector<float> values = random.values(size_t{width} * vocab);
    for (size_t i = 0; i < values.size(); ++i) values[i] *= i % 3 == 0 ? 0.01f : i % 3 == 1 ? cap : 20 * cap;
    values[0] = std::numeric_limits<float>::quiet_NaN();
    values[values.size() / 2] = -std::numeric_limits<float>::infinity();
    values[values.size() - 1] = 0;
    values.resize(values.size() + vocab, 77.0f);  // a row more than the op may touch
    Buffer* logits = bench.buffer(values);
    bench.run([&](Recorder& r) { r(CapLogitsArgs{width, logits, vocab, cap}); });
    return {bench.result("logits", logits, f32_rounding)};
  }
};

class CapLogitsTest : public OpTest {};

TEST_P(CapLogitsTest, BendsLogitsTowardsTheCap) {
  for (const uint32_t vocab : {1u, 63u, 64u, 257u, 1010u}) {
    for (const uint32_t width : {1u, 3u, 17u}) {
      SCOPED_TRACE("width " + std::to_string(width) + ", vocab " + std::to_string(vocab));
      compare(CapLogitsCase{width, vocab, 30});
    }
  }
  compare(CapLogitsCase{2, 500, 0.75f});
}

TEST_P(CapLogitsTest, RefusesACapOfNothing) {
  for (const float cap : {0.0f, -1.0f, std::numeric_limits<float>::quiet_NaN()}) {
    OpBench bench(device());
    Buffer* logits = bench.buffer(std::vector<float>(8, 1.0f));
    EXPECT_THROW(bench.run([&](Recorder& r) { r(CapLogitsArgs{1, logits, 8, cap}); }), Error) << cap;
  }
}

CANOPY_OP_TESTS(CapLogitsTest);

}  // namespace
}  // namespace canopy::test
