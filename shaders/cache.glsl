// Reading and rounding the elements of a K/V cache. CACHE: 0 f32, 1 f16 (two to a word), 2 q8_0 (kv_slots.h).

// f32 bits to f16 bits, round to nearest even; packHalf2x16 may round either way.
uint to_half(float value) {
  uint bits = floatBitsToUint(value);
  uint sign = (bits >> 16) & 0x8000u;
  uint magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return sign | 0x7E00u;
  if (magnitude >= 0x477FF000u) return sign | 0x7C00u;
  if (magnitude < 0x33000001u) return sign;  // at most half of the smallest subnormal
  if (magnitude < 0x38800000u) {             // subnormal result
    uint shift = 126u - (magnitude >> 23);   // 14 ... 24
    uint mantissa = (magnitude & 0x7FFFFFu) | 0x800000u;
    uint kept = mantissa >> shift;
    uint rest = mantissa & ((1u << shift) - 1u);
    uint half_way = 1u << (shift - 1u);
    if (rest > half_way || (rest == half_way && (kept & 1u) != 0u)) ++kept;
    return sign | kept;
  }
  uint rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u);
  return sign | ((rounded - 0x38000000u) >> 13);
}

uint pack_halves(float low, float high) { return to_half(low) | (to_half(high) << 16); }

// q8_0: a slot has the codes of all heads, four to a word, then the scales of each head from a whole word on.
const uint KV_BLOCK = 32u;  // elements that share a scale

uint kv_scale_words(uint head_dim) { return (head_dim / KV_BLOCK + 1u) / 2u; }  // of a head
uint kv_slot_words(uint kv_heads, uint head_dim) {
  return (kv_heads * (head_dim / 4u + kv_scale_words(head_dim)) + 3u) / 4u * 4u;
}

// The word of a slot with the scales of blocks 2 pair and 2 pair + 1 of a head.
uint kv_scale_word(uint kv_heads, uint head_dim, uint head, uint pair) {
  return kv_heads * (head_dim / 4u) + head * kv_scale_words(head_dim) + pair;
}

// Four elements from their codes. Both products are exact, and so is their difference.
vec4 kv_elements(uint codes, float scale) {
  vec4 biased = vec4(codes & 0xFFu, codes >> 8 & 0xFFu, codes >> 16 & 0xFFu, codes >> 24);
  precise float bias = -128.0 * scale;
  return fma(biased, vec4(scale), vec4(bias));
}

// The scale of a block as bits of a half, from the largest magnitude of its elements as bits of a float: a NaN where no
// finite half will do.
uint kv_scale(uint largest) {
  precise float scale = uintBitsToFloat(largest) * uintBitsToFloat(0x3C010204u);  // 1/127
  uint bits = largest < 0x7F800000u ? to_half(scale) : 0x7E00u;
  return bits < 0x7C00u ? bits : 0x7E00u;
}

// A finite half as a float; unpackHalf2x16 may take subnormals for 0.
float finite_half(uint bits) {
  if (bits >= 0x0400u) return uintBitsToFloat((bits << 13) + 0x38000000u);
  precise float subnormal = float(bits) * uintBitsToFloat(0x33800000u);  // 2^-24
  return subnormal;
}

// The code of an element, 128 added: x / s to the nearest, ties away from zero. The quotient only says where to look;
// what decides are comparisons with odd multiples of s / 2, which f32 holds exactly.
uint kv_code(float x, uint scale_bits) {
  if (scale_bits == 0u || scale_bits == 0x7E00u) return 128u;
  float scale = finite_half(scale_bits), magnitude = abs(x);
  precise float place = min(magnitude / scale, 127.0) + 0.5;
  float code = floor(place);  // or one less, or one more
  precise float low = (code - 0.5) * scale;
  precise float high = (code + 0.5) * scale;
  int step = magnitude < low ? -1 : magnitude >= high && code < 127.0 ? 1 : 0;
  int signed_code = int(code) + step;
  return uint(128 + (x < 0.0 ? -signed_code : signed_code));
}
