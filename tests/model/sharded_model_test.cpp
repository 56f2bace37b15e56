// On a device whose storage buffers end at 1 MiB, weights are cut into shards of rows, and nothing else changes.

#include <gtest/gtest.h>

#include <cstring>

#include "engine/model/model.h"
#include "engine/vulkan/vulkan_device.h"
#include "tests/base/temp_folder.h"
#include "tests/model/all_logits.h"
#include "tests/model/random_model.h"
#include "tests/model/same_bits.h"

namespace canopy::test {
namespace {

constexpr uint64_t kLimit = 1 << 20;

/// A model whose embedding and head are beyond the limit in every type, and most other matrices in the wide types.
RandomModel large(TensorType type) {
  RandomModel random;
  random.type = type;
  random.tied = false;
  random.hidden = 512;
  random.heads = 8;
  random.head_dim = 64;
  random.ffn = 1280;
  random.vocab = 5000;
  return random;
}

std::unique_ptr<Device> open(std::optional<uint64_t> storage_range) {
  VulkanDeviceOptions options;
  options.context.max_storage_range = storage_range;
  // Only one variant, so that nothing is measured and both devices use the same.
  options.fma = vk::FmaConfig{};
  return open_vulkan_device(options);
}

struct Results {
  std::vector<float> prompt, decoded, keys;
};

Results results_on(Device& device, const ModelFile& file) {
  ModelOptions options;
  options.context = 64;
  options.max_width = 16;
  const auto model = Model::load(device, file, options);
  Results results;
  RowBatch prompt, next;
  for (uint32_t i = 0; i < 11; ++i) prompt.add_text((i * 1931 + 7) % 5000, i);
  results.prompt = logits_of(*model, prompt, {0, 3, 6});
  next.add_text(4999, 11);
  results.decoded = logits_of(*model, next, {0});
  results.keys = model->read_kv(1, false, 0, 12);
  return results;
}

void expect_the_same(const ModelFile& file, Device& whole, Device& cut) {
  const Results a = results_on(whole, file), b = results_on(cut, file);
  EXPECT_TRUE(same_bits(a.prompt, b.prompt));
  EXPECT_TRUE(same_bits(a.decoded, b.decoded));
  EXPECT_TRUE(same_bits(a.keys, b.keys));
  for (const Device* device : {&whole, &cut}) {
    for (const auto& message : validation_messages(*device)) ADD_FAILURE() << message.id << ": " << message.text;
  }
}

class ShardedModel : public ::testing::TestWithParam<TensorType> {};

TEST_P(ShardedModel, GivesTheBitsOfAWholeOne) {
  const TempFolder folder;
  const ModelFile file = ModelFile::open(folder.write("model.gguf", large(GetParam()).build()));
  ASSERT_GT(file.require("token_embd", 5000, 512).bytes.size(), kLimit);
  ASSERT_GT(file.require("output", 5000, 512).bytes.size(), kLimit);
  const auto whole = open(std::nullopt), cut = open(kLimit);
  // The limit really holds: other objects beyond it are refused.
  EXPECT_THROW(cut->allocate_kv({64, 64, 256, CacheType::f32}, 1, "too long"), Error);
  EXPECT_NO_THROW(whole->allocate_kv({64, 64, 256, CacheType::f32}, 1, "long"));
  expect_the_same(file, *whole, *cut);
}

// Shards begin and end within experts.
TEST_P(ShardedModel, MayHaveExpertsInSeveralShards) {
  const TempFolder folder;
  RandomModel random = large(GetParam());
  random.architecture = "qwen3moe";
  random.experts = 20;
  random.experts_used = 3;
  random.expert_ffn = 256;
  const ModelFile file = ModelFile::open(folder.write("model.gguf", random.build()));
  ASSERT_GT(20 * file.require("blk.0.ffn_gate.0", 256, 512).bytes.size(), kLimit);
  expect_the_same(file, *open(std::nullopt), *open(kLimit));
}

INSTANTIATE_TEST_SUITE_P(Types, ShardedModel,
                         ::testing::Values(TensorType::f32, TensorType::bf16, TensorType::q8_0, TensorType::q4_1,
                                           TensorType::q4_k),
                         [](const auto& info) { return std::string(to_string(info.param)); });

}  // namespace
}  // namespace canopy::test
