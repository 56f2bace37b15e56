// The device's own time of a run, on devices with a clock; every driver that tests run on has one.

#include <chrono>

#include "tests/compute/op_test.h"

namespace canopy::test {
namespace {

class RunTimeTest : public OpTest {};

// Enough work for several submissions, whose times add up.
TEST_P(RunTimeTest, IsTheTimeOfAllParts) {
  OpBench bench(device());
  Random random(1);
  const uint32_t size = 1024, width = 64;
  const Weight* weight = bench.weight(random.matrix(WeightType::f32, size, size));
  const Panel* in = bench.panel(width, size, random.values(size_t{width} * size));
  Buffer* out = bench.output(size_t{width} * size);
  const auto recorder = device().record();
  for (int i = 0; i < 5; ++i) recorder->linear({width, weight, in, 0, out, size, 0});
  const auto commands = recorder->finish();

  uint32_t pauses = 0;
  const auto count = [&] { return ++pauses > 0; };
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(device().run(*commands, count));
  const double wall = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  EXPECT_GE(pauses, 1u) << "the list is too short to be cut into parts";
  EXPECT_GT(device().last_run_ms(), 0);
  EXPECT_LE(device().last_run_ms(), wall);
}

TEST_P(RunTimeTest, IsNothingForARunOfNothing) {
  OpBench bench(device());
  Random random(2);
  const Buffer* logits = bench.buffer(random.values(500));
  Buffer* out = bench.output(2);
  bench.run([&](Recorder& r) { r.argmax({1, logits, 500, out}); });
  EXPECT_GT(device().last_run_ms(), 0);
  bench.run([](Recorder&) {});
  EXPECT_EQ(device().last_run_ms(), 0);
}

CANOPY_OP_TESTS(RunTimeTest);

}  // namespace
}  // namespace canopy::test
