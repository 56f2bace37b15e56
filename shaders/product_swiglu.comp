#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// variants: f32 WEIGHT=0; f16 WEIGHT=1; bf16 WEIGHT=2; q8_0 WEIGHT=3; q4_1 WEIGHT=4; q5_1 WEIGHT=5; q2_k WEIGHT=6; q3_k WEIGHT=7; q4_k WEIGHT=8; q5_k WEIGHT=9; q6_k WEIGHT=10; iq4_nl WEIGHT=11; iq4_xs WEIGHT=12; mxfp4 WEIGHT=13
// variants: - MATRIX=0; matrix MATRIX=1; matrix_i8 MATRIX=2
// without: f32_matrix_i8 f16_matrix_i8 bf16_matrix_i8
// needs: cooperative_matrix
// out[column, i] = f(g_i) * u_i with g, u the even and odd rows of the weight times in[column].
#include "product.glsl"

layout(set = 0, binding = 6) writeonly buffer Out { float out_[]; };  // activations [width, out_stride]

layout(push_constant) uniform Push {
  PRODUCT_PUSH
  uint out_stride;
};

#if MATRIX == 2
#include "product_i8.glsl"
#elif MATRIX == 1
#include "product_matrix.glsl"
#else
#include "product_fma.glsl"
#endif

layout(constant_id = 10) const uint GELU = 0;  // f: 0 silu, 1 gelu; both g / (1 + exp(-steep(g)))

float steep(float g) {
  if (GELU == 0u) return g;
  precise float square = g * g;
  precise float part = 0.044715 * square;
  precise float result = 1.59576912 * fma(part, g, g);
  return result;
}

float gated(float g, float u) {
  precise float f = g / (1.0 + exp(-steep(g)));
  precise float y = f * u;
  return y;
}

void finish_tile(uint first_column, uint first_row) {
  const uint quads = TILE_ROWS / 4u;
  for (uint i = gl_LocalInvocationIndex; i < quads * TILE_COLUMNS; i += INVOCATIONS) {
    uint c = i / quads, r = 4u * (i % quads);
    if (first_column + c >= width || first_row + r >= rows) continue;
    vec4 sum = quad_sum(first_column, first_row, c, r);
    uint to = (first_column + c) * out_stride + (row_offset + first_row + r) / 2u;
    out_[to] = gated(sum.x, sum.y);
    if (first_row + r + 2u < rows) out_[to + 1u] = gated(sum.z, sum.w);
  }
}
