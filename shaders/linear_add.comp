#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// variants: f32 WEIGHT=0; f16 WEIGHT=1; bf16 WEIGHT=2; q8_0 WEIGHT=3; q4_1 WEIGHT=4; q5_1 WEIGHT=5; q2_k WEIGHT=6; q3_k WEIGHT=7; q4_k WEIGHT=8; q5_k WEIGHT=9; q6_k WEIGHT=10; iq4_nl WEIGHT=11; iq4_xs WEIGHT=12; mxfp4 WEIGHT=13
// variants: texel TEXEL=1
// x[column, row] += sum over k of weight[row, k] * in[column, k]; out = x * norm_weight, with sums of squares of x;
// aux[column, aux_offset + row] = x.
#include "linear_core.glsl"
#define SQUARES_BINDING 5
#define COUNTERS_BINDING 6
#include "squares.glsl"
DECLARE_LANE_SUMS(N);

layout(set = 0, binding = 3) buffer X { float x_[]; };                             // [width, total_rows]
layout(set = 0, binding = 4) writeonly buffer OutActivations { float out_activations[]; };     // activations [width, total_rows]
layout(set = 0, binding = 7) readonly buffer NormWeight { float norm_weight[]; };  // [total_rows]
layout(set = 0, binding = 8) writeonly buffer Tap { float aux[]; };                // [width, aux_stride]
// The same, for QUADS.
layout(set = 0, binding = 9) buffer X4 { vec4 x4[]; };
layout(set = 0, binding = 10) writeonly buffer OutActivations4 { vec4 out_activations4[]; };
layout(set = 0, binding = 11) readonly buffer NormWeight4 { vec4 norm_weight4[]; };
layout(set = 0, binding = 12) writeonly buffer Tap4 { vec4 tap4[]; };

layout(push_constant) uniform Push {
  uint rows;
  uint cols;
  uint first_column;  // of the dispatch
  uint first_quad;    // of its first tile in a texel buffer of activations
  uint row_offset;  // of this shard in the whole weight
  uint total_rows;
  uint width;
  uint tile;
  uint counter;  // index of the first tile in `finished`
  uint groups;   // workgroups that write a tile, all shards
  uint partial_base;
  uint aux_stride;  // 0: no aux
  uint aux_offset;
};

// Four rows of column c from row k of the whole weight on; those from `end` on do not exist.
void write_quad(uint column, uvec2 place, uint k, uint end, vec4 product) {
  uint partials = (total_rows + 3u) / 4u;
  precise float square = 0.0;
  if (QUADS != 0u) {
    uint at = (column * total_rows + k) / 4u;
    precise vec4 x = x4[at] + product;
    precise vec4 y = x * norm_weight4[k / 4u];
    x4[at] = x;
    out_activations4[activation_element(place, k) / 4u] = y;
    if (aux_stride != 0u) tap4[(column * aux_stride + aux_offset + k) / 4u] = x;
    [[unroll]] for (uint r = 0u; r < 4u; ++r) square = fma(x[r], x[r], square);
  } else {
    [[unroll]] for (uint r = 0u; r < 4u; ++r) {
      if (k + r < end) {
        precise float x = x_[column * total_rows + k + r] + product[r];
        precise float y = x * norm_weight[k + r];
        x_[column * total_rows + k + r] = x;
        out_activations[activation_element(place, k + r)] = y;
        if (aux_stride != 0u) aux[column * aux_stride + aux_offset + k + r] = x;
        square = fma(x, x, square);
      }
    }
    if (k >= end) return;
  }
  squares[partial_base + column * partials + k / 4u] = square;
}

void write_column(uint c, uint row) {
  uint column = tile_column(first_column) + c;
  if (column >= width) return;
  uvec2 place = activation_column(column, tile, total_rows);
  [[unroll]] for (uint q = 0u; q < R; q += 4u) {
    vec4 product = vec4(total[q][c], total[q + 1u][c], total[q + 2u][c], total[q + 3u][c]);
    write_quad(column, place, row_offset + row + q, row_offset + rows, product);
  }
}

void main() {
  LinearShape shape = LinearShape(rows, cols, tile_quad(first_quad, cols));
  bool owned;
  uint row = first_row(shape, owned);
  multiply(shape, row);
  if (owned) {
    [[unroll]] for (uint c = 0u; c < N; ++c) write_column(c, row);
  }
  uint columns = min(N, width - tile_column(first_column));
  FINISH_SQUARES(columns, tile_column(first_column), counter + gl_WorkGroupID.x, groups, partial_base, (total_rows + 3u) / 4u)
}
