#pragma once
// Which keys a row sees, in chunks of 64 positions, and where it has what comes of them. A row's positions are those of
// its virtual sequence (rows.h), wherever their slots are, so nothing depends on the rows beside it.
//
// A chunk that a row sees whole, in the slots that the page table has for its positions, is shared: a block reads it
// once for all rows of its tile that see it so. The others are the row's own: those that its ancestors lie in, two at
// most, and the one that a window begins in, with what follows of its span.

#include "cuda_backend/kernels/cache.h"

namespace canopy::cuda {

constexpr uint32_t kChunk = 64;
/// Less than any score, and no infinity: differences of it stay numbers.
constexpr float kLowest = -3.0e38f;

struct RowChunks {
  uint32_t first = 0, end = 0;   // positions that the row sees
  uint32_t start = 0, tail = 0;  // its first chunk, and the first of its own at the end
  uint32_t shared = 0;           // the first chunk that it shares, if any lies before `tail`
  uint32_t tails = 0;            // own chunks from `tail` on

  CANOPY_DEVICE bool shares(uint32_t chunk) const { return chunk >= shared && chunk < tail; }
  CANOPY_DEVICE uint32_t base_span() const { return start / kSpanChunks; }

  // Its results in ascending order: own chunks at the start, spans of shared chunks, own chunks at the end.
  CANOPY_DEVICE uint32_t starts() const { return shared - start; }
  CANOPY_DEVICE uint32_t shared_spans() const {
    return shared < tail ? (tail - 1) / kSpanChunks - shared / kSpanChunks + 1 : 0;
  }
  CANOPY_DEVICE uint32_t results() const { return starts() + shared_spans() + tails; }
  CANOPY_DEVICE uint32_t span_of_result(uint32_t i) const {
    if (i < starts()) return base_span();
    i -= starts();
    return i < shared_spans() ? shared / kSpanChunks + i : (tail + i - shared_spans()) / kSpanChunks;
  }
  /// Among the row's entries.
  CANOPY_DEVICE uint32_t entry_of_result(const AttentionParams& p, uint32_t i) const {
    if (i < starts()) return p.spans + i;
    i -= starts();
    return i < shared_spans() ? shared / kSpanChunks + i - base_span()
                              : p.spans + p.own_chunks - kTailChunks + i - shared_spans();
  }
  /// The chunk that has own entry `i`; none is the chunk behind all.
  CANOPY_DEVICE uint32_t own_chunk(const AttentionParams& p, uint32_t i) const {
    const uint32_t none = 0xFFFFFFFFu, before_tail = p.own_chunks - kTailChunks;
    if (i < before_tail) return i < starts() ? start + i : none;
    return i - before_tail < tails ? tail + i - before_tail : none;
  }
};

CANOPY_DEVICE RowChunks chunks_of(const AttentionParams& p, const Row& row) {
  RowChunks c;
  if (row.ancestor_count == 0) return c;
  c.end = p.block_mask != 0 ? row.prefix + row.ancestor_count : row.position + 1;
  if (p.window > 0 && row.position + 1 > p.window) c.first = row.position + 1 - p.window;
  const uint32_t in_place = row.in_place < row.ancestor_count ? row.in_place : row.ancestor_count;
  const uint32_t in_place_end = row.prefix + in_place < c.end ? row.prefix + in_place : c.end;
  c.start = c.first / kChunk;
  c.tail = in_place_end / kChunk > c.start ? in_place_end / kChunk : c.start;
  c.tails = (c.end + kChunk - 1) / kChunk - c.tail;
  c.shared = c.start;
  if (c.first % kChunk != 0) {
    const uint32_t span_end = (c.base_span() + 1) * kSpanChunks;
    c.shared = span_end < c.tail ? span_end : c.tail;
  }
  return c;
}

CANOPY_DEVICE uint32_t slot_at(const AttentionParams& p, const Row& row, uint32_t position) {
  if (position >= row.prefix) return Span<const uint32_t>{p.ancestors}[row.first_ancestor + position - row.prefix];
  return Span<const uint32_t>{p.pages}[position / kPagePositions] * kPagePositions + position % kPagePositions;
}

/// The queries of an item: item_heads query heads of each of some rows, which share a K/V head.
struct Item {
  uint32_t kv_head, first_row, rows, piece;

  CANOPY_DEVICE uint32_t row(const AttentionParams& p, uint32_t n) const { return first_row + n / p.item_heads; }
  CANOPY_DEVICE uint32_t head(const AttentionParams& p, uint32_t n) const {
    return kv_head * p.group() + piece * p.item_heads + n % p.item_heads;
  }
  CANOPY_DEVICE bool has(const AttentionParams& p, uint32_t n) const {
    return n / p.item_heads < rows && piece * p.item_heads + n % p.item_heads < p.group();
  }
};

/// The place of a result among those of all rows of the launch.
CANOPY_DEVICE uint64_t entry_at(const AttentionParams& p, uint32_t row, uint32_t head, uint32_t entry) {
  return (uint64_t{row} * p.heads + head) * p.entries() + entry;
}

// ---- merging --------------------------------------------------------------------------------------------------------

/// The largest score of some positions and the sum of exp(score - largest).
struct alignas(8) Part {
  float best = kLowest, sum = 0;
};
/// What the results of two parts are multiplied by when they are added.
struct PartFactors {
  float keep, add;
};
CANOPY_DEVICE PartFactors merge_into(Part& part, const Part& more) {
  const float top = fmaxf(part.best, more.best);
  const PartFactors factors{expf(part.best - top), expf(more.best - top)};
  part.sum = part.sum * factors.keep + more.sum * factors.add;
  part.best = top;
  return factors;
}
/// That of an entry: each slice of a head has its own, as nobody waits for the others.
CANOPY_DEVICE Part& part_at(const AttentionParams& p, uint64_t entry, uint32_t slice) {
  return Span<Part>{p.part_sums}[entry * p.slices + slice];
}
CANOPY_DEVICE float merged(float out, float more, const PartFactors& factors) {
  return out * factors.keep + more * factors.add;
}

}  // namespace canopy::cuda
