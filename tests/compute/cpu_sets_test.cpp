// All instruction sets, and any number of threads, give the same bits: of products with every type of weights, and of
// all that is not a product. A set that the processor lacks is skipped by name.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/cpu/cpu_device.h"
#include "engine/cpu/processor.h"
#include "tests/compute/op_bench.h"
#include "tests/compute/random_data.h"

namespace canopy::test {
namespace {

constexpr uint32_t kWidth = 19;

std::vector<float> scaled(Random& random, size_t count, float factor) {
  std::vector<float> values = random.values(count);
  for (float& value : values) value *= factor;
  return values;
}

/// Products of all kinds with weights of one type.
Results products(Device& device, WeightType type) {
  OpBench bench(device);
  Random random(7);
  const uint32_t cols = block_size(type).elements == 256 ? 512 : 96, rows = 70;
  const Weight* weight = bench.weight(random.matrix(type, rows, cols));
  const Weight* paired = bench.paired_weight(random.matrix(type, 37, cols), random.matrix(type, 37, cols));
  const Activations* in = bench.activations(kWidth, cols, scaled(random, size_t{kWidth} * cols, 3));
  Buffer* out = bench.output(uint64_t{kWidth} * rows);
  Buffer* x = bench.buffer(scaled(random, size_t{kWidth} * rows, 1));
  Buffer* norm = bench.buffer(scaled(random, rows, 1));
  Activations* added = bench.output_activations(kWidth, rows);
  Activations* gated = bench.output_activations(kWidth, 37);
  bench.run([&](Recorder& r) {
    r(LinearArgs{kWidth, weight, in, 1e-5f, out, rows, 0});
    r(LinearAddArgs{kWidth, weight, in, x, {norm}, added});
    r(LinearSwigluArgs{kWidth, paired, in, 1e-5f, gated});
  });
  return {bench.result("out", out, exact), bench.result("x", x, exact), bench.result("added", added, kWidth, exact),
          bench.result("gated", gated, kWidth, exact)};
}

/// What is left: functions of elements, heads and the choice of tokens.
Results others(Device& device) {
  OpBench bench(device);
  Random random(8);
  const uint32_t vocab = 1237, k = 40;
  Buffer* logits = bench.buffer(scaled(random, size_t{kWidth} * vocab, 20));
  Buffer* capped = bench.buffer(scaled(random, size_t{kWidth} * vocab, 60));
  Buffer* best = bench.output(2 * kWidth);
  Buffer* ids = bench.output(kWidth * k);
  Buffer* values = bench.output(kWidth * k);
  Buffer* sums = bench.output(kWidth);
  Activations* gate = bench.activations(kWidth, 45, scaled(random, size_t{kWidth} * 45, 2));
  Buffer* open = bench.buffer(scaled(random, size_t{kWidth} * 45, 4));
  bench.run([&](Recorder& r) {
    r(ArgmaxArgs{kWidth, logits, vocab, best});
    r(TopKArgs{kWidth, logits, vocab, k, ids, values, sums, 0, 0.7f, 25});
    r(CapLogitsArgs{kWidth, capped, vocab, 30});
    r(GateArgs{kWidth, open, gate});
  });
  return {bench.integers("best", best),          bench.integers("ids", ids),
          bench.result("values", values, exact), bench.result("sums", sums, exact),
          bench.result("capped", capped, exact), bench.result("gate", gate, kWidth, exact)};
}

class CpuSets : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    for (const cpu::InstructionSet& set : cpu::instruction_sets()) {
      if (GetParam() == set.kernels->name && !set.missing.empty()) GTEST_SKIP() << "no " << set.missing << " here";
    }
  }
  static Device& portable() {
    static const std::unique_ptr<Device> device = open_cpu_device({"portable", 1});
    return *device;
  }
};

TEST_P(CpuSets, GiveTheBitsOfThePortableKernels) {
  for (const uint32_t threads : {1u, 2u, 5u}) {
    const std::unique_ptr<Device> device = open_cpu_device({GetParam(), threads});
    SCOPED_TRACE(std::to_string(threads) + " threads");
    for (uint32_t i = 0; i < kWeightTypes; ++i) {
      const auto type = static_cast<WeightType>(i);
      SCOPED_TRACE(to_string(type));
      expect_same(products(portable(), type), products(*device, type));
    }
    expect_same(others(portable()), others(*device));
  }
}

std::vector<std::string> set_names() {
  std::vector<std::string> names;
  for (const cpu::InstructionSet& set : cpu::instruction_sets()) names.emplace_back(set.kernels->name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(On, CpuSets, testing::ValuesIn(set_names()),
                         [](const testing::TestParamInfo<std::string>& info) { return info.param; });

}  // namespace
}  // namespace canopy::test
