#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// variants: f32 WEIGHT=0; f16 WEIGHT=1; bf16 WEIGHT=2; q8_0 WEIGHT=3; q4_1 WEIGHT=4; q5_1 WEIGHT=5; q2_k WEIGHT=6; q3_k WEIGHT=7; q4_k WEIGHT=8; q5_k WEIGHT=9; q6_k WEIGHT=10; iq4_nl WEIGHT=11; iq4_xs WEIGHT=12; mxfp4 WEIGHT=13
// variants: texel TEXEL=1
// linear.comp and rope_store.comp in one dispatch, with the bits of the two: rows of the weight are elements of the heads
// q, k and v, and an invocation has all four of two neighbouring pairs. For pairs (2i, 2i+1) and heads without a norm;
// otherwise what is needed for an element lies in other invocations.
#include "linear_core.glsl"
#include "rows.glsl"
#include "cache.glsl"
#include "rotate.glsl"

layout(constant_id = 9) const uint HEAD_DIM = 64;   // multiple of 4
layout(constant_id = 10) const uint CACHE_F16 = 1;  // else the cache is f32

layout(set = 0, binding = 3) readonly buffer Squares { float sum_of_squares[]; };  // [width]
layout(set = 0, binding = 4) readonly buffer Rows { Row rows_[]; };                // [width]
layout(set = 0, binding = 5) uniform usamplerBuffer rotation;                // [context, HEAD_DIM / 4] of two pairs
layout(set = 0, binding = 6) writeonly buffer Q { vec4 q4[]; };       // [width, heads * HEAD_DIM]
layout(set = 0, binding = 7) writeonly buffer K { uvec4 k4[]; };      // [slots, kv_heads, HEAD_DIM], f32
layout(set = 0, binding = 8) writeonly buffer V { uvec4 v4[]; };
layout(set = 0, binding = 9) writeonly buffer HalfK { uvec2 half_k4[]; };  // the same, f16
layout(set = 0, binding = 10) writeonly buffer HalfV { uvec2 half_v4[]; };

layout(push_constant) uniform Push {
  uint rows;
  uint cols;
  uint first_column;  // of the dispatch
  uint first_quad;    // of its first tile in a texel buffer of activations
  uint width;
  uint first_element;  // of the heads: where the weight's (shard's) rows begin
  uint heads;
  uint kv_heads;
  float norm_eps;  // 0: no norm
};

const uint HEAD_QUADS = HEAD_DIM / 4u;

vec4 rotation_at(uint position, uint quad) {
  return uintBitsToFloat(texelFetch(rotation, int(position * HEAD_QUADS + quad)));
}

void store(bool value, uint quad, vec4 x) {
  if (CACHE_F16 != 0u) {
    uvec2 stored = uvec2(pack_halves(x.x, x.y), pack_halves(x.z, x.w));
    if (value) half_v4[quad] = stored; else half_k4[quad] = stored;
  } else {
    uvec4 stored = floatBitsToUint(x);
    if (value) v4[quad] = stored; else k4[quad] = stored;
  }
}

void write_column(uint c, uint row) {
  uint column = tile_column(first_column) + c;
  if (column >= width) return;
  float scale = norm_eps > 0.0 ? norm_scale(sum_of_squares[column], cols, norm_eps) : 1.0;
  uint position = rows_[column].position;
  uint slot = rows_[column].slot;
  uint q_quads = heads * HEAD_QUADS, kv_quads = kv_heads * HEAD_QUADS;
  [[unroll]] for (uint r = 0u; r < R; r += 4u) {
    precise vec4 y = vec4(total[r][c], total[r + 1u][c], total[r + 2u][c], total[r + 3u][c]) * scale;
    uint quad = (first_element + row + r) / 4u;
    bool is_q = quad < q_quads;
    bool is_v = quad >= q_quads + kv_quads;
    vec4 turned = rotated(y, rotation_at(position, quad % HEAD_QUADS));
    if (is_q) {
      q4[column * q_quads + quad] = turned;
    } else if (slot != NO_SLOT) {
      store(is_v, slot * kv_quads + quad - q_quads - (is_v ? kv_quads : 0u), is_v ? y : turned);
    }
  }
}

void main() {
  LinearShape shape = LinearShape(rows, cols, tile_quad(first_quad, cols));
  bool owned;
  uint row = first_row(shape, owned);
  multiply(shape, row);
  if (!owned) return;
  [[unroll]] for (uint c = 0u; c < N; ++c) write_column(c, row);
}
