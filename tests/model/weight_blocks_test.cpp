// Weights in few allocations: nothing of the results depends on it, and a load that runs out of memory leaves nothing.

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/model/model.h"
#include "engine/vulkan/vulkan_device.h"
#include "tests/base/temp_folder.h"
#include "tests/model/all_logits.h"
#include "tests/model/random_model.h"
#include "tests/model/same_bits.h"
#include "tests/vulkan/allocation_hook.h"

namespace canopy::test {
namespace {

using vk::testing::AllocationHook;

constexpr uint64_t kBudget = 256 << 20;
constexpr uint64_t kBlock = 1 << 20;

RandomModel some_model(TensorType type) {
  RandomModel random;
  random.type = type;
  random.tied = false;
  random.hidden = 256;
  random.heads = 4;
  random.head_dim = 64;
  random.ffn = 512;
  random.vocab = 3000;
  return random;
}

std::unique_ptr<Device> open(std::optional<uint64_t> max_block, bool behind_bus) {
  VulkanDeviceOptions options;
  options.context.max_block = max_block;
  options.context.memory_budget = kBudget;
  options.context.force_staging = behind_bus;
  options.fma = vk::FmaConfig{};
  return open_vulkan_device(options);
}

std::unique_ptr<Model> load(Device& device, const ModelFile& file) {
  ModelOptions options;
  options.context = 64;
  options.max_width = 8;
  return Model::load(device, file, options);
}

std::vector<float> logits_on(Model& model) {
  RowBatch rows;
  for (uint32_t i = 0; i < 5; ++i) rows.add_text((i * 931 + 7) % 3000, i);
  return logits_of(model, rows, {0, 4});
}

uint64_t held(Device& device) {
  device.finish();  // which frees what it still used
  return kBudget - device.memory().available;
}

void expect_no_messages(const Device& device) {
  for (const auto& message : validation_messages(device)) ADD_FAILURE() << message.id << ": " << message.text;
}

class WeightBlocks : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Memory, WeightBlocks, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "behind_a_bus" : "unified"; });

TEST_P(WeightBlocks, GiveTheSameBits) {
  const TempFolder folder;
  for (const TensorType type : {TensorType::bf16, TensorType::q8_0}) {  // q8_0 keeps scales apart
    const ModelFile file = ModelFile::open(folder.write("model.gguf", some_model(type).build()));
    const auto small = open(kBlock, GetParam()), large = open(std::nullopt, GetParam());
    AllocationHook hook;
    const auto in_large = load(*large, file);
    const size_t few = hook.sizes.size();
    const auto in_small = load(*small, file);
    EXPECT_GT(hook.sizes.size() - few, few);
    EXPECT_TRUE(same_bits(logits_on(*in_small), logits_on(*in_large)));
    expect_no_messages(*small);
    expect_no_messages(*large);
  }
}

// The plan counts each weight; blocks add at most what aligns their buffers.
TEST_P(WeightBlocks, TakeWhatThePlanSays) {
  const TempFolder folder;
  const ModelFile file = ModelFile::open(folder.write("model.gguf", some_model(TensorType::q8_0).build()));
  const auto device = open(kBlock, GetParam());
  const uint64_t before = held(*device);
  const auto model = load(*device, file);
  EXPECT_LE(held(*device) - before, model->memory().total());
}

TEST_P(WeightBlocks, ALoadThatRunsOutOfMemoryAnywhereLeavesNothing) {
  const TempFolder folder;
  const ModelFile file = ModelFile::open(folder.write("model.gguf", some_model(TensorType::q8_0).build()));
  const auto device = open(kBlock, GetParam());
  const auto old = load(*device, file);
  const std::vector<float> before = logits_on(*old);
  const uint64_t kept = held(*device);
  uint64_t failures = 0;
  for (uint64_t n = 0; n < 1000; ++n) {
    AllocationHook hook;
    hook.failing = n;
    hook.for_good = true;
    try {
      load(*device, file);
      break;
    } catch (const Error& e) {
      ++failures;
      EXPECT_EQ(e.kind(), ErrorKind::out_of_memory) << e.what();
      EXPECT_NE(std::string(e.what()).find("are available of"), std::string::npos) << e.what();
    }
    ASSERT_EQ(held(*device), kept) << "after allocation " << n << " failed";
  }
  EXPECT_GT(failures, 20u);
  EXPECT_LT(failures, 200u);
  EXPECT_TRUE(same_bits(logits_on(*old), before));
  EXPECT_NO_THROW(load(*device, file));
  expect_no_messages(*device);
}

}  // namespace
}  // namespace canopy::test
