#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// variants: f32 WEIGHT=0; f16 WEIGHT=1; bf16 WEIGHT=2; q8_0 WEIGHT=3; q4_1 WEIGHT=4; q5_1 WEIGHT=5; q2_k WEIGHT=6; q3_k WEIGHT=7; q4_k WEIGHT=8; q5_k WEIGHT=9; q6_k WEIGHT=10; iq4_nl WEIGHT=11; iq4_xs WEIGHT=12; mxfp4 WEIGHT=13
// variants: - MATRIX=0; matrix MATRIX=1
// needs: cooperative_matrix
// out[pair, f] = silu(g) * u, or gelu(g) * u, with g, u the products of rows 2 f and 2 f + 1 of the pair's expert with its row of the
// pass, plus their bias where there is one. With a limit l: (u' + 1) g' / (1 + exp(-SLOPE g')) with g' = min(g, l) and
// u' = u between -l and l, both NaN where they were. Grid: (pairs or tiles of them, tiles of an
// expert's rows).
#define OWN_PUSH float limit; uint is_gelu;

#include "weights.glsl"
#include "activations.glsl"
#if MATRIX
#define EXPERTS
#include "product_matrix.glsl"
#else
#include "expert_product.glsl"
#endif

layout(set = 0, binding = 7) writeonly buffer Out { float out_[]; };  // activations [pairs, expert_rows / 2]

const float SLOPE = 1.702;

float clamped(float g, float u) {
  float low = g > limit ? limit : g;
  float near = u > limit ? limit : u < -limit ? -limit : u;
  precise float slope = SLOPE * low;
  precise float gate = low / (1.0 + exp(-slope));
  precise float more = near + 1.0;
  precise float y = more * gate;
  return y;
}

float gated(float g, float u) {
  if (limit > 0.0) return clamped(g, u);
  precise float square = g * g;
  precise float part = 0.044715 * square;
  precise float steep = 1.59576912 * fma(part, g, g);
  precise float opened = g / (1.0 + exp(is_gelu != 0u ? -steep : -g));
  precise float y = opened * u;
  return y;
}

void finish_tile(uint pair_count, uint first_row, uint weight_row) {
  const uint halves = TILE_ROWS / 2u;
  for (uint i = gl_LocalInvocationIndex; i < halves * pair_count; i += INVOCATIONS) {
    uint c = i / halves, r = 2u * (i % halves);
    if (!exists(r, first_row, weight_row)) continue;
    uint place = activation_row(pair(c), expert_rows / 2u);
    out_[place + (first_row + r) / 2u] = 
        gated(with_bias(c, r, weight_row), with_bias(c, r + 1u, weight_row));
  }
}
