// How attention is cut into blocks: that each query has its place once, on every GPU and for every form of head.
#include "cuda_backend/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace canopy::cuda {
namespace {

constexpr GpuLimits kGpus[] = {{75, 64 << 10}, {80, 163 << 10}, {86, 99 << 10}, {90, 227 << 10}, {120, 99 << 10}};

struct Form {
  uint32_t heads, kv_heads, head_dim;
};
constexpr Form kForms[] = {{1, 1, 2},   {9, 3, 64},   {32, 8, 128}, {14, 2, 64}, {40, 8, 128}, {16, 1, 128},
                           {24, 1, 64}, {16, 2, 256}, {8, 4, 512},  {71, 1, 66}, {16, 1, 576}, {1, 1, 576}};

std::string described(const GpuLimits& gpu, const Form& form, uint32_t width) {
  return std::to_string(form.heads) + "/" + std::to_string(form.kv_heads) + " heads of " +
         std::to_string(form.head_dim) + ", " + std::to_string(width) + " rows, capability " +
         std::to_string(gpu.capability);
}

/// As kernels/attention_blocks.h finds an item's queries.
std::map<std::pair<uint32_t, uint32_t>, int> places_of(const AttentionParams& p, uint32_t group, uint32_t items) {
  std::map<std::pair<uint32_t, uint32_t>, int> times;
  const uint32_t of_rows = (p.pieces + p.tile_pieces - 1) / p.tile_pieces;
  for (uint32_t tile = 0; tile < p.tiles; ++tile) {
    const uint32_t first_row = tile / of_rows * p.tile_rows, first_piece = tile % of_rows * p.tile_pieces;
    const uint32_t rows = std::min(p.row_count - first_row, p.tile_rows);
    for (uint32_t i = 0; i < items; ++i) {
      const uint32_t row = i / p.tile_pieces * p.item_rows, piece = first_piece + i % p.tile_pieces;
      if (row >= rows || piece >= p.pieces) continue;
      for (uint32_t n = 0; n < kItemQueries; ++n) {
        const uint32_t head = piece * p.item_heads + n % p.item_heads, in_item = n / p.item_heads;
        if (in_item < std::min(rows - row, p.item_rows) && head < group) ++times[{first_row + row + in_item, head}];
      }
    }
  }
  return times;
}

TEST(AttentionPlan, EachQueryHasItsPlaceOnce) {
  for (const GpuLimits& gpu : kGpus) {
    for (const Form& form : kForms) {
      const KvShape shape{1024, form.kv_heads, form.head_dim, CacheType::f16};
      for (const uint32_t width : {1u, 2u, 3u, 7u, 8u, 9u, 33u, 64u, 257u}) {
        AttentionParams p;
        p.heads = form.heads;
        p.cache.type = static_cast<uint32_t>(shape.type);
        p.row_count = width;
        const AttentionLaunch launch = plan_attention(p, {shape, form.heads, 1000, 1000, false}, gpu);
        const uint32_t group = form.heads / form.kv_heads, items = launch.many ? launch.threads / 32 : 1;
        const auto places = places_of(p, group, items);
        EXPECT_EQ(places.size(), width * group) << described(gpu, form, width);
        for (const auto& [query, times] : places) ASSERT_EQ(times, 1) << described(gpu, form, width);
        // Its merge (kernels/attention_merge.h) gives each warp eight heads at most.
        EXPECT_LE(p.tile_rows * p.tile_pieces * p.item_heads, launch.threads / 32 * kItemQueries);
      }
    }
  }
}

TEST(AttentionPlan, FitsTheSharedMemoryAndKeepsItsPartsApart) {
  for (const GpuLimits& gpu : kGpus) {
    for (const Form& form : kForms) {
      for (const CacheType type : {CacheType::f16, CacheType::f32}) {
        const KvShape shape{1024, form.kv_heads, form.head_dim, type};
        for (const uint32_t width : {1u, 64u}) {
          AttentionParams p;
          p.heads = form.heads;
          p.cache.type = static_cast<uint32_t>(type);
          p.row_count = width;
          const AttentionLaunch launch = plan_attention(p, {shape, form.heads, 5000, 5000, false}, gpu);
          const std::string what = described(gpu, form, width);
          const uint32_t warps = launch.threads / 32;
          EXPECT_LE(launch.shared_bytes, gpu.shared_bytes) << what;
          EXPECT_GE(p.queries_at, kAttentionHead + p.own_warps * p.warp_stages * kAttentionStageBytes) << what;
          EXPECT_LE(p.own_warps, warps) << what;
          EXPECT_GE(p.own_blocks * p.own_warps, p.tile_rows * p.tile_pieces * p.own_chunks) << what;
          if (launch.many) {
            EXPECT_GE(p.stages, 2u) << what;
            EXPECT_GE(p.queries_at, kAttentionHead + p.stages * kAttentionStageBytes + warps * kWarpResults) << what;
          } else {
            EXPECT_EQ(warps, kSpanChunks) << what;
            EXPECT_GE(p.queries_at, kAttentionHead + kSpanChunks * kItemQueries * kSliceDims * 4) << what;
          }
        }
      }
    }
  }
}

TEST(AttentionPlan, RowsTakeTurnsWhereTheirResultsWouldTakeTooMuch) {
  const KvShape shape{131072, 8, 128, CacheType::f16};
  const AttentionExtent extent{shape, 32, 131072, 131072, false};
  const uint32_t rows = attention_rows_at_a_time(extent);
  EXPECT_LT(rows, 64u);
  EXPECT_LE(attention_scratch_bytes(extent, rows), uint64_t{64} << 20);
  EXPECT_GT(attention_scratch_bytes(extent, rows + 1), uint64_t{64} << 20);
}

// A row behind a window has fewer spans than the text, and chunks of its own where the window begins.
TEST(AttentionPlan, WindowsNeedRoomForTheirKeysAlone) {
  const KvShape shape{131072, 8, 128, CacheType::f16};
  AttentionParams p;
  p.heads = 32;
  p.row_count = 1;
  plan_attention(p, {shape, 32, 131072, 1024 + 64, true}, kGpus[3]);
  EXPECT_EQ(p.span_blocks, 512u);
  EXPECT_EQ(p.spans, 6u);
  EXPECT_EQ(p.own_chunks, kTailChunks + kSpanChunks);
}

}  // namespace
}  // namespace canopy::cuda
