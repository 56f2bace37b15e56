#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// variants: f32 WEIGHT=0; f16 WEIGHT=1; bf16 WEIGHT=2; q8_0 WEIGHT=3; q4_1 WEIGHT=4; q5_1 WEIGHT=5; q2_k WEIGHT=6; q3_k WEIGHT=7; q4_k WEIGHT=8; q5_k WEIGHT=9; q6_k WEIGHT=10; iq4_nl WEIGHT=11; iq4_xs WEIGHT=12; mxfp4 WEIGHT=13
// variants: texel TEXEL=1
// out[column, offset + row] = scale(column) * sum over k of weight[row, k] * in[column, k]
#include "linear_core.glsl"

layout(set = 0, binding = 3) readonly buffer Squares { float sum_of_squares[]; };  // [width]
layout(set = 0, binding = 4) writeonly buffer Out { float out_[]; };               // [width, stride]
layout(set = 0, binding = 5) writeonly buffer Out4 { vec4 out4[]; };               // the same, for QUADS

layout(push_constant) uniform Push {
  uint rows;
  uint cols;
  uint first_column;  // of the dispatch
  uint first_quad;    // of its first tile in a texel buffer of activations
  uint width;
  uint stride;
  uint offset;
  float norm_eps;  // 0: no norm
};

void write_column(uint c, uint row) {
  uint column = tile_column(first_column) + c;
  if (column >= width) return;
  float scale = norm_eps > 0.0 ? norm_scale(sum_of_squares[column], cols, norm_eps) : 1.0;
  uint to = column * stride + offset + row;
  [[unroll]] for (uint q = 0u; q < R; q += 4u) {
    precise vec4 y = vec4(total[q][c], total[q + 1u][c], total[q + 2u][c], total[q + 3u][c]) * scale;
    if (QUADS != 0u) {
      out4[(to + q) / 4u] = y;
    } else {
      [[unroll]] for (uint r = 0u; r < 4u; ++r) {
        if (row + q + r < rows) out_[to + q + r] = y[r];
      }
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
