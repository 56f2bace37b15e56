#pragma once
// How attention is cut into workgroups and what memory lies between its steps; records it and what fills the caches.

#include <cstdint>

#include "engine/base/numbers.h"

namespace canopy::vk {

// How the two steps of attention (shaders/attention_part.comp, attention_merge.comp) are cut into workgroups, and what
// memory lies between them. Pure arithmetic; nothing of it changes a bit of a result.

inline constexpr uint32_t kSpanChunks = 8;  // chunks that are merged before their results are
inline constexpr uint32_t kOwnChunks = 2;   // most chunks that a row does not share with others

/// The invocations of a workgroup of the first step and the queries that it works on at a time. A query is a row's
/// query head; those of all rows that read one K/V head follow each other.
struct AttentionTile {
  uint32_t lanes = 64;
  uint32_t queries = 4;
};

/// What the kernels are chosen by, of the device.
struct AttentionDevice {
  uint32_t max_shared_bytes = 0;
  bool software = false;  // compiles slowly, and has no use for many invocations
};

/// Slices of a head that the first step has in shared memory one after the other (SLICE_UNITS of attention_part.comp).
uint32_t head_slices(uint32_t head_dim, CacheType type);

/// The smallest tile that takes `queries` at once, or the largest that the device has room for.
AttentionTile attention_tile(uint64_t queries, uint32_t slices, const AttentionDevice& device);

/// What is fixed when attention is recorded.
struct AttentionExtent {
  uint32_t width = 0;  // rows
  uint32_t heads = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  CacheType type = CacheType::f16;
  uint64_t keys = 0;      // AttentionArgs::keys()
  bool windowed = false;  // a row's first key may lie anywhere
};

struct AttentionPlan {
  AttentionTile tile;            // of keys that rows share
  AttentionTile own_tile;        // of a row's own chunks
  uint32_t unit_chunks = 1;      // chunks that a workgroup merges: 1 or kSpanChunks
  uint32_t units = 0;            // most of them that a row has
  uint32_t rows_at_a_time = 1;   // whose partial results fit the scratch memory
  uint64_t entries_per_row = 0;  // partial results: of each head its units and own chunks
  uint64_t output_bytes = 0;     // of the outputs of all entries of rows_at_a_time rows
  uint64_t scratch_bytes = 0;    // these and maxima and sums behind them
  uint32_t merge_rounds = 0;     // loads one after the other, with which a workgroup that comes last merges its rows
  bool merges = false;           // it does; otherwise that is a step of its own

  uint32_t tiles(uint32_t rows, uint32_t group) const {
    return static_cast<uint32_t>((uint64_t{rows} * group + tile.queries - 1) / tile.queries);
  }
};

AttentionPlan plan_attention(const AttentionExtent& extent, const AttentionDevice& device);

/// Scratch bytes that passes of up to extent.width rows over up to extent.keys keys need at most.
uint64_t attention_scratch_bytes(const AttentionExtent& extent, const AttentionDevice& device);

}  // namespace canopy::vk
