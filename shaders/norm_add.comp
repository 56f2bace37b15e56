#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// variants: quads QUADS=1; words QUADS=0
// x = x_scale * (x + in / sqrt(mean of squares of in + eps) * weight); activations = x * norm_weight, with the sum of
// squares of x; aux[w, aux_offset + c] = aux_scale * x. One workgroup per row, along x and then y. Sums: quad q of the row goes to lane q mod LANES, lanes
// are added in groups of GROUP in order, groups in order.
#include "activations.glsl"

layout(local_size_x = 128) in;

layout(set = 0, binding = 0) writeonly buffer Squares { float squares[]; };        // [width, square_blocks]
#if QUADS
layout(set = 0, binding = 1) readonly buffer In { vec4 in4[]; };                   // [width, cols], cols a multiple of 4
layout(set = 0, binding = 2) readonly buffer Weight { vec4 weight4[]; };           // [cols]
layout(set = 0, binding = 3) buffer X { vec4 x4[]; };                              // [width, cols]
layout(set = 0, binding = 4) readonly buffer NormWeight { vec4 norm_weight4[]; };  // [cols]
layout(set = 0, binding = 5) writeonly buffer OutActivations { vec4 out_activations4[]; };  // activations [width, cols]
layout(set = 0, binding = 6) writeonly buffer Aux { vec4 aux4[]; };  // [width, aux_stride], multiples of 4
#else
layout(set = 0, binding = 1) readonly buffer In { float in_[]; };
layout(set = 0, binding = 2) readonly buffer Weight { float weight[]; };
layout(set = 0, binding = 3) buffer X { float x_[]; };
layout(set = 0, binding = 4) readonly buffer NormWeight { float norm_weight[]; };
layout(set = 0, binding = 5) writeonly buffer OutActivations { float out_activations[]; };
layout(set = 0, binding = 6) writeonly buffer Aux { float aux[]; };
#endif

layout(push_constant) uniform Push {
  uint cols;
  uint square_blocks;  // of a row; the whole sum goes to the first, the others get 0
  float eps;
  uint aux_stride;  // 0: no aux
  uint aux_offset;
  float aux_scale;
  float x_scale;
  uint width;
};

const uint LANES = 128u, GROUP = 16u;
shared float lane_sums[LANES];
shared float group_sums[LANES / GROUP];

vec4 input_quad(uint w, uint k) {
#if QUADS
  return in4[(w * cols + k) / 4u];
#else
  vec4 y = vec4(0.0);
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    if (k + i < cols) y[i] = in_[w * cols + k + i];
  }
  return y;
#endif
}

float with_squares(float sum, vec4 y) {
  precise float square = 0.0;
  [[unroll]] for (uint i = 0u; i < 4u; ++i) square = fma(y[i], y[i], square);
  precise float more = sum + square;
  return more;
}

// The sum over all lanes.
float whole_sum(float own) {
  uint lane = gl_LocalInvocationID.x;
  lane_sums[lane] = own;
  barrier();
  if (lane < LANES / GROUP) {
    precise float sum = 0.0;
    for (uint l = 0u; l < GROUP; ++l) sum = sum + lane_sums[lane * GROUP + l];
    group_sums[lane] = sum;
  }
  barrier();
  precise float all = 0.0;
  for (uint g = 0u; g < LANES / GROUP; ++g) all = all + group_sums[g];
  return all;
}

// x of elements k ... k + 3 of row w, as far as there are any; 0 beyond.
vec4 add_quad(uint w, uint place, uint k, float factor) {
  vec4 y = input_quad(w, k), all = vec4(0.0);
#if QUADS
  precise vec4 sum = fma(y * factor, weight4[k / 4u], x4[(w * cols + k) / 4u]);
  precise vec4 x = sum * x_scale;
  x4[(w * cols + k) / 4u] = x;
  precise vec4 normed = x * norm_weight4[k / 4u];
  out_activations4[(place + k) / 4u] = normed;
  if (aux_stride != 0u) {
    precise vec4 scaled = x * aux_scale;
    aux4[(w * aux_stride + aux_offset + k) / 4u] = scaled;
  }
  all = x;
#else
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    if (k + i < cols) {
      precise float scaled = y[i] * factor;
      precise float sum = fma(scaled, weight[k + i], x_[w * cols + k + i]);
      precise float x = sum * x_scale;
      x_[w * cols + k + i] = x;
      precise float normed = x * norm_weight[k + i];
      out_activations[place + k + i] = normed;
      precise float out_ = x * aux_scale;
      if (aux_stride != 0u) aux[w * aux_stride + aux_offset + k + i] = out_;
      all[i] = x;
    }
  }
#endif
  return all;
}

void main() {
  uint w = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  if (w >= width) return;
  uint lane = gl_LocalInvocationID.x;
  uint place = activation_row(w, cols);
  float sum = 0.0;
  for (uint k = 4u * lane; k < cols; k += 4u * LANES) sum = with_squares(sum, input_quad(w, k));
  precise float mean = whole_sum(sum) / float(cols) + eps;
  precise float factor = 1.0 / sqrt(mean);
  sum = 0.0;
  for (uint k = 4u * lane; k < cols; k += 4u * LANES) sum = with_squares(sum, add_quad(w, place, k, factor));
  barrier();  // the sums of the first have been read
  float all = whole_sum(sum);
  if (lane == 0u) squares[w * square_blocks] = all;
  for (uint b = lane + 1u; b < square_blocks; b += LANES) squares[w * square_blocks + b] = 0.0;
}
