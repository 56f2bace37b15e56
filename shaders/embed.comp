#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// variants: f32 WEIGHT=0 TEXEL=0; f16 WEIGHT=1 TEXEL=0; bf16 WEIGHT=2 TEXEL=0; q8_0 WEIGHT=3 TEXEL=0; q4_1 WEIGHT=4 TEXEL=0; f32_texel WEIGHT=0 TEXEL=1; f16_texel WEIGHT=1 TEXEL=1; bf16_texel WEIGHT=2 TEXEL=1; q8_0_texel WEIGHT=3 TEXEL=1; q4_1_texel WEIGHT=4 TEXEL=1
// x[w] = table[token of row w]; out = x * norm_weight; sums of squares: 32 lanes, each over its units in order.
#include "weights.glsl"
#include "rows.glsl"
#include "panel.glsl"

layout(local_size_x = 32) in;

layout(set = 0, binding = 2) readonly buffer Rows { Row rows_[]; };
layout(set = 0, binding = 3) writeonly buffer X { float x_[]; };                    // [width, cols]
layout(set = 0, binding = 4) writeonly buffer OutPanel { float out_panel[]; };      // panel [width, cols]
layout(set = 0, binding = 5) writeonly buffer Squares { float squares[]; };         // [width]
layout(set = 0, binding = 6) readonly buffer NormWeight { float norm_weight[]; };   // [cols]

layout(push_constant) uniform Push {
  uint rows;  // of this shard of the table
  uint cols;
  uint row_offset;
  uint width;
  uint tile;
};

shared float lane_sums[32];

void main() {
  uint w = gl_WorkGroupID.x;
  uint row = rows_[w].token - row_offset;
  if (row >= rows) return;  // another shard's
  uint lane = gl_LocalInvocationID.x;
  uvec2 place = panel_column(w, width, tile, cols);
  precise float sum = 0.0;
  for (uint k0 = lane * PER_UNIT; k0 < cols; k0 += 32u * PER_UNIT) {
    uvec4 unit = fetch_unit(units_of(row, cols) + (k0 / PER_UNIT) * BAND);
#if HAS_SCALES
    uint scale_index = scales_of(row, cols) + (k0 / 32u) * BAND;
    uint scale = fetch_scales(scale_index / 4u)[scale_index % 4u];
#endif
    [[unroll]] for (uint q = 0u; q < QUADS_PER_UNIT; ++q) {
      [[unroll]] for (uint i = 0u; i < 4u; ++i) {
        uint k = k0 + 4u * q + i;
        if (k < cols) {
          precise float x = decode(unit, q, i);
#if WEIGHT == 4
          vec2 d = unpackHalf2x16(scale);
          x = fma(d.x, x, d.y);
#elif WEIGHT == 3
          x = uintBitsToFloat(scale) * x;
#endif
          precise float y = x * norm_weight[k];
          x_[w * cols + k] = x;
          out_panel[panel_element(place, k)] = y;
          sum = fma(x, x, sum);
        }
      }
    }
  }
  lane_sums[lane] = sum;
  barrier();
  if (lane == 0u) {
    precise float all = 0.0;
    for (uint l = 0u; l < 32u; ++l) all = all + lane_sums[l];
    squares[w] = all;
  }
}
