#pragma once
// What becomes of a head of the projections: norm and rotation of queries and keys, keys and values to their slots.

#include "cuda_backend/kernels/cache.h"

namespace canopy::cuda {

CANOPY_DEVICE void norm_head(const Span<const float>& norm, uint32_t head_dim, float eps,
                             const gpu::Shared<float>& head) {
  float sum = 0;
  for (uint32_t i = gpu::lane(); i < head_dim; i += 32) sum = fmaf(head[i], head[i], sum);
  const float factor = 1.0f / sqrtf(sum_of_warp(sum) / static_cast<float>(head_dim) + eps);
  for (uint32_t i = gpu::lane(); i < head_dim; i += 32) head[i] = head[i] * factor * norm[i];
  gpu::sync_warp();
}

CANOPY_DEVICE void rotate_head(const RopeStoreParams& p, uint32_t position, const gpu::Shared<float>& head) {
  const uint32_t pairs = p.cache.head_dim / 2;
  const Span<const float> table{p.rotation};
  for (uint32_t i = gpu::lane(); i < pairs; i += 32) {
    const uint32_t a = p.interleaved != 0 ? 2 * i : i, b = p.interleaved != 0 ? 2 * i + 1 : i + pairs;
    const uint64_t at = (uint64_t{position} * pairs + i) * 2;
    const float cosine = table[at], sine = table[at + 1], x = head[a], y = head[b];
    head[a] = x * cosine - y * sine;
    head[b] = x * sine + y * cosine;
  }
  gpu::sync_warp();
}

/// Head `head` of row w: query heads come first, then those of the keys, then of the values. For one warp, which has
/// `values`, head_dim of shared memory, for itself.
CANOPY_DEVICE void finish_head(const RopeStoreParams& p, uint32_t head, uint32_t w, const gpu::Shared<float>& values) {
  const uint32_t head_dim = p.cache.head_dim;
  const Row row = Span<const Row>{p.rows}[w];
  const bool is_q = head < p.heads, is_v = head >= p.heads + p.cache.kv_heads;
  if (row.slot == kNoSlot && !is_q) return;
  const uint64_t from = (uint64_t{w} * (p.heads + 2 * p.cache.kv_heads) + head) * head_dim;
  gpu::sync_warp();
  for (uint32_t i = gpu::lane(); i < head_dim; i += 32) values[i] = Span<const float>{p.qkv}[from + i];
  gpu::sync_warp();
  const uint64_t norm = is_q ? p.q_norm : p.k_norm;
  if (!is_v && norm != 0) norm_head(Span<const float>{norm}, head_dim, p.norm_eps, values);
  if (!is_v) rotate_head(p, row.position, values);
  if (is_q) {
    const uint64_t to = (uint64_t{w} * p.heads + head) * head_dim;
    for (uint32_t i = gpu::lane(); i < head_dim; i += 32) Span<float>{p.q}[to + i] = values[i];
    return;
  }
  const uint32_t kv_head = head - p.heads - (is_v ? p.cache.kv_heads : 0);
  store_head(p.cache, is_v ? p.cache.values : p.cache.keys, row.slot, kv_head, values);
}

}  // namespace canopy::cuda
