// Norm, rotation and K/V store of heads: what rope_store.comp and product_heads.comp do alike, to the last bit. Behind
// declarations of HEAD_DIM, INTERLEAVED, CACHE (0 f32, 1 f16, 2 q8_0; cache.glsl), of `k_` and `v_`, words of the cache's
// slots, and of `kv_heads`.

// Two neighbouring pairs (x, y), (z, w) turned by (cos, sin) = turn.xy and turn.zw.
vec4 rotated(vec4 x, vec4 turn) {
  precise vec4 far = vec4(-x.y * turn.y, x.x * turn.y, -x.w * turn.w, x.z * turn.w);
  precise vec4 near = vec4(fma(x.x, turn.x, far.x), fma(x.y, turn.x, far.y), fma(x.z, turn.z, far.z), fma(x.w, turn.z, far.w));
  return near;
}

const uint QUADS = HEAD_DIM / 4u;
const uint NORM_LANES = 16u;  // fixed, so that a choice of workgroups does not change the sum of squares

// Element indexes of quad t: first pair (x, y), second pair (z, w).
uvec4 quad(uint t) {
  if (INTERLEAVED != 0u) return uvec4(4u * t, 4u * t + 1u, 4u * t + 2u, 4u * t + 3u);
  return uvec4(2u * t, 2u * t + HEAD_DIM / 2u, 2u * t + 1u, 2u * t + 1u + HEAD_DIM / 2u);
}

// 1 / sqrt(mean of squares + eps), of the sum of squares of a head.
float scale_of_squares(float all, float eps) {
  precise float mean = all / float(HEAD_DIM) + eps;
  return inversesqrt(mean);
}

vec4 head_normed(vec4 x, float scale, vec4 weight) {
  precise vec4 scaled = x * scale;
  precise vec4 y = scaled * weight;
  return y;
}

// Stores elements element, element + 1 of a cache of floats or halves.
void store_pair(bool value, uint element, float a, float b) {
  if (CACHE == 1) {
    uint word = pack_halves(a, b);
    if (value) v_[element / 2u] = word; else k_[element / 2u] = word;
  } else if (value) {
    v_[element] = floatBitsToUint(a);
    v_[element + 1u] = floatBitsToUint(b);
  } else {
    k_[element] = floatBitsToUint(a);
    k_[element + 1u] = floatBitsToUint(b);
  }
}

// Quad t of the head at element `base` of such a cache; x in the order of quad(t).
void store_pairs(bool value, uint base, uint t, vec4 x) {
  if (INTERLEAVED != 0u) {
    store_pair(value, base + 4u * t, x.x, x.y);
    store_pair(value, base + 4u * t + 2u, x.z, x.w);
  } else {
    store_pair(value, base + 2u * t, x.x, x.z);
    store_pair(value, base + 2u * t + HEAD_DIM / 2u, x.y, x.w);
  }
}

// Largest magnitude of four elements, as bits of a float.
uint largest_magnitude(vec4 x) {
  uvec4 magnitude = floatBitsToUint(x) & 0x7FFFFFFFu;
  return max(max(magnitude.x, magnitude.y), max(magnitude.z, magnitude.w));
}

// Elements 4 q ... 4 q + 3 of a head in a cache of q8_0, with the scale of their block.
void store_codes(bool value, uint slot, uint kv_head, uint q, vec4 x, uint scale) {
  uint word = 0u, to = slot * kv_slot_words(kv_heads, HEAD_DIM) + kv_head * QUADS + q;
  [[unroll]] for (uint e = 0u; e < 4u; ++e) word |= kv_code(x[e], scale) << (8u * e);
  if (value) v_[to] = word; else k_[to] = word;
}

// The scales of blocks 2 pair and 2 pair + 1 of a head; of the last, where there is no second, 0.
void store_scales(bool value, uint slot, uint kv_head, uint pair, uint scale, uint next) {
  uint to = slot * kv_slot_words(kv_heads, HEAD_DIM) + kv_scale_word(kv_heads, HEAD_DIM, kv_head, pair);
  if (value) v_[to] = scale | next << 16; else k_[to] = scale | next << 16;
}
