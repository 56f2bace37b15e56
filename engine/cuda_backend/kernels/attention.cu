// Attention in two steps. attention_part: a chunk of 64 positions of one row and head gives its maximum m, the sum l of
// exp(score - m) and o = sum of exp(score - m) * V, positions in ascending order. attention_merge: chunks in ascending
// order. A row's positions are those of its virtual sequence (rows.h), wherever their slots are, so nothing depends on
// the rows beside it.

#include "engine/cuda_backend/kernels/cache.h"

namespace canopy::cuda {
namespace {

constexpr uint32_t kChunk = 64;
/// Less than any score, and no infinity: differences of it stay numbers.
constexpr float kLowest = -3.0e38f;

struct Seen {
  uint32_t first = 0, end = 0;  // positions
};

CANOPY_DEVICE Seen seen_by(const AttentionParams& p, const Row& row) {
  if (row.ancestor_count == 0) return {};
  Seen seen;
  seen.end = p.block_mask != 0 ? row.prefix + row.ancestor_count : row.position + 1;
  if (p.window > 0 && row.position + 1 > p.window) seen.first = row.position + 1 - p.window;
  return seen;
}

CANOPY_DEVICE uint32_t slot_at(const AttentionParams& p, const Row& row, uint32_t position) {
  if (position >= row.prefix) return Span<const uint32_t>{p.ancestors}[row.first_ancestor + position - row.prefix];
  return Span<const uint32_t>{p.pages}[position / kPagePositions] * kPagePositions + position % kPagePositions;
}

/// Where chunk `chunk` of a row, counted from its first, has its results.
CANOPY_DEVICE uint64_t entry_of(const AttentionParams& p, uint32_t row, uint32_t head, uint32_t chunk) {
  return (uint64_t{row} * p.heads + head) * p.chunks + chunk;
}

CANOPY_DEVICE float score_of(const AttentionParams& p, uint32_t slot, uint32_t kv_head,
                             const gpu::Shared<float>& query) {
  float sum = 0;
  for (uint32_t d = 0; d < p.cache.head_dim; ++d)
    sum = fmaf(query[d], cached(p.cache, p.cache.keys, slot, kv_head, d), sum);
  return sum * p.scale;
}

}  // namespace

// Grid: chunks, heads, rows.
CANOPY_KERNEL(attention_part, AttentionParams, 64) {
  const uint32_t w = p.first_row + gpu::block_z(), head = gpu::block_y(), head_dim = p.cache.head_dim;
  const uint32_t kv_head = head / (p.heads / p.cache.kv_heads);
  const Row row = Span<const Row>{p.rows}[w];
  const Seen seen = seen_by(p, row);
  const uint32_t chunk = seen.first / kChunk + gpu::block_x();
  if (chunk * kChunk >= seen.end) return;
  const gpu::Shared<float> query(0, head_dim);
  const gpu::Shared<float> weights(head_dim * 4, kChunk);
  const gpu::Shared<uint32_t> slots((head_dim + kChunk) * 4, kChunk);
  for (uint32_t d = gpu::thread(); d < head_dim; d += kChunk) {
    query[d] = Span<const float>{p.q}[(uint64_t{w} * p.heads + head) * head_dim + d];
  }
  gpu::sync();
  const uint32_t position = chunk * kChunk + gpu::thread();
  const bool visible = position >= seen.first && position < seen.end;
  const uint32_t slot = visible ? slot_at(p, row, position) : kNoSlot;
  slots[gpu::thread()] = slot;
  weights[gpu::thread()] = visible ? score_of(p, slot, kv_head, query) : kLowest;
  gpu::sync();
  float best = kLowest;
  for (uint32_t j = 0; j < kChunk; ++j) best = fmaxf(best, weights[j]);
  const float mine = visible ? expf(weights[gpu::thread()] - best) : 0.0f;
  gpu::sync();
  weights[gpu::thread()] = mine;
  gpu::sync();
  const uint64_t entry = entry_of(p, gpu::block_z(), head, gpu::block_x());
  if (gpu::thread() == 0) {
    float sum = 0;
    for (uint32_t j = 0; j < kChunk; ++j) sum = sum + weights[j];
    Span<float>{p.part_sums}[entry * 2] = best;
    Span<float>{p.part_sums}[entry * 2 + 1] = sum;
  }
  for (uint32_t d = gpu::thread(); d < head_dim; d += kChunk) {
    float sum = 0;
    for (uint32_t j = 0; j < kChunk; ++j) {
      if (slots[j] != kNoSlot) sum = fmaf(weights[j], cached(p.cache, p.cache.values, slots[j], kv_head, d), sum);
    }
    Span<float>{p.part_out}[entry * head_dim + d] = sum;
  }
}

// Grid: heads, rows.
CANOPY_KERNEL(attention_merge, AttentionParams, 64) {
  const uint32_t w = p.first_row + gpu::block_y(), head = gpu::block_x(), head_dim = p.cache.head_dim;
  const Seen seen = seen_by(p, Span<const Row>{p.rows}[w]);
  const uint32_t first = seen.first / kChunk,
                 chunks = seen.end > seen.first ? (seen.end + kChunk - 1) / kChunk - first : 0;
  const uint64_t to = uint64_t{w} * p.out.stride + head * head_dim;
  for (uint32_t d = gpu::thread(); d < head_dim; d += gpu::threads()) {
    float best = kLowest, sum = 0, out = 0;
    for (uint32_t c = 0; c < chunks; ++c) {
      const uint64_t entry = entry_of(p, gpu::block_y(), head, c);
      const float other = Span<const float>{p.part_sums}[entry * 2],
                  more = Span<const float>{p.part_sums}[entry * 2 + 1];
      const float top = fmaxf(best, other), keep = expf(best - top), add = expf(other - top);
      sum = sum * keep + more * add;
      out = out * keep + Span<const float>{p.part_out}[entry * head_dim + d] * add;
      best = top;
    }
    Span<float>{p.out.values}[to + d] = chunks > 0 ? out / sum : 0.0f;
  }
}

}  // namespace canopy::cuda
