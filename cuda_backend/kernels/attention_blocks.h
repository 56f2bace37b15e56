#pragma once
// What a block of attention works on, and what all of them do with a chunk and with rows' own chunks.

#include "cuda_backend/kernels/attention_warp.h"

namespace canopy::cuda {

/// What a block works on.
struct AttentionPlace {
  uint32_t slice, work, tile, kv_head;  // work: a span, or behind all spans a block for own chunks

  CANOPY_DEVICE explicit AttentionPlace(const AttentionParams& p) {
    uint32_t rest = gpu::block_x();
    slice = rest % p.slices;
    rest /= p.slices;
    work = rest % (p.span_blocks + p.own_blocks);
    rest /= p.span_blocks + p.own_blocks;
    tile = rest % p.tiles;
    kv_head = rest / p.tiles;
  }
  // Tiles of the same rows have their pieces in turn.
  CANOPY_DEVICE uint32_t tiles_of_rows(const AttentionParams& p) const {
    return (p.pieces + p.tile_pieces - 1) / p.tile_pieces;
  }
  CANOPY_DEVICE uint32_t first_row(const AttentionParams& p) const { return tile / tiles_of_rows(p) * p.tile_rows; }
  CANOPY_DEVICE uint32_t first_piece(const AttentionParams& p) const { return tile % tiles_of_rows(p) * p.tile_pieces; }
  CANOPY_DEVICE uint32_t rows(const AttentionParams& p) const {
    const uint32_t left = p.row_count - first_row(p);
    return left < p.tile_rows ? left : p.tile_rows;
  }
  /// Item `i` of the tile; one without rows where there is none.
  CANOPY_DEVICE Item item(const AttentionParams& p, uint32_t i) const {
    const uint32_t row = i / p.tile_pieces * p.item_rows, piece = first_piece(p) + i % p.tile_pieces;
    const uint32_t left = row < rows(p) && piece < p.pieces ? rows(p) - row : 0;
    return {kv_head, first_row(p) + row, left < p.item_rows ? left : p.item_rows, piece};
  }
};

CANOPY_DEVICE Row row_of(const AttentionParams& p, uint32_t row) {
  return Span<const Row>{p.rows}[p.first_row + row];
}

// Shared memory: a flag, a small table, then rings, of the block or of each warp, and queries.
constexpr uint32_t kAttentionFlag = 0, kAttentionTable = 64;

/// Leaves the results of a lane's two queries at an entry of their rows, or nowhere.
template <class EntryOf>
CANOPY_DEVICE void leave(const AttentionParams& p, const Item& item, uint32_t slice, const TileOf16 (&out)[8],
                         const Part (&parts)[2], const EntryOf& entry_of) {
  const uint32_t g = gpu::lane() / 4, elements = slice_elements(p, slice);
  CANOPY_UNROLL
  for (uint32_t j = 0; j < 2; ++j) {
    const uint32_t n = gpu::lane() % 4 * 2 + j, entry = item.has(p, n) ? entry_of(n) : kNoSlot;
    if (entry == kNoSlot) continue;
    const uint64_t at = entry_at(p, item.row(p, n), item.head(p, n), entry);
    if (g == 0) part_at(p, at, slice) = parts[j];
    CANOPY_UNROLL
    for (uint32_t d = 0; d < 8; ++d) {
      CANOPY_UNROLL
      for (uint32_t i = 0; i < 2; ++i) {
        const uint32_t element = d * 16 + g + i * 8;
        if (element < elements) {
          Span<float>{p.part_out}[at * p.cache.head_dim + slice * kSliceDims + element] = out[d][i * 2 + j];
        }
      }
    }
  }
}

/// One chunk, by one warp with a ring of its own. slot_of: of positions of the chunk; low, high: those that count.
template <uint32_t TYPE, class SlotOf>
CANOPY_DEVICE void attend_chunk(const AttentionParams& p, uint32_t kv_head, uint32_t slice, const Queries& queries,
                                const SlotOf& slot_of, uint32_t low, uint32_t high, ChunkOfQueries<TYPE>& chunk) {
  constexpr uint32_t each = kStagePositions<TYPE>, batch = TYPE == kCacheF32 ? 2 : 4;
  const uint32_t ring = kAttentionHead + gpu::warp() * p.warp_stages * kAttentionStageBytes;
  // Stages without a position that counts are left out.
  const uint32_t first = low / each, parts = (high + each - 1) / each - first, key_stages = parts * p.slices;
  const auto bring = [&](uint32_t i) {
    if (i < key_stages + parts) {
      const bool keys = i < key_stages;
      const uint32_t part = first + i % parts;
      bring_stage<TYPE, batch>(p.cache, keys ? p.cache.keys : p.cache.values,
                               ring + i % p.warp_stages * kAttentionStageBytes, kv_head, keys ? i / parts : slice,
                               gpu::lane(), 32, [&](uint32_t position) { return slot_of(part * each + position); });
    }
    gpu::end_copy_group();
  };
  CANOPY_NO_UNROLL
  for (uint32_t i = 0; i < p.warp_stages; ++i) bring(i);
  CANOPY_NO_UNROLL
  for (uint32_t i = 0; i < key_stages + parts; ++i) {
    wait_for_stage(p.warp_stages);
    const uint32_t stage = ring + i % p.warp_stages * kAttentionStageBytes;
    if (i == key_stages) chunk.weigh(p, queries, low, high);
    chunk.add_stage(p, i >= key_stages, first + i % parts, stage, i < key_stages ? i / parts : slice, queries);
    gpu::sync_warp();
    bring(i + p.warp_stages);
  }
}

/// The slot of a position of a chunk, from lanes that have those of two positions each.
struct SlotsOfLanes {
  uint32_t first = kNoSlot, second = kNoSlot;  // of positions lane and lane + 32
  CANOPY_DEVICE uint32_t operator()(uint32_t position) const {
    return gpu::shuffle(position < 32 ? first : second, position % 32);
  }
};

/// Own chunk `own` of row `row`, by a warp: of the row's queries in an item whose queries are in shared memory.
template <uint32_t TYPE>
CANOPY_DEVICE void attend_own(const AttentionParams& p, const AttentionPlace& place, const Item& item, uint32_t row,
                              const Row& pass_row, uint32_t own, const Queries& queries) {
  const RowChunks chunks = chunks_of(p, pass_row);
  const uint32_t number = chunks.own_chunk(p, own);
  if (number == kNoSlot) return;
  const uint32_t begin = number * kChunk;
  const uint32_t low = chunks.first > begin ? chunks.first - begin : 0;
  const uint32_t high = chunks.end - begin < kChunk ? chunks.end - begin : kChunk;
  SlotsOfLanes slots;
  if (gpu::lane() >= low && gpu::lane() < high) slots.first = slot_at(p, pass_row, begin + gpu::lane());
  if (gpu::lane() + 32 >= low && gpu::lane() + 32 < high) {
    slots.second = slot_at(p, pass_row, begin + gpu::lane() + 32);
  }
  ChunkOfQueries<TYPE> chunk;
  attend_chunk<TYPE>(p, item.kv_head, place.slice, queries, slots, low, high, chunk);
  leave(p, item, place.slice, chunk.out, chunk.parts,
        [&](uint32_t n) { return item.row(p, n) == row ? p.spans + own : kNoSlot; });
}

}  // namespace canopy::cuda
