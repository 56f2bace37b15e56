// Attention: softmax(scale q . K) V of each row's virtual sequence, in one launch. A chunk of 64 positions gives its
// largest score, the sum of the exponentials and the output (attention.h); those of the chunks of a span of 256
// positions are merged in ascending order, then spans in ascending order, by the block that comes last for a tile of
// rows.
//
// Blocks: of each K/V head, tile and slice of a head one for each span, and those for the rows' own chunks.
// attention_few: a tile is one item, the warps of a block have a chunk of the span each. attention_many: a tile has an
// item for each warp, and the block reads a chunk once for all of them.

#include "cuda_backend/kernels/attention.h"

namespace canopy::cuda {
namespace {

// ---- a chunk of the span for each warp ------------------------------------------------------------------------------

/// What the warps leave of their chunks, in the place of the rings: [warps][queries][elements]; the table has [warps]
/// [queries] sums, and which of them have something.
struct ChunkResults {
  gpu::Shared<float> out{kAttentionHead, kSpanChunks* kItemQueries* kSliceDims};
  gpu::Shared<Part> parts{kAttentionTable, kSpanChunks* kItemQueries};
  gpu::Shared<uint32_t> there{kAttentionTable + kSpanChunks * kItemQueries * 8, kSpanChunks* kItemQueries};
};
static_assert(kAttentionTable + kSpanChunks * kItemQueries * 12 <= kAttentionHead);

/// The results of a span's chunks become one.
CANOPY_DEVICE void merge_chunks(const AttentionParams& p, const AttentionPlace& place, const Item& item) {
  const ChunkResults results;
  const uint32_t elements = slice_elements(p, place.slice);
  for (uint32_t i = gpu::thread(); i < kItemQueries * kSliceDims; i += gpu::threads()) {
    const uint32_t n = i / kSliceDims, element = i % kSliceDims;
    if (!item.has(p, n) || element >= elements) continue;
    Part span;
    float out = 0;
    bool any = false;
    CANOPY_UNROLL
    for (uint32_t c = 0; c < kSpanChunks; ++c) {
      const uint32_t at = c * kItemQueries + n;
      if (results.there[at] == 0) continue;
      const PartFactors factors = merge_into(span, results.parts[at]);
      out = merged(out, results.out[at * kSliceDims + element], factors);
      any = true;
    }
    if (!any) continue;
    const RowChunks chunks = chunks_of(p, row_of(p, item.row(p, n)));
    const uint64_t at = entry_at(p, item.row(p, n), item.head(p, n), place.work - chunks.base_span());
    Span<float>{p.part_out}[at * p.value_dim + place.slice * kSliceDims + element] = out;
    if (element == 0) part_at(p, at, place.slice) = span;
  }
}

/// What a warp has to read before its keys, asked for before the queries so that it is there with them.
struct FewChunk {
  bool of_span = false, is_there = false;  // there: a row for this lane, or where the chunk is a row's own for all
  uint32_t number = 0, page = 0;           // of a span
  uint32_t row = 0, own = 0;               // of a row's own
  Row pass_row;                            // of the own chunk, or of the query that a lane below 8 has

  CANOPY_DEVICE FewChunk(const AttentionParams& p, const AttentionPlace& place, const Item& item)
      : of_span(place.work < p.span_blocks) {
    if (of_span) {
      number = place.work * kSpanChunks + gpu::warp();
      if (number < p.page_count) page = Span<const uint32_t>{p.pages}[number];
      is_there = gpu::lane() < kItemQueries && item.has(p, gpu::lane());
      row = item.row(p, gpu::lane());
    } else {
      const uint32_t unit = (place.work - p.span_blocks) * p.own_warps + gpu::warp();
      is_there = unit / p.own_chunks < item.rows;
      row = item.first_row + unit / p.own_chunks;
      own = unit % p.own_chunks;
    }
    if (is_there) pass_row = row_of(p, row);
  }
};

template <uint32_t TYPE>
CANOPY_DEVICE void attend_span(const AttentionParams& p, const AttentionPlace& place, const Item& item,
                               const FewChunk& mine, const Queries& queries) {
  const uint32_t g = gpu::lane() / 4, page = mine.page;
  // A lane below 8 looks whether its query has the chunk.
  const uint32_t has = gpu::ballot(mine.is_there && chunks_of(p, mine.pass_row).shares(mine.number));
  ChunkOfQueries<TYPE> chunk;
  if (has != 0) {
    const auto slot_of = [&](uint32_t position) { return page * kPagePositions + position; };
    attend_chunk<TYPE>(p, item.kv_head, place.slice, queries, slot_of, 0, kChunk, chunk);
  }
  gpu::sync();
  const ChunkResults results;
  CANOPY_UNROLL
  for (uint32_t j = 0; j < 2; ++j) {
    const uint32_t n = gpu::lane() % 4 * 2 + j, at = gpu::warp() * kItemQueries + n;
    if (g == 0) {
      results.there[at] = has >> n & 1u;
      results.parts[at] = chunk.parts[j];
    }
    CANOPY_UNROLL
    for (uint32_t i = 0; i < 16; ++i) results.out[at * kSliceDims + i * 8 + g] = chunk.out[i / 2][i % 2 * 2 + j];
  }
  gpu::sync();
  merge_chunks(p, place, item);
}

template <uint32_t TYPE>
CANOPY_DEVICE void attention_few(const AttentionParams& p) {
  const AttentionPlace place(p);
  const Item item = place.item(p, 0);
  const Queries queries(p, 0);
  const FewChunk mine(p, place, item);
  queries.bring<kItemQueries / kSpanChunks>(p, item, gpu::warp(), kSpanChunks);
  gpu::sync();
  if (mine.of_span) {
    attend_span<TYPE>(p, place, item, mine, queries);
  } else if (mine.is_there) {
    attend_own<TYPE>(p, place, item, mine.row, mine.pass_row, mine.own, queries);
  }
  finish_attention(p);
}

// ---- an item for each warp ------------------------------------------------------------------------------------------

struct ChunkRange {
  uint32_t begin, end;
};

/// Chunks of the block's span that some row of the tile shares. For all threads.
CANOPY_DEVICE ChunkRange shared_chunks(const AttentionParams& p, const AttentionPlace& place) {
  const gpu::Shared<uint32_t> bounds(kAttentionTable, 2);
  if (gpu::warp() == 0) {
    uint32_t low = 0xFFFFFFFFu, high = 0;
    for (uint32_t row = gpu::lane(); row < place.rows(p); row += 32) {
      const RowChunks chunks = chunks_of(p, row_of(p, place.first_row(p) + row));
      if (chunks.shared >= chunks.tail) continue;
      low = chunks.shared < low ? chunks.shared : low;
      high = chunks.tail > high ? chunks.tail : high;
    }
    bounds[0] = 0xFFFFFFFFu - gpu::largest(0xFFFFFFFFu - low);
    bounds[1] = gpu::largest(high);
  }
  gpu::sync();
  const uint32_t first = place.work * kSpanChunks, last = first + kSpanChunks;
  return {bounds[0] > first ? bounds[0] : first, bounds[1] < last ? bounds[1] : last};
}

/// Which chunks of the block's span the rows of a lane's two queries share.
struct LaneChunks {
  uint32_t bits = 0;  // four of each query

  CANOPY_DEVICE LaneChunks(const AttentionParams& p, const AttentionPlace& place, const Item& item) {
    CANOPY_UNROLL
    for (uint32_t j = 0; j < 2; ++j) {
      const uint32_t n = gpu::lane() % 4 * 2 + j;
      RowChunks chunks;
      if (item.has(p, n)) chunks = chunks_of(p, row_of(p, item.row(p, n)));
      CANOPY_UNROLL
      for (uint32_t c = 0; c < kSpanChunks; ++c) {
        if (chunks.shares(place.work * kSpanChunks + c)) bits |= 1u << (j * kSpanChunks + c);
      }
    }
  }
  CANOPY_DEVICE bool has(uint32_t j, uint32_t chunk) const {
    return (bits >> (j * kSpanChunks + chunk % kSpanChunks) & 1u) != 0;
  }
  CANOPY_DEVICE bool has_any(uint32_t j) const { return (bits >> (j * kSpanChunks) & ((1u << kSpanChunks) - 1)) != 0; }
};

/// The results of a lane's queries of the chunks so far, in shared memory: there are not enough registers for both.
struct SumsSoFar {
  gpu::Shared<float> out;   // [32][lanes]
  gpu::Shared<Part> parts;  // [2][lanes]

  CANOPY_DEVICE explicit SumsSoFar(uint32_t first) : out(first, kWarpOutputs / 4), parts(first + kWarpOutputs, 64) {
    CANOPY_UNROLL
    for (uint32_t i = 0; i < 32; ++i) out[i * 32 + gpu::lane()] = 0;
    CANOPY_UNROLL
    for (uint32_t j = 0; j < 2; ++j) parts[j * 32 + gpu::lane()] = Part();
  }
  CANOPY_DEVICE void add(uint32_t j, const TileOf16 (&more)[8], const Part& part) const {
    Part both = parts[j * 32 + gpu::lane()];
    const PartFactors factors = merge_into(both, part);
    parts[j * 32 + gpu::lane()] = both;
    CANOPY_UNROLL
    for (uint32_t i = 0; i < 16; ++i) {
      float& sum = out[(i * 2 + j) * 32 + gpu::lane()];
      sum = merged(sum, more[i / 2][i % 2 * 2 + j], factors);
    }
  }
  CANOPY_DEVICE void load(TileOf16 (&all)[8], Part (&of)[2]) const {
    CANOPY_UNROLL
    for (uint32_t i = 0; i < 32; ++i) all[i / 4][i / 2 % 2 * 2 + i % 2] = out[i * 32 + gpu::lane()];
    CANOPY_UNROLL
    for (uint32_t j = 0; j < 2; ++j) of[j] = parts[j * 32 + gpu::lane()];
  }
};

/// The chunks of a span, one after the other, for all warps' items.
template <uint32_t TYPE>
CANOPY_DEVICE void attend_tile(const AttentionParams& p, const AttentionPlace& place, const Queries& queries) {
  constexpr uint32_t each = kStagePositions<TYPE>, parts = kChunkStages<TYPE>, batch = 1;
  const Item item = place.item(p, gpu::warp());
  const ChunkRange range = shared_chunks(p, place);
  const uint32_t key_stages = parts * p.slices, of_chunk = key_stages + parts;
  const uint32_t stages = range.begin < range.end ? (range.end - range.begin) * of_chunk : 0;
  const auto ring = [&](uint32_t i) { return kAttentionHead + i % p.stages * kAttentionStageBytes; };
  const auto bring = [&](uint32_t i) {
    if (i < stages) {
      const uint32_t page = Span<const uint32_t>{p.pages}[range.begin + i / of_chunk], part = i % of_chunk;
      const bool keys = part < key_stages;
      bring_stage<TYPE, batch>(
          p.cache, keys ? p.cache.keys : p.cache.values, ring(i), place.kv_head, keys ? part / parts : place.slice,
          gpu::thread(), gpu::threads(),
          [&](uint32_t position) { return page * kPagePositions + part % parts * each + position; });
    }
    gpu::end_copy_group();
  };
  const LaneChunks mine(p, place, item);
  const SumsSoFar sums(kAttentionHead + p.stages * kAttentionStageBytes + gpu::warp() * kWarpResults);
  ChunkOfQueries<TYPE> chunk;
  CANOPY_NO_UNROLL
  for (uint32_t i = 0; i + 1 < p.stages; ++i) bring(i);
  queries.bring<kItemQueries>(p, item, 0, 1);  // while the first stages are on their way
  CANOPY_NO_UNROLL
  for (uint32_t i = 0; i < stages; ++i) {
    wait_for_stage(p.stages - 1);
    gpu::sync();  // the stage is there, the one before has been read
    bring(i + p.stages - 1);
    const uint32_t part = i % of_chunk, number = range.begin + i / of_chunk;
    if (part == key_stages) chunk.weigh(p, queries, 0, kChunk);
    chunk.add_stage(p, part >= key_stages, part % parts, ring(i), part < key_stages ? part / parts : place.slice,
                    queries);
    if (part + 1 < of_chunk) continue;
    CANOPY_UNROLL
    for (uint32_t j = 0; j < 2; ++j) {
      if (mine.has(j, number)) sums.add(j, chunk.out, chunk.parts[j]);
    }
    chunk = {};
  }
  sums.load(chunk.out, chunk.parts);
  leave(p, item, place.slice, chunk.out, chunk.parts, [&](uint32_t n) {
    return mine.has_any(n % 2) ? place.work - chunks_of(p, row_of(p, item.row(p, n))).base_span() : kNoSlot;
  });
}

template <uint32_t TYPE>
CANOPY_DEVICE void attention_many(const AttentionParams& p) {
  const AttentionPlace place(p);
  const Queries queries(p, gpu::warp());
  if (place.work < p.span_blocks) {
    attend_tile<TYPE>(p, place, queries);
  } else if (gpu::warp() < p.own_warps) {
    // Own chunks of a row, then its pieces, then rows.
    const uint32_t unit = (place.work - p.span_blocks) * p.own_warps + gpu::warp(), rest = unit / p.own_chunks;
    const uint32_t row = rest / p.tile_pieces;
    const Item item = place.item(p, row / p.item_rows * p.tile_pieces + rest % p.tile_pieces);
    if (row < place.rows(p) && item.rows > 0) {
      const Row pass_row = row_of(p, place.first_row(p) + row);  // there with the queries
      queries.bring<kItemQueries>(p, item, 0, 1);
      gpu::sync_warp();
      attend_own<TYPE>(p, place, item, place.first_row(p) + row, pass_row, unit % p.own_chunks, queries);
    }
  }
  finish_attention(p);
}

}  // namespace

#define CANOPY_ATTENTION(NAME, TYPE)                                        \
  CANOPY_STREAMING_KERNEL(attention_few_##NAME, AttentionParams, 128, 4) {  \
    gpu::let_next_start();                                                  \
    gpu::wait_for_earlier();                                                \
    attention_few<TYPE>(p);                                                 \
  }                                                                         \
  CANOPY_STREAMING_KERNEL(attention_many_##NAME, AttentionParams, 256, 2) { \
    gpu::let_next_start();                                                  \
    gpu::wait_for_earlier();                                                \
    attention_many<TYPE>(p);                                                \
  }

CANOPY_ATTENTION(f32, kCacheF32)
CANOPY_ATTENTION(f16, kCacheF16)
CANOPY_ATTENTION(q8_0, kCacheQ80)

}  // namespace canopy::cuda
