#version 450
#extension GL_GOOGLE_include_directive : require
// out[w, h] = in / sqrt(mean of squares + eps) * weight * silu(gate), for each head h; or with the gate within the norm, x
// = in * silu(gate), x / sqrt(mean of squares + eps) * weight[h]. One workgroup per (head, row).
#include "activations.glsl"
#include "exponentials.glsl"

layout(constant_id = 0) const uint GATE_WITHIN = 0;
layout(local_size_x = 32) in;

layout(set = 0, binding = 0) readonly buffer In { float in_[]; };          // [width, heads * head_dim]
layout(set = 0, binding = 1) readonly buffer Gate { float gate[]; };       // [width, heads * head_dim]
layout(set = 0, binding = 2) readonly buffer NormWeight { float norm_weight[]; };  // [head_dim]; GATE_WITHIN: [heads * head_dim]
layout(set = 0, binding = 3) writeonly buffer Out { float out_activations[]; };    // activations [width, heads * head_dim]

layout(push_constant) uniform Push {
  uint heads;
  uint head_dim;
  float eps;
};

const uint LANES = 32u;
shared float lane_sums[LANES];

void main() {
  uint head = gl_WorkGroupID.x, w = gl_WorkGroupID.y, lane = gl_LocalInvocationID.x;
  uint cols = heads * head_dim, first = head * head_dim;
  uint place = activation_row(w, cols);
  precise float squares = 0.0;
  for (uint d = lane; d < head_dim; d += LANES) {
    precise float x = in_[w * cols + first + d];
    if (GATE_WITHIN != 0u) x = x * silu(gate[w * cols + first + d]);
    squares = fma(x, x, squares);
  }
  lane_sums[lane] = squares;
  barrier();
  precise float all = 0.0;
  for (uint l = 0u; l < LANES; ++l) all = all + lane_sums[l];
  precise float mean = all / float(head_dim) + eps;
  precise float factor = 1.0 / sqrt(mean);
  for (uint d = lane; d < head_dim; d += LANES) {
    float open = silu(gate[w * cols + first + d]);
    precise float y = in_[w * cols + first + d];
    if (GATE_WITHIN != 0u) {
      y = y * open * factor * norm_weight[first + d];
    } else {
      y = y * factor * norm_weight[d] * open;
    }
    out_activations[place + first + d] = y;
  }
}
