#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// variants: quads QUADS=1; words QUADS=0
// activations = in * norm_weight, and the sums of squares of `in`: 32 lanes, each over its quads in order. One workgroup
// per row, along x and then y.
#include "activations.glsl"

layout(constant_id = 0) const uint HAS_NORM = 0;  // 0: values go over as they are
layout(local_size_x = 32) in;

layout(set = 0, binding = 0) writeonly buffer Squares { float squares[]; };        // [width, square_blocks]
#if QUADS
layout(set = 0, binding = 1) readonly buffer In { vec4 in4[]; };                   // [width, cols], cols a multiple of 4
layout(set = 0, binding = 2) readonly buffer NormWeight { vec4 norm_weight4[]; };  // [cols]
layout(set = 0, binding = 3) writeonly buffer OutActivations { vec4 out_activations4[]; };     // activations [width, cols]
#else
layout(set = 0, binding = 1) readonly buffer In { float in_[]; };
layout(set = 0, binding = 2) readonly buffer NormWeight { float norm_weight[]; };
layout(set = 0, binding = 3) writeonly buffer OutActivations { float out_activations[]; };
#endif

layout(push_constant) uniform Push {
  uint cols;
  uint square_blocks;  // of a row; the whole sum goes to the first, the others get 0
  uint width;
};

const uint LANES = 32u;
shared float lane_sums[LANES];

// Writes elements k ... k + 3 of row w, as far as there are any; gives the sum of their squares.
float write_quad(uint w, uint place, uint k) {
  precise float square = 0.0;
#if QUADS
  vec4 x = in4[(w * cols + k) / 4u];
  precise vec4 y = x;
  if (HAS_NORM != 0u) y = x * norm_weight4[k / 4u];
  out_activations4[(place + k) / 4u] = y;
  [[unroll]] for (uint i = 0u; i < 4u; ++i) square = fma(x[i], x[i], square);
#else
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    if (k + i < cols) {
      float x = in_[w * cols + k + i];
      precise float y = x;
      if (HAS_NORM != 0u) y = x * norm_weight[k + i];
      out_activations[place + k + i] = y;
      square = fma(x, x, square);
    }
  }
#endif
  return square;
}

void main() {
  uint w = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  if (w >= width) return;
  uint lane = gl_LocalInvocationID.x;
  uint place = activation_row(w, cols);
  precise float sum = 0.0;
  for (uint k = 4u * lane; k < cols; k += 4u * LANES) sum = sum + write_quad(w, place, k);
  lane_sums[lane] = sum;
  barrier();
  if (lane == 0u) {
    precise float all = 0.0;
    for (uint l = 0u; l < LANES; ++l) all = all + lane_sums[l];
    squares[w * square_blocks] = all;
  }
  for (uint b = lane + 1u; b < square_blocks; b += LANES) squares[w * square_blocks + b] = 0.0;
}
