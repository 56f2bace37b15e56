#pragma once
// The merge of a tile's results, by the block that comes last for it: a head's chunks of a span in ascending order,
// then its spans. A warp has up to eight heads. Their results, head behind head, come in batches of eight, so that
// heads with few results do not wait for memory one after the other.

#include "cuda_backend/kernels/attention_blocks.h"

namespace canopy::cuda {

constexpr uint32_t kWarpHeads = kItemQueries, kMergeBatch = 8, kLaneDims = kSliceDims / 32;

/// The heads that a warp merges: lane k has the k-th of them.
struct WarpHeads {
  uint32_t row = 0, head = 0;   // row: of the launch
  uint32_t slots = 0, end = 0;  // its results, of which one without any has a place, too; end: with those before it
  RowChunks chunks;

  CANOPY_DEVICE WarpHeads(const AttentionParams& p, const AttentionPlace& place) {
    const uint32_t heads = p.tile_pieces * p.item_heads, number = gpu::warp() + gpu::lane() * (gpu::threads() / 32);
    const uint32_t of_group = place.first_piece(p) * p.item_heads + number % heads;
    row = place.first_row(p) + number / heads;
    head = place.kv_head * p.group() + of_group;
    if (gpu::lane() >= kWarpHeads || number / heads >= place.rows(p) || of_group >= p.group()) return;
    chunks = chunks_of(p, row_of(p, row));
    slots = chunks.results() > 0 ? chunks.results() : 1;
  }
  CANOPY_DEVICE void count() {
    CANOPY_UNROLL
    for (uint32_t k = 0; k < kWarpHeads; ++k) {
      const uint32_t more = gpu::shuffle(slots, k);
      if (k <= gpu::lane()) end += more;
    }
  }
  CANOPY_DEVICE uint32_t all_slots() const { return gpu::shuffle(end, kWarpHeads - 1); }
};

/// What lane i knows of the i-th result of a batch.
struct MergeSlot {
  uint32_t there = 0, ends_span = 0, ends_head = 0;  // bits of all of them
  Part part;
  uint32_t row = 0, column = 0;  // where its head goes
  float sink = 0;

  /// Where the head goes that the i-th result ends, and its sink, for all lanes.
  CANOPY_DEVICE MergeSlot of(uint32_t i) const {
    MergeSlot slot;
    slot.row = gpu::shuffle(row, i);
    slot.column = gpu::shuffle(column, i);
    slot.sink = gpu::shuffle(sink, i);
    return slot;
  }
  /// Fills it; the entry of the result among all of the launch.
  CANOPY_DEVICE uint32_t find(const AttentionParams& p, const WarpHeads& heads, uint32_t slice, uint32_t slot) {
    uint32_t k = 0;  // which of the heads
    CANOPY_UNROLL
    for (uint32_t i = 0; i + 1 < kWarpHeads; ++i) k += gpu::shuffle(heads.end, i) <= slot ? 1u : 0u;
    const uint32_t end = gpu::shuffle(heads.end, k), result = slot - (end - gpu::shuffle(heads.slots, k));
    row = gpu::shuffle(heads.row, k);
    const uint32_t head = gpu::shuffle(heads.head, k);
    column = head * p.cache.head_dim + slice * kSliceDims;
    RowChunks chunks;
    chunks.start = gpu::shuffle(heads.chunks.start, k);
    chunks.tail = gpu::shuffle(heads.chunks.tail, k);
    chunks.shared = gpu::shuffle(heads.chunks.shared, k);
    chunks.tails = gpu::shuffle(heads.chunks.tails, k);
    const bool is_slot = gpu::lane() < kMergeBatch && slot < end, is_there = is_slot && result < chunks.results();
    const bool is_last = is_slot && slot + 1 == end;
    there = gpu::ballot(is_there);
    ends_head = gpu::ballot(is_last);
    ends_span =
        gpu::ballot(is_last || (is_there && chunks.span_of_result(result + 1) != chunks.span_of_result(result)));
    const uint32_t at = static_cast<uint32_t>(entry_at(p, row, head, chunks.entry_of_result(p, result)));
    if (is_there) part = part_at(p, at, slice);
    if (is_last && p.sinks != 0) sink = Span<const float>{p.sinks}[head];
    return at;
  }
};

/// Eight results, asked for together: what a lane has of their outputs.
struct MergeBatch {
  MergeSlot slot;
  float out[kMergeBatch][kLaneDims] = {};

  CANOPY_DEVICE void ask(const AttentionParams& p, const WarpHeads& heads, uint32_t slice, uint32_t first) {
    const uint32_t at = slot.find(p, heads, slice, first + gpu::lane()), elements = slice_elements(p, slice);
    CANOPY_UNROLL
    for (uint32_t i = 0; i < kMergeBatch; ++i) {
      const uint64_t from = uint64_t{gpu::shuffle(at, i)} * p.cache.head_dim + slice * kSliceDims;
      if ((slot.there >> i & 1u) == 0) continue;
      CANOPY_UNROLL
      for (uint32_t e = 0; e < kLaneDims; ++e) {
        const uint32_t element = e * 32 + gpu::lane();
        if (element < elements) out[i][e] = Span<const float>{p.part_out}[from + element];
      }
    }
  }
};

/// What the i-th result of a batch, in lane i, and the span that it ends are multiplied by. Only the largest scores go
/// from result to result; the exponentials of all of them are taken together.
struct MergeFactors {
  PartFactors of_chunk, of_span;
  float best = kLowest;  // of the head, up to the result
};
struct LargestScores {
  float all = kLowest, span = kLowest;  // so far

  CANOPY_DEVICE MergeFactors factors(const MergeSlot& slots) {
    float span_before = kLowest, span_now = kLowest, all_before = kLowest, all_now = kLowest;
    CANOPY_UNROLL
    for (uint32_t i = 0; i < kMergeBatch; ++i) {
      const float before = span, best = gpu::shuffle(slots.part.best, i), head_before = all;
      if ((slots.there >> i & 1u) != 0) span = fmaxf(span, best);
      const float now = span;
      if ((slots.ends_span >> i & 1u) != 0) {
        all = fmaxf(all, span);
        span = kLowest;
      }
      if (gpu::lane() == i) {
        span_before = before;
        span_now = now;
        all_before = head_before;
        all_now = all;
      }
      if ((slots.ends_head >> i & 1u) != 0) all = kLowest;
    }
    return {{expf(span_before - span_now), expf(slots.part.best - span_now)},
            {expf(all_before - all_now), expf(span_now - all_now)},
            all_now};
  }
};

/// A head as far as it is merged: its spans, and the chunks of one.
struct MergedHead {
  float sum = 0, span_sum = 0;
  float out[kLaneDims] = {}, span_out[kLaneDims] = {};

  CANOPY_DEVICE void add(float more_sum, const PartFactors& factors, const gpu::Shared<float>& more, uint32_t first) {
    span_sum = merged(span_sum, more_sum, factors);
    CANOPY_UNROLL
    for (uint32_t e = 0; e < kLaneDims; ++e) {
      span_out[e] = merged(span_out[e], more[first + e * 32 + gpu::lane()], factors);
    }
  }
  CANOPY_DEVICE void end_span(const PartFactors& factors) {
    sum = merged(sum, span_sum, factors);
    span_sum = 0;
    CANOPY_UNROLL
    for (uint32_t e = 0; e < kLaneDims; ++e) {
      out[e] = merged(out[e], span_out[e], factors);
      span_out[e] = 0;
    }
  }
  /// Writes the head, of which there is something or nothing; the next begins.
  CANOPY_DEVICE void end(const AttentionParams& p, const MergeSlot& slot, float best, uint32_t elements,
                         bool is_there) {
    Part all{best, sum};
    if (p.sinks != 0) {  // scores without values
      const PartFactors factors = merge_into(all, Part{slot.sink, 1.0f});
      CANOPY_UNROLL
      for (uint32_t e = 0; e < kLaneDims; ++e) out[e] = out[e] * factors.keep;
    }
    CANOPY_UNROLL
    for (uint32_t e = 0; e < kLaneDims; ++e) {
      const uint32_t element = e * 32 + gpu::lane();
      if (element >= elements) continue;
      const float value = is_there ? out[e] / all.sum : 0.0f;
      store_activation(p.out, uint64_t{p.first_row} + slot.row, slot.column + element, value, 1);
    }
    *this = {};
  }
};

CANOPY_DEVICE PartFactors factors_of(const PartFactors& factors, uint32_t lane) {
  return {gpu::shuffle(factors.keep, lane), gpu::shuffle(factors.add, lane)};
}

/// Merges the heads of a warp. The next batch is on its way while one is merged, from shared memory: a loop over
/// registers would have to be unrolled, with all that ends a head in it.
CANOPY_DEVICE void merge_heads(const AttentionParams& p, const WarpHeads& heads, uint32_t slice) {
  const gpu::Shared<float> outs(kAttentionHead + gpu::warp() * kWarpOutputs, kMergeBatch * kSliceDims);
  static_assert(kMergeBatch * kSliceDims * 4 == kWarpOutputs && kWarpOutputs <= kAttentionStageBytes);
  const uint32_t all = heads.all_slots(), elements = slice_elements(p, slice);
  MergedHead merging;
  LargestScores scores;
  MergeBatch batch;
  uint32_t count = 0;
  CANOPY_NO_UNROLL
  for (uint32_t next = 0; next < all + kMergeBatch; next += kMergeBatch) {
    const MergeSlot slots = batch.slot;
    CANOPY_UNROLL
    for (uint32_t i = 0; i < kMergeBatch * kLaneDims; ++i) {  // a lane reads what it has written alone
      outs[i * 32 + gpu::lane()] = batch.out[i / kLaneDims][i % kLaneDims];
    }
    if (next < all) batch.ask(p, heads, slice, next);
    const MergeFactors factors = scores.factors(slots);
    CANOPY_NO_UNROLL
    for (uint32_t i = 0; i < count; ++i) {
      const bool is_there = (slots.there >> i & 1u) != 0;
      if (is_there) {
        merging.add(gpu::shuffle(slots.part.sum, i), factors_of(factors.of_chunk, i), outs, i * kSliceDims);
      }
      if ((slots.ends_span >> i & 1u) != 0) merging.end_span(factors_of(factors.of_span, i));
      if ((slots.ends_head >> i & 1u) != 0) {
        merging.end(p, slots.of(i), gpu::shuffle(factors.best, i), elements, is_there);
      }
    }
    count = all - next < kMergeBatch ? all - next : kMergeBatch;
  }
}

/// Merges the tile where this block is the last of it.
CANOPY_CALLED void finish_attention(const AttentionParams& p) {
  const AttentionPlace place(p);
  const gpu::Shared<uint32_t> flag(kAttentionFlag, 1);
  const uint32_t counter = (place.kv_head * p.tiles + place.tile) * p.slices + place.slice;
  WarpHeads heads(p, place);  // before it is known who is last: nobody waits for rows then
  if (!comes_last(p.counters, counter, p.span_blocks + p.own_blocks, flag)) return;
  heads.count();
  merge_heads(p, heads, place.slice);
}

}  // namespace canopy::cuda
