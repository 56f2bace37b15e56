// Variants of the matrix product differ in which invocation computes what, never in the order of a row's sum: all give
// the same bits.

#include <gtest/gtest.h>

#include <cstring>

#include "engine/base/error.h"
#include "engine/vulkan/vulkan_device.h"
#include "tests/compute/op_bench.h"
#include "tests/compute/op_test.h"
#include "tests/compute/random_data.h"
#include "tests/compute/rope_data.h"

namespace canopy::test {
namespace {

constexpr uint32_t kWidth = 3;
constexpr uint32_t kRows = 80;

VulkanDeviceOptions fma_variant(vk::FmaConfig config) {
  VulkanDeviceOptions options;
  options.family = vk::KernelFamily::fma;
  options.fma = config;
  return options;
}

VulkanDeviceOptions matrix_variant(vk::MatrixConfig config) {
  VulkanDeviceOptions options;
  options.family = vk::KernelFamily::matrix;
  options.matrix = config;
  return options;
}

// Matrices of another shape than the device names: llvmpipe multiplies any, which validation layers complain of.
VulkanDeviceOptions integer_variant(vk::MatrixConfig config) {
  VulkanDeviceOptions options;
  options.family = vk::KernelFamily::matrix_i8;
  options.matrix = config;
  if (config.integers()) options.instance.validation = vk::Validation::off;
  return options;
}

bool has(vk::KernelFamily family) {
  try {
    open_vulkan_device({.family = family});
    return true;
  } catch (const Error&) {
    return false;
  }
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
std::vector<float> products(const VulkanDeviceOptions& options, const std::vector<WeightType>& types = structures()) {
  const auto device = open_vulkan_device(options);
  std::vector<float> all;
  for (const WeightType type : types) {
    OpBench bench(*device);
    Random random(11);
    // Two chunks, and slices and segments of 256 of which one is not whole, where blocks are smaller.
    const uint32_t cols = columns_for(type, {2784, 2816})[0];
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

// K, V and q of heads whose weight is cut in the middle of heads, where shards have as few rows as `options` allow.
std::vector<float> heads(const VulkanDeviceOptions& options) {
  const auto device = open_vulkan_device(options);
  OpBench bench(*device);
  Random random(13);
  const uint32_t cols = 2656, dim = 128, context = 150;  // two chunks
  const Weight* weight = bench.weight(random.matrix(WeightType::q4_1, 4 * dim, cols));
  ProjectHeadsArgs args;
  args.weights = {weight};
  args.in = bench.activations(kWidth, cols, random.values(uint64_t{kWidth} * cols));
  args.in_norm_eps = 1e-5f;
  args.qkv = bench.output(uint64_t{kWidth} * 4 * dim);
  args.heads.width = kWidth;
  args.heads.qkv = args.qkv;
  args.heads.rows = bench.buffer(text_and_tree_rows(kWidth, context).rows);
  args.heads.rotation = bench.buffer(rotation_table(context, dim));
  args.heads.q_norm = args.heads.k_norm = bench.buffer(random.values(dim));
  args.heads.norm_eps = 1e-6f;
  args.heads.heads = 2;
  args.heads.shape = {context, 1, dim, CacheType::f32};
  const std::vector<float> before(size_t{context} * dim, 0.0f);
  KvLayer* layer = bench.kv(args.heads.shape, before, before);
  args.heads.cache = layer;
  args.heads.q = bench.output(uint64_t{kWidth} * 2 * dim);
  bench.run([&](Recorder& record) { record(args); });
  std::vector<float> all(uint64_t{kWidth} * 2 * dim);
  device->read(*args.heads.q, 0, std::as_writable_bytes(std::span(all)));
  for (const bool of_values : {false, true}) {
    const std::vector<float> stored = device->read_kv(*layer, of_values, 0, context);
    all.insert(all.end(), stored.begin(), stored.end());
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
  options.family = vk::KernelFamily::fma;
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

TEST(LinearVariantsTest, AllOfTheFamilyFmaGiveTheSameBits) {
  const std::vector<float> expected = products(fma_variant({.columns = 1}));
  for (const vk::FmaConfig config : {vk::FmaConfig{.columns = 2, .slices = 2, .stage = 2},
                                     {.columns = 4, .slices = 4, .rows = 2, .stage = 1},
                                     {.columns = 1, .lanes = 128, .stage = 8},
                                     {.columns = 2, .lanes = 64, .slices = 4, .rows = 1, .stage = 4}}) {
    EXPECT_TRUE(same_bits(products(fma_variant(config)), expected))
        << config.columns << " columns, " << config.lanes << " lanes, " << config.slices << " slices, " << config.rows
        << " rows, " << config.stage << " blocks staged";
  }
}

TEST(LinearVariantsTest, AllOfTheFamilyMatrixGiveTheSameBits) {
  if (!has(vk::KernelFamily::matrix)) GTEST_SKIP() << "the device has no cooperative matrices of halves";
  const std::vector<float> expected = products(matrix_variant({.columns = 16, .subgroups = 8, .row_tiles = 1}));
  std::vector<vk::MatrixConfig> configs = {{.columns = 32, .subgroups = 8, .row_tiles = 1},
                                           {.columns = 16, .subgroups = 4, .row_tiles = 1, .ahead = 2},
                                           {.columns = 16, .subgroups = 8, .row_tiles = 2},
                                           {.columns = 16, .subgroups = 8, .row_tiles = 1, .step = 64}};
  if (!is_slow_device()) {
    configs.push_back({.columns = 16, .subgroups = 4, .row_tiles = 2, .step = 64, .ahead = 2});
    configs.push_back({.columns = 16, .subgroups = 8, .row_tiles = 2, .step = 64});
    configs.push_back({.columns = 16, .subgroups = 8, .row_tiles = 1, .step = 128, .ahead = 2});
    configs.push_back({.columns = 16, .subgroups = 16, .row_tiles = 2, .ahead = 2});
  }
  for (const vk::MatrixConfig& config : configs) {
    EXPECT_TRUE(same_bits(products(matrix_variant(config)), expected)) << config.variant().text;
  }
}

// Sums of integers are exact: even matrices of other shapes give the same bits.
TEST(LinearVariantsTest, AllOfTheFamilyMatrixI8GiveTheSameBits) {
  if (!has(vk::KernelFamily::matrix_i8)) GTEST_SKIP() << "the device has no cooperative matrices of integers";
  std::vector<WeightType> types = {WeightType::q2_k};        // two scales of a block
  if (!is_slow_device()) types.push_back(WeightType::q4_k);  // one
  const std::vector<float> expected = products(integer_variant({.columns = 16, .subgroups = 8}), types);
  const auto shape = [](uint32_t side, uint32_t depth) {
    return vk::MatrixShape{side,
                           side,
                           depth,
                           vk::MatrixType::s8,
                           vk::MatrixType::s8,
                           vk::MatrixType::s32,
                           vk::MatrixType::s32,
                           vk::MatrixScope::subgroup};
  };
  std::vector<vk::MatrixConfig> configs = {{.columns = 16, .subgroups = 4, .row_tiles = 2, .step = 64}};
  if (open_vulkan_device()->info().type == "software") {
    configs.push_back({.columns = 16, .subgroups = 4, .shape = shape(16, 16)});
    configs.push_back({.columns = 16, .subgroups = 8, .shape = shape(8, 32)});
  }
  for (const vk::MatrixConfig& config : configs) {
    EXPECT_TRUE(same_bits(products(integer_variant(config), types), expected)) << config.variant().text;
  }
}

TEST(LinearVariantsTest, AWeightCutIntoShardsGivesTheSameBits) {
  VulkanDeviceOptions cut;
  // The activations fit; for f32 with 2,784 columns 64 rows of weights take 712,704 bytes.
  cut.context.max_storage_range = 720'000;
  EXPECT_TRUE(same_bits(products(cut), products({})));
}

void expect_heads_of_shards(const VulkanDeviceOptions& options) {
  const std::vector<float> expected = heads(options);
  // 64 rows of weights take 84,992 bytes: shards of 192 rows and of 64.
  for (const uint64_t bytes : {260'000u, 100'000u}) {
    VulkanDeviceOptions cut = options;
    cut.context.max_storage_range = bytes;
    EXPECT_TRUE(same_bits(heads(cut), expected)) << bytes;
  }
}

TEST(LinearVariantsTest, HeadsAcrossShardsOfTheFamilyFmaHaveTheSameBits) {
  expect_heads_of_shards(fma_variant({.columns = 2}));
  expect_heads_of_shards(fma_variant({.columns = 4, .lanes = 128}));  // tiles that shards do not divide
}

TEST(LinearVariantsTest, HeadsAcrossShardsOfTheFamilyMatrixHaveTheSameBits) {
  if (!has(vk::KernelFamily::matrix)) GTEST_SKIP() << "the device has no cooperative matrices of halves";
  expect_heads_of_shards(matrix_variant({.columns = 16, .subgroups = 8, .row_tiles = 1}));
}

}  // namespace
}  // namespace canopy::test
