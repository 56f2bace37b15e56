#pragma once
// What is asked of each instruction set of the processor in cpu_sets_test and cpu_bits_test.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/cpu/cpu_device.h"
#include "engine/cpu/processor.h"
#include "tests/compute/op_bench.h"
#include "tests/compute/random_data.h"

namespace canopy::test {

inline constexpr uint32_t kCpuWidth = 19;

inline std::vector<float> scaled(Random& random, size_t count, float factor) {
  std::vector<float> values = random.values(count);
  for (float& value : values) value *= factor;
  return values;
}

/// Products of all kinds with weights of one type.
inline Results products(Device& device, WeightType type) {
  OpBench bench(device);
  Random random(7);
  const uint32_t cols = block_size(type).elements == 256 ? 512 : 96, rows = 70;
  const Weight* weight = bench.weight(random.matrix(type, rows, cols));
  const FileMatrix even = random.matrix(type, 37, cols);  // before the other, whatever the order of arguments is
  const Weight* paired = bench.paired_weight(even, random.matrix(type, 37, cols));
  const Activations* in = bench.activations(kCpuWidth, cols, scaled(random, size_t{kCpuWidth} * cols, 3));
  Buffer* out = bench.output(uint64_t{kCpuWidth} * rows);
  Buffer* x = bench.buffer(scaled(random, size_t{kCpuWidth} * rows, 1));
  Buffer* norm = bench.buffer(scaled(random, rows, 1));
  Activations* added = bench.output_activations(kCpuWidth, rows);
  Activations* gated = bench.output_activations(kCpuWidth, 37);
  bench.run([&](Recorder& r) {
    r(LinearArgs{kCpuWidth, weight, in, 1e-5f, out, rows, 0});
    r(LinearAddArgs{kCpuWidth, weight, in, x, {norm}, added});
    r(LinearSwigluArgs{kCpuWidth, paired, in, 1e-5f, gated});
  });
  return {bench.result("out", out, exact), bench.result("x", x, exact), bench.result("added", added, kCpuWidth, exact),
          bench.result("gated", gated, kCpuWidth, exact)};
}

/// What is left: functions of elements, heads and the choice of tokens.
inline Results others(Device& device) {
  OpBench bench(device);
  Random random(8);
  const uint32_t vocab = 1237, k = 40;
  Buffer* logits = bench.buffer(scaled(random, size_t{kCpuWidth} * vocab, 20));
  Buffer* capped = bench.buffer(scaled(random, size_t{kCpuWidth} * vocab, 60));
  Buffer* best = bench.output(2 * kCpuWidth);
  Buffer* ids = bench.output(kCpuWidth * k);
  Buffer* values = bench.output(kCpuWidth * k);
  Buffer* sums = bench.output(kCpuWidth);
  Activations* gate = bench.activations(kCpuWidth, 45, scaled(random, size_t{kCpuWidth} * 45, 2));
  Buffer* open = bench.buffer(scaled(random, size_t{kCpuWidth} * 45, 4));
  bench.run([&](Recorder& r) {
    r(ArgmaxArgs{kCpuWidth, logits, vocab, best});
    r(TopKArgs{kCpuWidth, logits, vocab, k, ids, values, sums, 0, 0.7f, 25});
    r(CapLogitsArgs{kCpuWidth, capped, vocab, 30});
    r(GateArgs{kCpuWidth, open, gate});
  });
  return {bench.integers("best", best),          bench.integers("ids", ids),
          bench.result("values", values, exact), bench.result("sums", sums, exact),
          bench.result("capped", capped, exact), bench.result("gate", gate, kCpuWidth, exact)};
}

/// A test with each set of this build; one that the processor lacks is skipped by name.
class CpuSetTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    for (const cpu::InstructionSet& set : cpu::instruction_sets()) {
      if (GetParam() == set.kernels->name && !set.missing.empty()) GTEST_SKIP() << "no " << set.missing << " here";
    }
  }
};

inline std::vector<std::string> set_names() {
  std::vector<std::string> names;
  for (const cpu::InstructionSet& set : cpu::instruction_sets()) names.emplace_back(set.kernels->name);
  return names;
}

}  // namespace canopy::test

#define CANOPY_ON_CPU_SETS(Fixture)                                                   \
  INSTANTIATE_TEST_SUITE_P(On, Fixture, testing::ValuesIn(canopy::test::set_names()), \
                           [](const testing::TestParamInfo<std::string>& info) { return info.param; })
