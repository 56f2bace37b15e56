// The bits that ops on the processor give, as constants: the same on every processor, those of another architecture
// included, which cpu_sets_test cannot compare with each other. No result here is a NaN, whose bits are the
// processor's.
//
// Whoever changes them on purpose (kVersion in cpu_device.cpp then changes too) takes the new ones from the failures.

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/model/rotation.h"
#include "tests/compute/attention_case.h"
#include "tests/compute/cpu_cases.h"
#include "tests/compute/delta_case.h"

namespace canopy::test {
namespace {

std::string hash_of(const Results& results) {
  std::string bytes;
  for (const Result& result : results) {
    bytes.append(reinterpret_cast<const char*>(result.words.data()), result.words.size() * sizeof(uint32_t));
  }
  return damage_hash_text(bytes);
}

Results norms(Device& device, bool gate_within = false) {
  OpBench bench(device);
  Random random(9);
  const uint32_t width = 5, cols = 75, heads = 3, dim = 30;
  Buffer* x = bench.buffer(random.values(width * cols));
  Activations* added = bench.output_activations(width, cols);
  Activations* gated = bench.output_activations(width, heads * dim);
  const NormAddArgs add{.width = width,
                        .in = bench.buffer(random.values(width * cols)),
                        .weight = bench.buffer(random.values(cols)),
                        .eps = 1e-6f,
                        .x = x,
                        .norm = {bench.buffer(random.values(cols))},
                        .out = added};
  GatedNormArgs gate;
  gate.width = width;
  gate.heads = heads;
  gate.head_dim = dim;
  gate.in = bench.buffer(random.values(width * heads * dim));
  gate.gate = bench.buffer(scaled(random, width * heads * dim, 10));
  gate.gate_within = gate_within;
  gate.weight = bench.buffer(random.values(gate.weights()));
  gate.eps = 1e-6f;
  gate.out = gated;
  bench.run([&](Recorder& r) {
    r(add);
    r(gate);
  });
  return {bench.result("x", x, exact), bench.result("added", added, width, exact),
          bench.result("gated", gated, width, exact)};
}

/// Text behind a page's end, then a tree.
Results attention(Device& device, CacheType type) {
  const KvShape shape{200, 2, 96, type};
  RowBatch batch;
  for (uint32_t i = 0; i < 5; ++i) batch.add_text(0, 130 + i);
  for (uint32_t i = 0; i < 7; ++i) {
    batch.add_node(0, 190 + i, 130, i == 0 ? 4 : static_cast<int32_t>(4 + (i + 1) / 2));
  }
  Random random(10);
  const View view{.window = 100, .sinks = true, .softcap = 20};
  return run_attention(device, shape, 6, batch, random.values(size_t{batch.width()} * 6 * shape.head_dim),
                       random_cache(shape, 11), 140, view);
}

Results rotated(Device& device, CacheType type) {
  OpBench bench(device);
  Random random(12);
  const uint32_t width = 6, heads = 4, context = 40;
  const KvShape shape{context, 2, 32, type};
  const std::vector<float> before(size_t{context} * 64, 1.0f);
  RowBatch batch;
  for (uint32_t i = 0; i < width; ++i) batch.add_text(0, 3 * i);
  RopeStoreArgs args;
  args.width = width;
  args.qkv = bench.buffer(random.values(width * (heads + 4) * 32));
  args.rows = bench.buffer(batch.rows);
  args.rotation = bench.buffer(random.values(context * 32));
  args.q_norm = bench.buffer(random.values(32));
  args.k_norm = bench.buffer(random.values(32));
  args.norm_eps = 1e-6f;
  args.heads = heads;
  args.shape = shape;
  KvLayer* cache = bench.kv(shape, before, before);
  args.cache = cache;
  Buffer* q = bench.output(width * heads * 32);
  args.q = q;
  bench.run([&](Recorder& r) { r(args); });
  return {bench.keys("k", cache, shape, exact), bench.values("v", cache, shape, exact), bench.result("q", q, exact)};
}

Results recurrence(Device& device, const DeltaShape& shape) {
  const DeltaPass pass{shape, random_parents(9, 3, 1), true};
  return DeltaRun(device, pass, DeltaNumbers(pass.shape, pass.width(), 13)).results();
}

class CpuBits : public CpuSetTest {
 protected:
  void SetUp() override {
    CpuSetTest::SetUp();
    if (!IsSkipped()) device_ = open_cpu_device({GetParam(), 2});
  }
  std::unique_ptr<Device> device_;
};

TEST_P(CpuBits, OfProducts) {
  // In the order of WeightType.
  static const std::array<std::string, kWeightTypes> kHashes = {
      "7c4a9f36467c67e8", "b958b48e44b9b9f5", "b05b26d5e273367d", "12a70298ead5cb76",
      "201859e588389940", "cdd85a4358e14629", "4690383f3060421b", "de5f3606ea0b53b4",
      "59cb12ca559714df", "4d157783fa4635c2", "15f82b665eb3ea2d", "14eab260aec6217a",
      "8978fd02de9c7fcf", "aef74e8048fa094b", "b7a8bcce82e8dc42", "6a049b4b573d17b9"};
  for (uint32_t i = 0; i < kWeightTypes; ++i) {
    const auto type = static_cast<WeightType>(i);
    EXPECT_EQ(hash_of(products(*device_, type)), kHashes[i]) << to_string(type);
  }
}

TEST_P(CpuBits, OfWhatIsNoProduct) {
  EXPECT_EQ(hash_of(others(*device_)), "a69ffe3d0b6d6a68");
  EXPECT_EQ(hash_of(norms(*device_)), "f3690b9bea65ff9f");
  EXPECT_EQ(hash_of(norms(*device_, true)), "126fae334de10dbc");
  EXPECT_EQ(hash_of(attention(*device_, CacheType::f32)), "f21983dc39bfbf7f");
  EXPECT_EQ(hash_of(attention(*device_, CacheType::f16)), "7220052eda891021");
  EXPECT_EQ(hash_of(attention(*device_, CacheType::q8_0)), "ef80ca79409c0de6");
  EXPECT_EQ(hash_of(rotated(*device_, CacheType::f32)), "2e24876596595e0f");
  EXPECT_EQ(hash_of(rotated(*device_, CacheType::f16)), "355f6a06b3151b88");
  EXPECT_EQ(hash_of(rotated(*device_, CacheType::q8_0)), "2c7bc92064e7e5e0");
  EXPECT_EQ(hash_of(recurrence(*device_, kOddDelta)), "5b08584074f047a1");
  EXPECT_EQ(hash_of(recurrence(*device_, kOddScan)), "4930b3aefc321df9");
}

CANOPY_ON_CPU_SETS(CpuBits);

// Tables of angles are not the device's, but what it turns by.
TEST(RotationBits, OfTables) {
  const auto table = [](double theta, uint32_t dim, uint32_t context) {
    ModelConfig config;
    config.head_dim = dim;
    config.rope_theta = theta;
    const std::vector<float> values = rotation_table(config, context);
    return damage_hash_text({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  };
  EXPECT_EQ(table(1e4, 64, 4096), "1351667792a36379");
  EXPECT_EQ(table(5e5, 128, 4096), "5021837004838331");
  EXPECT_EQ(table(1e6, 96, 40960), "f37f0f07e39ea202");
}

TEST(RotationBits, QueriesGrowInStepsOfTheOriginalContext) {
  ModelConfig config;
  config.head_dim = 8;
  config.rotary_dim = 4;
  config.rope_theta = 100;
  config.rope_scaling.original_context = 4;
  config.rope_scaling.query_growth = 0.5;
  EXPECT_EQ(query_offset(config, 4), 0u) << "no position is beyond the original context";
  EXPECT_EQ(rotation_table(config, 4).size(), 4 * 8u);
  EXPECT_EQ(query_offset(config, 11), 11u);
  const std::vector<float> table = rotation_table(config, 11);
  ASSERT_EQ(table.size(), 2 * 11 * 8u);
  for (size_t i = 0; i < 11 * 8u; ++i) {
    const double factor = std::vector{1.0, 1 + 0.5 * std::log(2.0), 1 + 0.5 * std::log(3.0)}[i / 8 / 4];
    EXPECT_FLOAT_EQ(table[11 * 8 + i], static_cast<float>(table[i] * factor)) << i;
  }
  config.rope_scaling.query_growth = 0;
  EXPECT_EQ(rotation_table(config, 11), std::vector<float>(table.begin(), table.begin() + 11 * 8));
}

}  // namespace
}  // namespace canopy::test
