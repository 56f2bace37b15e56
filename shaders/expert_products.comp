#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// variants: f32 WEIGHT=0; f16 WEIGHT=1; bf16 WEIGHT=2; q8_0 WEIGHT=3; q4_1 WEIGHT=4; q5_1 WEIGHT=5; q2_k WEIGHT=6; q3_k WEIGHT=7; q4_k WEIGHT=8; q5_k WEIGHT=9; q6_k WEIGHT=10; iq4_nl WEIGHT=11; iq4_xs WEIGHT=12; mxfp4 WEIGHT=13
// variants: - MATRIX=0; matrix MATRIX=1
// needs: cooperative_matrix
// products[pair, r] = the product of row r of the pair's expert with the pair's row of activations, plus the row's bias
// where there is one. Grid: (pairs or tiles of them, tiles of an expert's rows).
#define OWN_PUSH

#include "weights.glsl"
#include "activations.glsl"
#if MATRIX
#define EXPERTS
#include "product_matrix.glsl"
#else
#include "expert_product.glsl"
#endif

layout(set = 0, binding = 7) writeonly buffer Products { float products[]; };  // [pairs, expert_rows]

void finish_tile(uint pair_count, uint first_row, uint weight_row) {
  for (uint i = gl_LocalInvocationIndex; i < TILE_ROWS * pair_count; i += INVOCATIONS) {
    uint c = i / TILE_ROWS, r = i % TILE_ROWS;
    if (exists(r, first_row, weight_row)) products[pair(c) * expert_rows + first_row + r] = with_bias(c, r, weight_row);
  }
}
