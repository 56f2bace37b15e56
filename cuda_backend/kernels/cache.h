#pragma once
// Heads of the projections on their way to the K/V cache: norm, rotation, and how the elements of slots are rounded.

#include "cuda_backend/kernels/common.h"

namespace canopy::cuda {

// Elements of a K/V cache: engine/compute/kv_slots.h says how they lie and what they are rounded to.

constexpr uint32_t kCacheF32 = 0, kCacheF16 = 1, kCacheQ80 = 2;
constexpr uint32_t kKvBlockSize = 32;

/// Halves that the scales of a head take, up to a whole word.
CANOPY_DEVICE uint32_t head_scale_halves(uint32_t head_dim) {
  return (head_dim / kKvBlockSize + 1) / 2 * 2;
}

/// The half of block `block` of a head's scales in a slot.
CANOPY_DEVICE uint64_t scale_half(const CacheParams& c, uint32_t slot, uint32_t head, uint32_t block) {
  return uint64_t{slot} * c.slot_words * 2 + c.kv_heads * c.head_dim / 2 + head * head_scale_halves(c.head_dim) + block;
}

/// The scale of a block as bits of a half, from its largest magnitude as bits of a float.
CANOPY_DEVICE uint32_t block_scale_half(uint32_t largest) {
  const uint32_t half =
      gpu::pack_halves(gpu::from_bits(largest) * gpu::from_bits(0x3C010204u), 0.0f) & 0xFFFFu;  // 1/127
  return largest >= 0x7F800000u || half >= 0x7C00u ? 0x7E00u : half;
}

/// x / s to the nearest, halves away from zero, decided by comparisons with odd multiples of s / 2, which are exact.
CANOPY_DEVICE uint32_t block_code(float x, uint32_t half) {
  if (half == 0 || half == 0x7E00u) return 128;
  const float scale = gpu::half_value(static_cast<uint16_t>(half)), magnitude = fabsf(x);
  const float code = floorf(fminf(magnitude / scale, 127.0f) + 0.5f);  // or one less, or one more
  const int step = magnitude < (code - 0.5f) * scale ? -1 : magnitude >= (code + 0.5f) * scale && code < 127.0f ? 1 : 0;
  const int signed_code = static_cast<int>(code) + step;
  return static_cast<uint32_t>(128 + (x < 0.0f ? -signed_code : signed_code));
}

/// Stores a head of one warp's values, which shared memory holds.
CANOPY_DEVICE void store_head(const CacheParams& c, uint64_t address, uint32_t slot, uint32_t head,
                              const gpu::Shared<float>& values) {
  const uint64_t first = uint64_t{slot} * c.slot_words;
  for (uint32_t begin = 0; begin < c.head_dim; begin += 32) {
    const uint32_t d = begin + gpu::lane(), element = head * c.head_dim + d;
    const float value = d < c.head_dim ? values[d] : 0.0f;
    if (c.type == kCacheQ80) {
      const uint32_t largest = gpu::largest(gpu::bits(value) & 0x7FFFFFFFu);
      const uint32_t half = block_scale_half(largest);
      Span<uint8_t>{address}[first * 4 + element] = static_cast<uint8_t>(block_code(value, half));
      if (gpu::lane() == 0) {
        Span<uint16_t>{address}[scale_half(c, slot, head, d / kKvBlockSize)] = static_cast<uint16_t>(half);
      }
    } else if (d < c.head_dim) {
      if (c.type == kCacheF32) Span<float>{address}[first + element] = value;
      if (c.type == kCacheF16) {
        Span<uint16_t>{address}[first * 2 + element] = static_cast<uint16_t>(gpu::pack_halves(value, 0.0f));
      }
    }
  }
}

// What becomes of a head of the projections: norm and rotation of queries and keys, keys and values to their slots.

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
/// `values`, head_dim of shared memory, for itself. kNormsValues: p.v_norm counts.
template <bool kNormsValues = false>
CANOPY_DEVICE void finish_head(const RopeStoreParams& p, uint32_t head, uint32_t w, const gpu::Shared<float>& values) {
  const uint32_t head_dim = p.cache.head_dim;
  const Row row = Span<const Row>{p.rows}[w];
  const bool is_q = head < p.heads, is_v = head >= p.heads + p.cache.kv_heads;
  if (row.slot == kNoSlot && !is_q) return;
  const uint64_t from = (uint64_t{w} * p.row_heads + head) * head_dim;
  gpu::sync_warp();
  for (uint32_t i = gpu::lane(); i < head_dim; i += 32) values[i] = Span<const float>{p.qkv}[from + i];
  gpu::sync_warp();
  const uint64_t norm = is_q ? p.q_norm : !is_v ? p.k_norm : kNormsValues ? p.v_norm : 0;
  if (norm != 0) norm_head(Span<const float>{norm}, head_dim, p.norm_eps, values);
  if (!is_v) rotate_head(p, row.position + (is_q ? p.query_offset : 0), values);
  if (is_q) {
    const uint64_t to = (uint64_t{w} * p.heads + head) * head_dim;
    for (uint32_t i = gpu::lane(); i < head_dim; i += 32) Span<float>{p.q}[to + i] = values[i];
    return;
  }
  const uint32_t kv_head = head - p.heads - (is_v ? p.cache.kv_heads : 0);
  store_head(p.cache, is_v ? p.cache.values : p.cache.keys, row.slot, kv_head, values);
}

}  // namespace canopy::cuda
