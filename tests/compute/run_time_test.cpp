// The device's own time of a run, on devices with a clock, which all drivers used in tests have.

#include <chrono>

#include "tests/compute/forwarding_device.h"
#include "tests/compute/op_test.h"

namespace canopy::test {
namespace {

class RunTimeTest : public OpTest {};

// A bound of many positions makes a pass that is cut into several submissions, although its rows see few.
TEST_P(RunTimeTest, IsTheTimeOfAllParts) {
  OpBench bench(device());
  const KvShape shape{64, 2, 32, CacheType::f16};
  const std::vector<float> zeros(size_t{shape.slots} * 64);
  RowBatch batch;
  for (uint32_t i = 0; i < shape.slots; ++i) batch.add_text(0, i);
  AttentionArgs args;
  args.width = batch.width();
  args.heads = 4;
  args.q = bench.buffer(std::vector<float>(size_t{args.width} * 128));
  args.rows = bench.buffer(batch.rows);
  args.ancestors = bench.buffer(batch.ancestors);
  args.shape = shape;
  args.max_positions = is_slow_device() ? 1u << 18 : 1u << 22;  // the faster a device, the later it is cut
  args.pages = bench.buffer(std::vector<uint32_t>(args.max_positions / kPagePositions));
  args.cache = bench.kv(shape, zeros, zeros);
  args.out = bench.output_activations(args.width, 128);
  Recorder record;
  for (int i = 0; i < 3; ++i) record(args);
  const auto commands = device().compile(record.finish());

  EXPECT_FALSE(device().run(*commands, stopped_before())) << "the list is too short to be cut into parts";
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(device().run(*commands));
  const double wall = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  EXPECT_GT(device().last_run_ms(), 0);
  EXPECT_LE(device().last_run_ms(), wall);
}

TEST_P(RunTimeTest, IsNothingForARunOfNothing) {
  OpBench bench(device());
  Random random(2);
  const Buffer* logits = bench.buffer(random.values(500));
  Buffer* out = bench.output(2);
  bench.run([&](Recorder& r) { r(ArgmaxArgs{1, logits, 500, out}); });
  EXPECT_GT(device().last_run_ms(), 0);
  bench.run([](Recorder&) {});
  EXPECT_EQ(device().last_run_ms(), 0);
}

CANOPY_OP_TESTS(RunTimeTest);

}  // namespace
}  // namespace canopy::test
