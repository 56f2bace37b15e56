#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// variants: quads QUADS=1; words QUADS=0
// logits[w, e] = scale(w) * sum over k of router[e, k] * in[w, k], plus bias[e] where there is one; scale is the norm's.
// Grid: (experts / EXPERTS, width).
//
// A lane has every LANES-th four columns, in order; lanes are added in a tree, so the order follows from the number of
// columns alone.
#include "activations.glsl"

const uint LANES = 64u;
const uint EXPERTS = 4u;  // of a workgroup
// Steps whose loads are under way together: a router is a megabyte, which few workgroups have to bring.
const uint AHEAD = QUADS == 1 ? 4u : 1u;
layout(local_size_x = 64) in;

layout(set = 0, binding = 0) readonly buffer In { vec4 in_quads[]; };            // activations [width, cols]
layout(set = 0, binding = 1) readonly buffer InSquares { float in_squares[]; };  // [width, square_blocks]
#if QUADS
layout(set = 0, binding = 2) readonly buffer Router { vec4 router4[]; };         // [experts, cols], cols a multiple of 4
#else
layout(set = 0, binding = 2) readonly buffer Router { float router[]; };
#endif
layout(set = 0, binding = 3) writeonly buffer Logits { float logits[]; };        // [width, experts]
layout(set = 0, binding = 4) readonly buffer Bias { float bias[]; };             // [experts]

layout(push_constant) uniform Push {
  uint cols;
  uint experts;
  uint square_blocks;  // of a row
  float norm_eps;      // 0: no norm
  uint has_bias;
};

shared vec4 lane_sums[LANES];

// Columns k ... k + 3 of an expert's row; zeros where there are none.
vec4 router_quad(uint expert, uint k) {
#if QUADS
  return router4[(expert * cols + k) / 4u];
#else
  vec4 quad = vec4(0.0);
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    if (k + i < cols) quad[i] = router[expert * cols + k + i];
  }
  return quad;
#endif
}

// The sum over all lanes, for every one.
vec4 sum_of_lanes(vec4 own) {
  uint lane = gl_LocalInvocationID.x;
  barrier();
  lane_sums[lane] = own;
  for (uint half_ = LANES / 2u; half_ > 0u; half_ /= 2u) {
    barrier();
    if (lane < half_) {
      precise vec4 sum = lane_sums[lane] + lane_sums[lane + half_];
      lane_sums[lane] = sum;
    }
  }
  barrier();
  return lane_sums[0];
}

float norm_factor(uint w) {
  precise float sum = 0.0;
  for (uint b = gl_LocalInvocationID.x; b < square_blocks; b += LANES) sum = sum + in_squares[w * square_blocks + b];
  precise float mean = sum_of_lanes(vec4(sum)).x / float(cols);
  precise float shifted = mean + norm_eps;
  return inversesqrt(shifted);
}

void main() {
  uint w = gl_WorkGroupID.y, lane = gl_LocalInvocationID.x, first = gl_WorkGroupID.x * EXPERTS;
  uint place = activation_row(w, cols);
  vec4 sum = vec4(0.0);
  const uint step = 4u * LANES;
  for (uint begin = 4u * lane; begin < cols; begin += step * AHEAD) {
    vec4 x[AHEAD], r[AHEAD][EXPERTS];
    [[unroll]] for (uint s = 0u; s < AHEAD; ++s) {
      uint k = min(begin + s * step, (cols - 1u) & ~3u);
      x[s] = in_quads[(place + k) / 4u];
      [[unroll]] for (uint e = 0u; e < EXPERTS; ++e) r[s][e] = router_quad(min(first + e, experts - 1u), k);
    }
    [[unroll]] for (uint s = 0u; s < AHEAD; ++s) {
      uint k = begin + s * step;
      if (k >= cols) break;
      [[unroll]] for (uint i = 0u; i < 4u; ++i) x[s][i] = k + i < cols ? x[s][i] : 0.0;
      [[unroll]] for (uint e = 0u; e < EXPERTS; ++e) {
        [[unroll]] for (uint i = 0u; i < 4u; ++i) sum[e] = fma(r[s][e][i], x[s][i], sum[e]);
      }
    }
  }
  sum = sum_of_lanes(sum);
  float factor = 1.0;
  if (norm_eps > 0.0) factor = norm_factor(w);
  if (lane < EXPERTS && first + lane < experts) {
    precise float logit = sum[lane] * factor;
    if (has_bias != 0u) logit = logit + bias[first + lane];
    logits[w * experts + first + lane] = logit;
  }
}
