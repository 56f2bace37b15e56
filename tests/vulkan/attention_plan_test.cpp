#include "engine/vulkan/attention.h"

#include <gtest/gtest.h>

namespace canopy::vk {
namespace {

// Heads of an 8B model with an f16 cache.
AttentionExtent extent_of(uint32_t width, uint64_t keys) {
  return {.width = width, .heads = 32, .kv_heads = 8, .head_dim = 128, .type = CacheType::f16, .keys = keys};
}
constexpr AttentionDevice gpu{.max_shared_bytes = 32 << 10};

uint64_t workgroups(const AttentionExtent& e, const AttentionPlan& plan) {
  return uint64_t{plan.tiles(e.width, e.heads / e.kv_heads)} * plan.units * e.kv_heads;
}

TEST(AttentionPlan, OneRowKeepsADeviceBusy) {
  for (const uint64_t keys : {4096u, 16384u, 131072u}) {
    const AttentionExtent one = extent_of(1, keys);
    EXPECT_GE(workgroups(one, plan_attention(one, gpu)), 128u) << keys;
  }
}

TEST(AttentionPlan, LongContextsAndManyRowsLeaveResultsOfSpans) {
  EXPECT_EQ(plan_attention(extent_of(1, 4096), gpu).unit_chunks, 1u);
  EXPECT_EQ(plan_attention(extent_of(1, 131072), gpu).unit_chunks, kSpanChunks);
  EXPECT_EQ(plan_attention(extent_of(64, 4096), gpu).unit_chunks, kSpanChunks);
  EXPECT_EQ(plan_attention(extent_of(64, 4096), gpu).units, 8u);
}

// Where there is little to merge, whoever comes last does it; where rows take turns or there is much, a step of its
// own.
TEST(AttentionPlan, MergesWithoutAStepWhereThatIsShort) {
  EXPECT_TRUE(plan_attention(extent_of(1, 1), gpu).merges);
  EXPECT_TRUE(plan_attention(extent_of(1, 2048), gpu).merges);
  EXPECT_FALSE(plan_attention(extent_of(1, 8192), gpu).merges);
  EXPECT_TRUE(plan_attention(extent_of(64, 200), gpu).merges);
  EXPECT_FALSE(plan_attention(extent_of(64, 32768), gpu).merges);
  const AttentionPlan turns = plan_attention(extent_of(512, 131072), gpu);
  EXPECT_LT(turns.rows_at_a_time, 512u);
  EXPECT_FALSE(turns.merges);
}

TEST(AttentionPlan, ScratchMemoryIsBounded) {
  for (const uint32_t width : {1u, 3u, 16u, 17u, 64u, 128u, 512u}) {
    for (uint64_t keys = 1; keys <= 131072; keys = keys * 3 + 1) {
      const AttentionPlan plan = plan_attention(extent_of(width, keys), gpu);
      EXPECT_LE(plan.scratch_bytes, uint64_t{65} << 20) << width << " rows, " << keys << " keys";
      EXPECT_GE(plan.rows_at_a_time, 1u);
      EXPECT_EQ(plan.output_bytes % 256, 0u);
      // What is planned for a model covers every pass that it may run.
      EXPECT_LE(plan.scratch_bytes, attention_scratch_bytes(extent_of(512, 131072), gpu));
      EXPECT_LE(plan.scratch_bytes, attention_scratch_bytes(extent_of(width, keys), gpu));
      if (width <= 128 && keys <= 10000) {
        EXPECT_LE(plan.scratch_bytes, attention_scratch_bytes(extent_of(128, 10000), gpu)) << width << ", " << keys;
      }
    }
  }
  EXPECT_LT(plan_attention(extent_of(64, 131072), gpu).rows_at_a_time, 64u);
}

TEST(AttentionPlan, TilesFitTheDevice) {
  EXPECT_EQ(attention_tile(1, 2, gpu).queries, 4u);
  EXPECT_EQ(attention_tile(9, 2, gpu).queries, 16u);
  EXPECT_EQ(attention_tile(400, 2, gpu).queries, 32u);
  EXPECT_EQ(attention_tile(400, 2, {.max_shared_bytes = 16 << 10}).queries, 16u);
  EXPECT_EQ(attention_tile(400, 3, gpu).queries, 16u);
}

TEST(AttentionPlan, CutsHeadsIntoSlicesByTheirElements) {
  EXPECT_EQ(head_slices(64, CacheType::f32), 2u);
  EXPECT_EQ(head_slices(80, CacheType::f32), 3u);
  EXPECT_EQ(head_slices(128, CacheType::f16), 2u);
  EXPECT_EQ(head_slices(136, CacheType::f16), 3u);
  EXPECT_EQ(head_slices(128, CacheType::q8_0), 2u);
  EXPECT_EQ(head_slices(32, CacheType::q8_0), 1u);
}

}  // namespace
}  // namespace canopy::vk
