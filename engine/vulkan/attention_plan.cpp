#include "engine/vulkan/attention_plan.h"

#include <algorithm>

#include "engine/compute/ops.h"

namespace canopy::vk {
namespace {

// Partial results in memory at a time; passes of more rows take several turns.
constexpr uint64_t kMostScratch = uint64_t{64} << 20;
// With fewer workgroups a large device is not busy: then chunks go to workgroups one by one.
constexpr uint64_t kEnoughWorkgroups = 256;
constexpr uint64_t kAlignment = 256;  // of a storage binding, on any device
// A step of its own for the merge takes about as long as so many loads that wait for each other.
constexpr uint32_t kMostMergeRounds = 8;
constexpr uint32_t kMergedTogether = 4;  // entries that are loaded together, of two quads: attention_part.comp

uint64_t rounded_up(uint64_t value, uint64_t step) {
  return (value + step - 1) / step * step;
}

uint32_t units_of(const AttentionExtent& extent, uint32_t unit_chunks) {
  const uint64_t positions = uint64_t{unit_chunks} * kAttentionChunk;
  const uint64_t units = (extent.keys + positions - 1) / positions + (extent.windowed ? 1 : 0);
  return static_cast<uint32_t>(std::max<uint64_t>(units, 1));
}

// Of the workgroup of the first step that comes last for all its rows.
uint32_t merge_rounds(const AttentionTile& tile, const AttentionExtent& extent, uint32_t entries) {
  const uint32_t quad_pairs = tile.queries * ((extent.head_dim / 4 + 1) / 2);
  return (quad_pairs + tile.lanes - 1) / tile.lanes * ((entries + kMergedTogether - 1) / kMergedTogether);
}

}  // namespace

uint32_t head_slices(uint32_t head_dim, CacheType type) {
  const uint32_t elements = type == CacheType::f32 ? 32 : 64;
  return (head_dim + elements - 1) / elements;
}

AttentionTile attention_tile(uint64_t queries, uint32_t slices, const AttentionDevice& device) {
  if (device.software) return {16, 4};
  if (queries <= 4) return {64, 4};
  if (queries <= 8) return {64, 8};
  // 32 queries take more shared memory than every device has, and with long heads more registers than there are.
  constexpr uint32_t wide_tile_bytes = 24 << 10, most_slices = 2;
  if (queries <= 16 || device.max_shared_bytes < wide_tile_bytes || slices > most_slices) return {128, 16};
  return {128, 32};
}

AttentionPlan plan_attention(const AttentionExtent& extent, const AttentionDevice& device) {
  const uint32_t group = extent.heads / extent.kv_heads;
  AttentionPlan plan;
  const uint32_t slices = head_slices(extent.head_dim, extent.type);
  plan.tile = attention_tile(uint64_t{extent.width} * group, slices, device);
  plan.own_tile = attention_tile(group, slices, device);
  const uint64_t spans = units_of(extent, kSpanChunks);
  const uint64_t workgroups = spans * extent.kv_heads * plan.tiles(extent.width, group);
  plan.unit_chunks = workgroups >= kEnoughWorkgroups || device.software ? kSpanChunks : 1;
  plan.units = units_of(extent, plan.unit_chunks);
  plan.entries_per_row = uint64_t{extent.heads} * (plan.units + kOwnChunks);
  const uint64_t entry_bytes = (uint64_t{extent.head_dim} + 2) * sizeof(float);
  const uint64_t rows = kMostScratch / (plan.entries_per_row * entry_bytes);
  plan.rows_at_a_time = static_cast<uint32_t>(std::clamp<uint64_t>(rows, 1, extent.width));
  const uint64_t entries = plan.entries_per_row * plan.rows_at_a_time;
  plan.output_bytes = rounded_up(entries * extent.head_dim * sizeof(float), kAlignment);
  plan.scratch_bytes = plan.output_bytes + entries * 2 * sizeof(float);
  plan.merge_rounds = merge_rounds(plan.tile, extent, plan.units);
  plan.merges = plan.rows_at_a_time >= extent.width && plan.merge_rounds <= kMostMergeRounds;
  return plan;
}

uint64_t attention_scratch_bytes(const AttentionExtent& extent, const AttentionDevice& device) {
  const AttentionPlan widest = plan_attention(extent, device);
  const uint64_t heads_of_rows = uint64_t{extent.heads} * extent.width;
  const uint64_t of_spans = heads_of_rows * (units_of(extent, kSpanChunks) + kOwnChunks);
  // Chunks go one by one while there are fewer spans * kv_heads * tiles than kEnoughWorkgroups; a tile has so many
  // queries, each of which has an entry for each chunk.
  const uint64_t of_few = kEnoughWorkgroups * kSpanChunks * widest.tile.queries + heads_of_rows * kOwnChunks;
  const uint64_t of_chunks = heads_of_rows * (units_of(extent, 1) + kOwnChunks);
  const uint64_t entry_bytes = (uint64_t{extent.head_dim} + 2) * sizeof(float);
  const uint64_t bytes = std::min(std::max(of_spans, of_few), of_chunks) * entry_bytes;
  const uint64_t of_a_row = uint64_t{extent.heads} * (units_of(extent, kSpanChunks) + kOwnChunks) * entry_bytes;
  return std::min(bytes, std::max(kMostScratch, of_a_row)) + kAlignment;
}

}  // namespace canopy::vk
