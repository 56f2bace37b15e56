#pragma once
// How keys and values lie in the slots of a cache (shaders/cache.glsl is the same in GLSL), and what they are rounded
// to.
//
// In f32 and f16 a slot has kv_heads * head_dim elements, one after the other. In q8_0 each 32 neighbouring elements of
// a head have a scale s, a half, and each of them a code c: the element is c * s, which f32 holds exactly. A slot has
// the codes of all heads, bytes of c + 128, then the scales, two to a word, those of each head from a whole word on; it
// is filled up to a multiple of 16 bytes.
//
//   s = largest |x| of the 32, times the float next to 1/127, rounded to the nearest half
//   c = x / s rounded to the nearest integer, halves away from zero, at most 127 either way; 0 where s is 0
//
// c follows from comparisons of |x| with (k - 1/2) s, which are exact in f32: no quotient's last bit matters. Where s
// is no finite half, as of infinities and NaN, it is a NaN and all codes are 0: the whole block reads as NaN.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/compute/types.h"

namespace canopy {

inline constexpr uint32_t kKvBlock = 32;  // elements that share a scale

/// Whether heads of that size are whole numbers of the type's blocks.
inline bool keeps_heads(CacheType type, uint32_t head_dim) {
  return type != CacheType::q8_0 || head_dim % kKvBlock == 0;
}
/// Throws bad_input where they are not.
void check_keeps_heads(CacheType type, uint32_t head_dim);
/// Throws bad_input for a latent cache whose values are no part of its keys, or no multiple of 4.
void check_latent_values(const KvShape& shape);

/// Bytes that the keys (or the values) of one slot take.
uint64_t slot_bytes(const KvShape& shape);
/// Bytes that one element takes on average.
double mean_element_bytes(const KvShape& shape);

/// Values [slots, kv_heads, head_dim] as the bytes of slots, rounded to the cache's type, and back. Throw bad_input for
/// what is no whole number of slots.
std::vector<std::byte> encode_slots(const KvShape& shape, std::span<const float> values);
std::vector<float> decode_slots(const KvShape& shape, std::span<const std::byte> bytes);

}  // namespace canopy
