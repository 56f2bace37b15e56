#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// variants: f32 WEIGHT=0; f16 WEIGHT=1; bf16 WEIGHT=2; q8_0 WEIGHT=3; q4_1 WEIGHT=4; q5_1 WEIGHT=5; q2_k WEIGHT=6; q3_k WEIGHT=7; q4_k WEIGHT=8; q5_k WEIGHT=9; q6_k WEIGHT=10; iq4_nl WEIGHT=11; iq4_xs WEIGHT=12; mxfp4 WEIGHT=13
// variants: - MATRIX=0; matrix MATRIX=1; matrix_i8 MATRIX=2
// without: f32_matrix_i8 f16_matrix_i8 bf16_matrix_i8
// needs: cooperative_matrix
// x[column, row] += sum over k of weight[row, k] * in[column, k]; out = x * norm_weight, with the squares of x summed for
// each block of SQUARE_BLOCK rows; aux[column, aux_offset + row] = x.
#include "product.glsl"

layout(set = 0, binding = 6) buffer X { float x_[]; };                             // [width, total_rows]
layout(set = 0, binding = 7) writeonly buffer Out { float out_[]; };               // activations [width, out_stride]
layout(set = 0, binding = 8) writeonly buffer OutSquares { float out_squares[]; };  // [width, blocks of total_rows]
layout(set = 0, binding = 9) readonly buffer NormWeight { float norm_weight[]; };  // [total_rows]
layout(set = 0, binding = 10) writeonly buffer Aux { float aux[]; };               // [width, aux_stride]

layout(push_constant) uniform Push {
  PRODUCT_PUSH
  uint out_stride;
  uint aux_stride;  // 0: no aux
  uint aux_offset;
};

#if MATRIX == 2
#include "product_i8.glsl"
#elif MATRIX == 1
#include "product_matrix.glsl"
#else
#include "product_fma.glsl"
#endif

const uint EIGHTHS = TILE_ROWS / 8u;
shared float eighths[TILE_COLUMNS * EIGHTHS];  // sums of squares of eight rows

float added(uint column, uint k, float old, float product) {
  precise float x = old + product;
  precise float y = x * norm_weight[k];
  x_[column * total_rows + k] = x;
  out_[column * out_stride + k] = y;
  if (aux_stride != 0u) aux[column * aux_stride + aux_offset + k] = x;
  return x;
}

void finish_tile(uint first_column, uint first_row) {
  const uint quads = TILE_ROWS / 4u;
  for (uint i = gl_LocalInvocationIndex; i < quads * TILE_COLUMNS; i += INVOCATIONS) {
    uint column = first_column + i / quads, row = first_row + 4u * (i % quads);
    vec4 x = vec4(0.0);
    if (column < width && row < rows) {
      uint k = row_offset + row;
      vec4 old;  // on its way beside the sums
      [[unroll]] for (uint e = 0u; e < 4u; ++e) old[e] = x_[column * total_rows + min(k + e, total_rows - 1u)];
      vec4 sum = quad_sum(first_column, first_row, i / quads, 4u * (i % quads));
      [[unroll]] for (uint e = 0u; e < 4u; ++e) {
        if (row + e < rows) x[e] = added(column, k + e, old[e], sum[e]);
      }
    }
    [[unroll]] for (uint e = 0u; e < 4u; ++e) put_pooled(4u * i + e, x[e]);  // over the sum that it is made of
  }
  barrier();
  for (uint i = gl_LocalInvocationIndex; i < TILE_COLUMNS * EIGHTHS; i += INVOCATIONS) {
    precise float sum = 0.0;
    for (uint r = 0u; r < 8u; ++r) {
      float x = pooled(8u * i + r);
      sum = fma(x, x, sum);
    }
    eighths[i] = sum;
  }
  barrier();
  // Tiles and shards begin at multiples of SQUARE_BLOCK rows.
  const uint per_tile = TILE_ROWS / SQUARE_BLOCK;
  uint blocks = (total_rows + SQUARE_BLOCK - 1u) / SQUARE_BLOCK;
  for (uint i = gl_LocalInvocationIndex; i < TILE_COLUMNS * per_tile; i += INVOCATIONS) {
    precise float sum = 0.0;
    for (uint e = 0u; e < SQUARE_BLOCK / 8u; ++e) sum = sum + eighths[i * (SQUARE_BLOCK / 8u) + e];
    uint column = first_column + i / per_tile;
    uint block = (row_offset + first_row) / SQUARE_BLOCK + i % per_tile;
    if (column < width && block < blocks) out_squares[column * blocks + block] = sum;
  }
}
