// On the smallest device that the baseline allows, products can be recorded at every width of a tile, and give right
// results.

#include <chrono>
#include <thread>

#include "engine/base/error.h"
#include "engine/vulkan/vulkan_device.h"
#include "tests/compute/op_test.h"

namespace canopy::test {
namespace {

constexpr uint32_t kRows = 64;
constexpr uint32_t kCols = 4096;  // four chunks

class MinimalDeviceTest : public OpTest {};

/// A wide product of each kind: plain, added to a residual stream with a norm after it, and gated.
Results products(Device& device, uint32_t width, bool run) {
  OpBench bench(device);
  Random random(width);
  const Weight* weight = bench.weight(random.matrix(WeightType::q4_1, kRows, kCols));
  const FileMatrix half = random.matrix(WeightType::q4_1, kRows / 2, kCols);
  const Weight* paired = bench.paired_weight(half, half);
  const Activations* in = bench.activations(width, kCols, random.values(size_t{width} * kCols));
  Buffer* x = bench.buffer(random.values(size_t{width} * kRows));
  const Buffer* norm = bench.buffer(random.values(kRows));
  Buffer* out = bench.output(size_t{width} * kRows);
  Activations* next = bench.output_activations(width, kRows);
  Activations* gated = bench.output_activations(width, kRows / 2);
  const auto record = [&](Recorder& r) {
    r(LinearArgs{width, weight, in, 1e-5f, out, kRows, 0});
    r(LinearAddArgs{width, weight, in, x, {norm}, next, nullptr, 0, 0});
    r(LinearSwigluArgs{width, paired, in, 1e-5f, gated});
  };
  if (!run) {
    Recorder recorder;
    record(recorder);
    EXPECT_NE(device.compile(recorder.finish()), nullptr);
    return {};
  }
  bench.run(record);
  return {bench.result("out", out, f32_rounding), bench.result("x", x, f32_rounding),
          bench.result("next", next, width, f32_rounding), bench.norm_probe(next, width)};
}

TEST_P(MinimalDeviceTest, RecordsProductsOfEveryWidthOfATile) {
  for (uint32_t width = 1; width <= 9; ++width) {
    SCOPED_TRACE(width);
    products(device(), width, false);
  }
}

TEST_P(MinimalDeviceTest, ComputesWithTheVariantsItChose) {
  for (const uint32_t width : {1u, 2u, 9u}) {
    SCOPED_TRACE(width);
    compare([&](Device& device) { return products(device, width, true); });
  }
}

// The caller's timeout holds on software devices too, whose own one is long.
TEST_P(MinimalDeviceTest, GivesUpAfterTheTimeOfItsCaller) {
  VulkanDeviceOptions options;
  options.context.timeout = std::chrono::milliseconds(1);
  const auto device = open_vulkan_device(options);
  OpBench bench(*device);
  Random random(3);
  const uint32_t width = 512;
  const Weight* weight = bench.weight(random.matrix(WeightType::q4_1, 4 * kRows, kCols));
  const Activations* in = bench.activations(width, kCols, random.values(size_t{width} * kCols));
  Buffer* out = bench.output(size_t{width} * 4 * kRows);
  try {
    bench.run([&](Recorder& r) {
      for (int i = 0; i < 20; ++i) r(LinearArgs{width, weight, in, 0, out, 4 * kRows, 0});
    });
    ADD_FAILURE() << "10 GFLOP took less than a millisecond";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::device_lost);
    EXPECT_NE(std::string(e.what()).find("within 1 ms"), std::string::npos) << e.what();
  }
  // Until the device has finished, so that the destructor frees memory and does not leak it.
  std::this_thread::sleep_for(std::chrono::seconds(2));
}

CANOPY_OP_TESTS(MinimalDeviceTest);

}  // namespace
}  // namespace canopy::test
