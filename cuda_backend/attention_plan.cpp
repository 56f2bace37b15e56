#include "cuda_backend/attention_plan.h"

#include <algorithm>
#include <string>

#include "engine/base/error.h"
#include "engine/compute/rows.h"

namespace canopy::cuda {
namespace {

constexpr uint64_t kMostScratch = uint64_t{64} << 20;
/// Items of a K/V head from which on a block has several: fewer are better off with as many blocks as there can be.
constexpr uint32_t kFewItems = 4;
constexpr uint32_t kMostWarps = 8, kMostRing = 4, kLeastRing = 2;
/// Chunks at the start of a span that a row whose window begins in the first of them has for itself.
constexpr uint32_t kStartChunks = kSpanChunks;

uint32_t pieces_of(uint64_t count, uint32_t size) {
  return static_cast<uint32_t>((count + size - 1) / size);
}

/// How many results a row's head has room for.
struct Entries {
  uint32_t page_count, span_blocks, spans, own_chunks;

  explicit Entries(const AttentionExtent& extent)
      : page_count(pieces_of(extent.max_positions, kPagePositions)),
        span_blocks(pieces_of(page_count, kSpanChunks)),
        spans(span_blocks),
        own_chunks(kTailChunks + (extent.windowed ? kStartChunks : 0)) {
    if (!extent.windowed) return;
    // Its chunks may begin anywhere in a span, its keys anywhere in a chunk.
    const uint32_t chunks = pieces_of(extent.keys, kPagePositions) + 1;
    spans = std::min(spans, pieces_of(chunks - 1, kSpanChunks) + 1);
  }
  uint64_t bytes(const AttentionExtent& extent) const {
    return uint64_t{extent.heads} * (spans + own_chunks) *
           (extent.shape.head_dim + 2 * pieces_of(extent.shape.head_dim, kSliceDims)) * 4;
  }
};

uint32_t bytes_of_many(uint32_t warps, uint32_t stages, uint32_t queries) {
  return kAttentionHead + stages * kAttentionStageBytes + warps * (kWarpResults + queries);
}

/// Warps and stages of a block with an item for each warp.
void choose_many(AttentionParams& p, AttentionLaunch& launch, uint32_t queries, const GpuLimits& gpu) {
  // What is not copied aside is there when the next stage is computed, wherever it lies.
  const bool aside = gpu.copies_aside() && p.cache.type == static_cast<uint32_t>(CacheType::f16);
  uint32_t warps = kMostWarps;
  while (warps > 1 && bytes_of_many(warps, kLeastRing, queries) > gpu.shared_bytes) warps /= 2;
  p.stages = kLeastRing;
  while (aside && p.stages < kMostRing && bytes_of_many(warps, p.stages + 1, queries) <= gpu.shared_bytes) ++p.stages;
  p.warp_stages = 1;
  const uint32_t rings = p.stages * kAttentionStageBytes + warps * kWarpResults;
  p.own_warps = std::min(warps, rings / (p.warp_stages * kAttentionStageBytes));
  p.queries_at = kAttentionHead + rings;
  p.tile_pieces = std::min(p.pieces, warps);
  p.tile_rows = p.item_rows * (warps / p.tile_pieces);
  launch.threads = warps * 32;
}

/// Of a block whose warps have a chunk each.
void choose_few(AttentionParams& p, AttentionLaunch& launch, uint32_t queries, const GpuLimits& gpu) {
  constexpr uint32_t warp_bytes = kSpanChunks * kAttentionStageBytes;
  p.warp_stages =
      gpu.copies_aside() && kAttentionHead + kLeastRing * warp_bytes + queries <= gpu.shared_bytes ? kLeastRing : 1;
  p.own_warps = kSpanChunks;
  p.queries_at = kAttentionHead + p.warp_stages * warp_bytes;
  p.tile_pieces = 1;
  p.tile_rows = p.item_rows;
  launch.threads = kSpanChunks * 32;
}

}  // namespace

const char* AttentionLaunch::kernel(CacheType type) const {
  if (type == CacheType::f32) return many ? "attention_many_f32" : "attention_few_f32";
  if (type == CacheType::f16) return many ? "attention_many_f16" : "attention_few_f16";
  return many ? "attention_many_q8_0" : "attention_few_q8_0";
}

uint64_t attention_scratch_bytes(const AttentionExtent& extent, uint32_t rows) {
  return rows * Entries(extent).bytes(extent);
}

uint32_t attention_rows_at_a_time(const AttentionExtent& extent) {
  return static_cast<uint32_t>(std::clamp<uint64_t>(kMostScratch / Entries(extent).bytes(extent), 1, 65535));
}

AttentionLaunch plan_attention(AttentionParams& p, const AttentionExtent& extent, const GpuLimits& gpu) {
  const Entries entries(extent);
  p.page_count = entries.page_count;
  p.span_blocks = entries.span_blocks;
  p.spans = entries.spans;
  p.own_chunks = entries.own_chunks;
  p.slices = pieces_of(extent.shape.head_dim, kSliceDims);
  const uint32_t group = extent.heads / extent.shape.kv_heads, queries = query_bytes(extent.shape.head_dim);
  p.item_heads = std::min(group, kItemQueries);
  p.item_rows = kItemQueries / p.item_heads;
  p.pieces = pieces_of(group, p.item_heads);

  AttentionLaunch launch;
  launch.many = pieces_of(p.row_count, p.item_rows) * p.pieces > kFewItems;
  if (launch.many) {
    choose_many(p, launch, queries, gpu);
  } else {
    choose_few(p, launch, queries, gpu);
  }
  p.tiles = pieces_of(p.row_count, p.tile_rows) * pieces_of(p.pieces, p.tile_pieces);
  p.own_blocks = pieces_of(uint64_t{p.tile_rows} * p.tile_pieces * p.own_chunks, p.own_warps);
  launch.blocks = extent.shape.kv_heads * p.tiles * (p.span_blocks + p.own_blocks) * p.slices;
  launch.shared_bytes = p.queries_at + (launch.many ? launch.threads / 32 : 1) * queries;
  if (launch.shared_bytes > gpu.shared_bytes) {
    throw bad_input("Heads of " + std::to_string(extent.shape.head_dim) + " elements take " +
                    std::to_string(launch.shared_bytes) + " bytes of shared memory in attention; the GPU has " +
                    std::to_string(gpu.shared_bytes) + ".");
  }
  return launch;
}

}  // namespace canopy::cuda
