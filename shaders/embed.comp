#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// variants: f32 WEIGHT=0; f16 WEIGHT=1; bf16 WEIGHT=2; q8_0 WEIGHT=3; q4_1 WEIGHT=4; q5_1 WEIGHT=5; q2_k WEIGHT=6; q3_k WEIGHT=7; q4_k WEIGHT=8; q5_k WEIGHT=9; q6_k WEIGHT=10; iq4_nl WEIGHT=11; iq4_xs WEIGHT=12; mxfp4 WEIGHT=13
// x[w] = scale * table[token of row w]; out = x * norm_weight; sums of squares: 32 lanes, each over its units in order.
#include "weights.glsl"
#include "rows.glsl"
#include "activations.glsl"

layout(constant_id = 0) const uint SCALED = 0;  // 0: the scale is 1 and nothing is multiplied
layout(local_size_x = 32) in;

layout(set = 0, binding = 2) readonly buffer Rows { Row rows_[]; };
layout(set = 0, binding = 3) writeonly buffer X { float x_[]; };                    // [width, cols]
layout(set = 0, binding = 4) writeonly buffer OutActivations { float out_activations[]; };      // activations [width, cols]
layout(set = 0, binding = 5) writeonly buffer Squares { float squares[]; };         // [width, square_blocks]
layout(set = 0, binding = 6) readonly buffer NormWeight { float norm_weight[]; };   // [cols]

layout(push_constant) uniform Push {
  uint rows;  // of this shard of the table
  uint cols;
  uint row_offset;
  uint square_blocks;  // of a row; the whole sum goes to the first, the others get 0
  float scale;
};

shared float lane_sums[32];

// Writes element k of row w; gives the sum of squares with it.
float add_element(uint w, uint place, uint k, float x, float sum) {
  if (SCALED != 0u) {
    precise float scaled = x * scale;
    x = scaled;
  }
  precise float y = x * norm_weight[k];
  x_[w * cols + k] = x;
  out_activations[place + k] = y;
  return fma(x, x, sum);
}

#if IS_WORDS
BlockBits fetch_block(uint first, uint b) {
  BlockBits bits;
  [[unroll]] for (uint j = 0u; j < uint(MAIN); ++j) bits.main_[j] = fetch_word(first + (block_word(b) + j) * BAND);
  [[unroll]] for (uint j = 0u; j < uint(HIGH); ++j) {
    bits.high[j] = fetch_word(first + (block_word(b) + uint(MAIN) + j) * BAND);
  }
  return bits;
}
#endif

void main() {
  uint w = gl_WorkGroupID.x;
  uint row = rows_[w].token - row_offset;
  if (row >= rows) return;  // another shard's
  uint lane = gl_LocalInvocationID.x;
  uint place = activation_row(w, cols);
  precise float sum = 0.0;
#if IS_WORDS
  uint first = words_of(row, cols);
  for (uint b = lane; b < blocks_of(cols); b += 32u) {
    BlockBits bits = fetch_block(first, b);
    [[unroll]] for (uint h = 0u; h < 2u; ++h) {
#if HAS_FACTOR
      uint factor = fetch_word(first + factor_word(b) * BAND);
#else
      uint factor = 0u;
#endif
      vec2 d = block_scale(fetch_word(first + scale_word(b) * BAND), b, factor, HALVES == 2 ? h : 0u);
      for (uint q = 0u; q < 4u; ++q) {
        uint k = b * 32u + h * 16u + 4u * q;
        [[unroll]] for (uint i = 0u; i < 4u; ++i) {
          if (k + i < cols) sum = add_element(w, place, k + i, fma(d.x, element(bits, i), d.y), sum);
        }
        turn(bits);
      }
    }
  }
#else
  for (uint k0 = lane * PER_UNIT; k0 < cols; k0 += 32u * PER_UNIT) {
    uvec4 unit = fetch_unit(units_of(row, cols) + (k0 / PER_UNIT) * BAND);
#if HAS_SCALES
    uint scale = fetch_scale(scales_of(row, cols) + (k0 / 32u) * BAND);
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
          sum = add_element(w, place, k, x, sum);
        }
      }
    }
  }
#endif
  lane_sums[lane] = sum;
  barrier();
  if (lane == 0u) {
    precise float all = 0.0;
    for (uint l = 0u; l < 32u; ++l) all = all + lane_sums[l];
    squares[w * square_blocks] = all;
  }
  for (uint b = lane + 1u; b < square_blocks; b += 32u) squares[w * square_blocks + b] = 0.0;
}
