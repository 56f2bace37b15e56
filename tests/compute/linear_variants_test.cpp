// Variants of the matrix product differ in which invocation computes what, never in the order of a row's sum: all give
// the same bits.

#include <gtest/gtest.h>

#include <cstring>

#include "engine/vulkan/vulkan_device.h"
#include "tests/compute/op_bench.h"
#include "tests/compute/op_test.h"
#include "tests/compute/random_data.h"

namespace canopy::test {
namespace {

constexpr uint32_t kWidth = 3;
constexpr uint32_t kRows = 80;

VulkanDeviceOptions variant(vk::LinearConfig config, std::optional<bool> texel = std::nullopt,
                            std::optional<bool> whole = false) {
  VulkanDeviceOptions options;
  options.linear = config;
  options.texel_fetch = texel;
  options.whole_rows = whole;
  return options;
}

// Types with kernels of their own structure, as many of them as are under test.
std::vector<WeightType> structures() {
  std::vector<WeightType> types = weight_types_under_test();
  std::erase_if(types, [](WeightType type) {
    return type != WeightType::f32 && type != WeightType::bf16 && type != WeightType::q8_0 && type != WeightType::q4_1;
  });
  return types;
}

// Two products of each of these; the second is added to a residual stream, and a norm follows.
std::vector<float> products(const VulkanDeviceOptions& options) {
  const auto device = open_vulkan_device(options);
  std::vector<float> all;
  for (const WeightType type : structures()) {
    OpBench bench(*device);
    Random random(11);
    const uint32_t cols = 608;  // two whole segments and a part of one
    const FileMatrix matrix = random.matrix(type, kRows, cols);
    const Weight* weight = bench.weight(matrix);
    const Activations* in = bench.activations(kWidth, cols, random.values(uint64_t{kWidth} * cols));
    const std::vector<float> stream = random.values(uint64_t{kWidth} * kRows);
    Buffer* x = bench.buffer(stream);
    Buffer* out = bench.output(uint64_t{kWidth} * kRows);
    Activations* activations = bench.output_activations(kWidth, kRows);
    const Buffer* norm = bench.buffer(random.values(kRows));
    bench.run([&](Recorder& record) {
      record(LinearArgs{kWidth, weight, in, 1e-5f, out, kRows, 0});
      LinearAddArgs add;
      add.width = kWidth;
      add.weight = weight;
      add.in = in;
      add.x = x;
      add.norm.weight = norm;
      add.out = activations;
      record(add);
    });
    for (const Buffer* buffer : {out, x}) {
      std::vector<float> values(uint64_t{kWidth} * kRows);
      device->read(*buffer, 0, std::as_writable_bytes(std::span(values)));
      all.insert(all.end(), values.begin(), values.end());
    }
    const std::vector<float> next = device->read_activations(*activations, kWidth);
    all.insert(all.end(), next.begin(), next.end());
  }
  for (const auto& message : validation_messages(*device)) ADD_FAILURE() << message.id << ": " << message.text;
  return all;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// One row times weights of more than 8 MiB, which are uploaded in several pieces where the host cannot see them.
std::vector<float> large_product(WeightType type, bool staging) {
  VulkanDeviceOptions options;
  options.linear = vk::LinearConfig{4, 8, 1};
  options.context.force_staging = staging;
  const auto device = open_vulkan_device(options);
  OpBench bench(*device);
  Random random(12);
  const uint32_t rows = 4500, cols = 2048;
  const Weight* weight = bench.weight(random.matrix(type, rows, cols));
  const Activations* in = bench.activations(1, cols, random.values(cols));
  Buffer* out = bench.output(rows);
  bench.run([&](Recorder& record) { record(LinearArgs{1, weight, in, 0, out, rows, 0}); });
  std::vector<float> values(rows);
  device->read(*out, 0, std::as_writable_bytes(std::span(values)));
  for (const auto& message : validation_messages(*device)) ADD_FAILURE() << message.id << ": " << message.text;
  return values;
}

TEST(LinearVariantsTest, WeightsUploadedInPiecesAreTheSame) {
  for (const WeightType type : {WeightType::f16, WeightType::q8_0}) {
    EXPECT_TRUE(same_bits(large_product(type, false), large_product(type, true))) << to_string(type);
  }
}

TEST(LinearVariantsTest, AllGiveTheSameBits) {
  const std::vector<float> expected = products(variant({4, 8, 1}));
  for (const vk::LinearConfig config : {vk::LinearConfig{8, 8, 1}, {16, 8, 1}, {4, 32, 1}, {4, 8, 2}, {4, 8, 4}}) {
    EXPECT_TRUE(same_bits(products(variant(config)), expected))
        << config.rows << " rows, " << config.lanes << " lanes, split " << config.split;
  }
  EXPECT_TRUE(same_bits(products(variant({4, 8, 1}, false)), expected)) << "storage and uniform reads";
}

TEST(LinearVariantsTest, RowsSummedInOneGoGiveTheSameBits) {
  if (open_vulkan_device()->info().name.find("SwiftShader") != std::string::npos) {
    GTEST_SKIP() << "rows are summed in one go only where activations are texels";
  }
  const std::vector<float> expected = products(variant({4, 8, 1}, std::nullopt, true));
  for (const vk::LinearConfig config : {vk::LinearConfig{8, 8, 1}, {16, 8, 1}, {4, 32, 1}}) {
    EXPECT_TRUE(same_bits(products(variant(config, std::nullopt, true)), expected))
        << config.rows << " rows, " << config.lanes << " lanes";
  }
}

TEST(LinearVariantsTest, AWeightCutIntoShardsGivesTheSameBits) {
  const std::vector<float> expected = products(variant({4, 8, 1}));
  VulkanDeviceOptions cut = variant({4, 8, 1});
  // The activations fit; for f32 with 608 columns 64 rows of weights take 155,648 bytes.
  cut.context.max_storage_range = 200'000;
  EXPECT_TRUE(same_bits(products(cut), expected));
}

}  // namespace
}  // namespace canopy::test
