#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// variants: f32 WEIGHT=0; f16 WEIGHT=1; bf16 WEIGHT=2; q8_0 WEIGHT=3; q4_1 WEIGHT=4; q5_1 WEIGHT=5; q2_k WEIGHT=6; q3_k WEIGHT=7; q4_k WEIGHT=8; q5_k WEIGHT=9; q6_k WEIGHT=10; iq4_nl WEIGHT=11; iq4_xs WEIGHT=12; mxfp4 WEIGHT=13
// variants: texel TEXEL=1
// out[column, i] = f(s g_i) * (s u_i) with g, u the even and odd rows of the weight times in[column], s the norm's scale,
// f as gated.glsl has it.
#include "linear_core.glsl"
#include "gated.glsl"

layout(set = 0, binding = 3) readonly buffer Squares { float sum_of_squares[]; };  // [width]
layout(set = 0, binding = 4) writeonly buffer OutActivations { float out_activations[]; };     // activations [width, total_rows / 2]
layout(set = 0, binding = 5) writeonly buffer OutActivations2 { vec2 out_activations2[]; };    // the same, for QUADS

layout(push_constant) uniform Push {
  uint rows;
  uint cols;
  uint first_column;  // of the dispatch
  uint first_quad;    // of its first tile in a texel buffer of activations
  uint row_offset;  // of this shard in the whole weight; even
  uint total_rows;
  uint width;
  uint tile;
  float norm_eps;  // 0: no norm
};

float scaled_gate(float gate, float up, float scale) {
  precise float g = gate * scale;
  precise float u = up * scale;
  return gated(g, u);
}

void write_column(uint c, uint row) {
  uint column = tile_column(first_column) + c;
  if (column >= width) return;
  uvec2 place = activation_column(column, tile, total_rows / 2u);
  float scale = norm_eps > 0.0 ? norm_scale(sum_of_squares[column], cols, norm_eps) : 1.0;
  [[unroll]] for (uint r = 0u; r < R; r += 4u) {
    uint k = (row_offset + row + r) / 2u;
    vec2 y = vec2(scaled_gate(total[r][c], total[r + 1u][c], scale), scaled_gate(total[r + 2u][c], total[r + 3u][c], scale));
    if (QUADS != 0u) {
      out_activations2[activation_element(place, k) / 2u] = y;
    } else {
      if (row + r < rows) out_activations[activation_element(place, k)] = y.x;
      if (row + r + 2u < rows) out_activations[activation_element(place, k + 1u)] = y.y;
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
