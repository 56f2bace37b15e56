#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// variants: f32 CACHE=0; f16 CACHE=1; q8_0 CACHE=2
// One workgroup per (head, row): norm and rotation of a q or k head, norm of a v head, each norm where there is one. An invocation owns quads of
// elements: 4t ... 4t+3 when pairs are (2i, 2i+1), else 2t, 2t+1 and the two half a head further; either way two pairs,
// and whole words of an f16 cache. For a cache in q8_0 the head waits in shared memory, as a block of 32 elements has to be
// known before one of them is stored.
#include "rows.glsl"
#include "cache.glsl"

layout(constant_id = 0) const uint LANES = 8;
layout(constant_id = 1) const uint HEAD_DIM = 64;  // multiple of 4
layout(constant_id = 2) const uint INTERLEAVED = 0;
layout(constant_id = 3) const uint HAS_Q_NORM = 0;
layout(constant_id = 4) const uint HAS_K_NORM = 0;
layout(constant_id = 5) const uint HAS_V_NORM = 0;
layout(local_size_x_id = 0) in;

layout(set = 0, binding = 0) readonly buffer Qkv { float qkv[]; };            // [width, row heads * HEAD_DIM]: those of the grid
layout(set = 0, binding = 1) readonly buffer Rows { Row rows_[]; };           // [width]
layout(set = 0, binding = 2) readonly buffer Rotation { vec2 rotation[]; };   // [context, HEAD_DIM / 2]: cos, sin
layout(set = 0, binding = 3) readonly buffer QNorm { float q_norm[]; };       // [HEAD_DIM]
layout(set = 0, binding = 4) readonly buffer KNorm { float k_norm[]; };       // [HEAD_DIM]
layout(set = 0, binding = 5) writeonly buffer Q { float q_[]; };              // [width, heads * HEAD_DIM]
layout(set = 0, binding = 6) writeonly buffer K { uint k_[]; };               // [slots, kv_heads, HEAD_DIM] of the cache's type
layout(set = 0, binding = 7) writeonly buffer V { uint v_[]; };
layout(set = 0, binding = 8) readonly buffer VNorm { float v_norm[]; };       // [HEAD_DIM]

layout(push_constant) uniform Push {
  uint heads;
  uint kv_heads;
  float norm_eps;
  uint query_offset;  // of the rotations of queries, in positions
};

#include "heads.glsl"

shared float lane_sums[NORM_LANES];
#if CACHE == 2
shared vec4 held[QUADS];            // of a K or V head
shared uint quad_magnitude[QUADS];  // largest of each quad, as bits of a float
#endif

#if CACHE == 2
void store_quad(bool value, uint base, uint t, vec4 x) {  // x in the order of quad(t); store_held comes after all of them
  uvec4 i = quad(t);
  [[unroll]] for (uint e = 0u; e < 4u; ++e) held[i[e] / 4u][i[e] % 4u] = x[e];
}

uint block_scale(uint block) {
  uint largest = 0u;
  [[unroll]] for (uint q = 0u; q < KV_BLOCK / 4u; ++q) largest = max(largest, quad_magnitude[block * (KV_BLOCK / 4u) + q]);
  return kv_scale(largest);
}

// The held head goes to the row's slot.
void store_held(bool value, uint slot, uint kv_head) {
  barrier();
  for (uint q = gl_LocalInvocationID.x; q < QUADS; q += LANES) quad_magnitude[q] = largest_magnitude(held[q]);
  barrier();
  for (uint q = gl_LocalInvocationID.x; q < QUADS; q += LANES) {
    uint block = q / (KV_BLOCK / 4u), scale = block_scale(block);
    store_codes(value, slot, kv_head, q, held[q], scale);
    if (q % (KV_BLOCK / 2u) != 0u) continue;
    uint next = block + 1u < HEAD_DIM / KV_BLOCK ? block_scale(block + 1u) : 0u;
    store_scales(value, slot, kv_head, block / 2u, scale, next);
  }
}
#else
void store_quad(bool value, uint base, uint t, vec4 x) { store_pairs(value, base, t, x); }
#endif

// 1 / sqrt(mean of squares + eps) of the head at `base`.
float head_scale(uint base) {
  for (uint lane = gl_LocalInvocationID.x; lane < NORM_LANES; lane += LANES) {
    precise float sum = 0.0;
    for (uint i = lane; i < HEAD_DIM; i += NORM_LANES) sum = fma(qkv[base + i], qkv[base + i], sum);
    lane_sums[lane] = sum;
  }
  barrier();
  precise float all = 0.0;
  for (uint l = 0u; l < NORM_LANES; ++l) all = all + lane_sums[l];
  return scale_of_squares(all, norm_eps);
}

void main() {
  uint head = gl_WorkGroupID.x;
  uint w = gl_WorkGroupID.y;
  Row row = rows_[w];
  uint base = (w * gl_NumWorkGroups.x + head) * HEAD_DIM;
  bool is_q = head < heads;
  bool is_v = head >= heads + kv_heads;
  float scale = 1.0;
  bool has_norm = is_q ? HAS_Q_NORM != 0u : is_v ? HAS_V_NORM != 0u : HAS_K_NORM != 0u;
  if (has_norm) scale = head_scale(base);
  uint kv_head = is_v ? head - heads - kv_heads : head - heads;
  uint slot_base = (row.slot * kv_heads + kv_head) * HEAD_DIM;
  for (uint t = gl_LocalInvocationID.x; t < QUADS; t += LANES) {
    uvec4 i = quad(t);
    vec4 x = vec4(qkv[base + i.x], qkv[base + i.y], qkv[base + i.z], qkv[base + i.w]);
    if (!is_q && row.slot == NO_SLOT) continue;
    if (is_v) {
      if (has_norm) x = head_normed(x, scale, vec4(v_norm[i.x], v_norm[i.y], v_norm[i.z], v_norm[i.w]));
      store_quad(true, slot_base, t, x);
      continue;
    }
    if (has_norm) {
      vec4 n = is_q ? vec4(q_norm[i.x], q_norm[i.y], q_norm[i.z], q_norm[i.w])
                    : vec4(k_norm[i.x], k_norm[i.y], k_norm[i.z], k_norm[i.w]);
      x = head_normed(x, scale, n);
    }
    uint pair = (row.position + (is_q ? query_offset : 0u)) * (HEAD_DIM / 2u) + 2u * t;
    vec4 turn = vec4(rotation[pair], rotation[pair + 1u]);
    vec4 turned = rotated(x, turn);
    if (is_q) {
      uint to = (w * heads + head) * HEAD_DIM;
      q_[to + i.x] = turned.x;
      q_[to + i.y] = turned.y;
      q_[to + i.z] = turned.z;
      q_[to + i.w] = turned.w;
    } else {
      store_quad(false, slot_base, t, turned);
    }
  }
#if CACHE == 2
  if (!is_q && row.slot != NO_SLOT) store_held(is_v, row.slot, kv_head);
#endif
}
