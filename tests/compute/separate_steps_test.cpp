// Heads and the merge of attention by whoever comes last have the bits of the steps of their own.

#include <gtest/gtest.h>

#include "engine/vulkan/vulkan_device.h"
#include "tests/compute/attention_case.h"

namespace canopy::test {
namespace {

/// The device that is tested, of a GPU's families, in steps of their own or not. SwiftShader compiles the tiles of GPUs
/// for too long.
std::unique_ptr<Device> device_of(bool separate_steps) {
  VulkanDeviceOptions options;
  const char* family = std::getenv("CANOPY_TEST_FAMILY");
  options.family = vk::kernel_family(family != nullptr ? family : "fma").value();
  if (options.family == vk::KernelFamily::matrix) options.as_software = false;
  options.separate_steps = separate_steps;
  return open_vulkan_device(options);
}

struct MergedCase {
  KvShape shape;
  uint32_t heads;
  RowBatch batch;
  uint32_t max_positions;
  View view = {};
};

/// Text rows up to position `last`, nodes whose ancestors lie elsewhere from behind `committed` on, and rows that stand
/// for nothing.
RowBatch rows_of_all_kinds(uint32_t width, uint32_t last, uint32_t committed, uint32_t first_slot) {
  RowBatch batch;
  int32_t parent = -1;
  for (uint32_t i = 0; i < width; ++i) {
    if (i % 5 == 3) {
      batch.rows.push_back({.slot = kNoSlot});
    } else if (i % 2 == 1) {
      batch.add_node(0, first_slot + i, committed, parent);
      parent = static_cast<int32_t>(i);
    } else {
      batch.add_text(0, last - std::min(last, 61 * i));
    }
  }
  return batch;
}

TEST(SeparateStepsTest, MergesOfAttentionHaveTheSameBits) {
  const std::unique_ptr<Device> together = device_of(false), apart = device_of(true);
  std::vector<MergedCase> cases;
  for (const uint32_t width : {1u, 3u, 40u}) {
    cases.push_back({{700, 2, 32, CacheType::f16}, 6, rows_of_all_kinds(width, 590, 380, 600), 600});
    cases.push_back({{300, 1, 128, CacheType::q8_0}, 4, rows_of_all_kinds(width, 200, 126, 250), 210});
    cases.push_back({{300, 3, 80, CacheType::f32}, 3, rows_of_all_kinds(width, 63, 60, 250), 70});
  }
  cases.push_back(
      {{700, 2, 32, CacheType::f16}, 6, rows_of_all_kinds(9, 590, 380, 600), 600, {AttentionMask::block, 0}});
  cases.push_back(
      {{700, 2, 8, CacheType::f16}, 2, rows_of_all_kinds(9, 590, 380, 600), 600, {AttentionMask::causal, 90}});
  for (const MergedCase& c : cases) {
    SCOPED_TRACE("case " + std::to_string(&c - cases.data()));
    const CacheContents contents = random_cache(c.shape, 1);
    const std::vector<float> q = Random(2).values(size_t{c.batch.width()} * c.heads * c.shape.head_dim);
    const auto run = [&](Device& device) {
      return run_attention(device, c.shape, c.heads, c.batch, q, contents, c.max_positions, c.view);
    };
    const Results expected = run(*apart);
    for (int again = 0; again < 2; ++again) EXPECT_EQ(run(*together)[0].words, expected[0].words);
  }
  for (const auto& message : validation_messages(*together)) ADD_FAILURE() << message.id << ": " << message.text;
}

}  // namespace
}  // namespace canopy::test
