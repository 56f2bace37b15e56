#version 450
#extension GL_GOOGLE_include_directive : require
// activations[w, c] = max(in[w, c], 0)^2. One invocation per element. Grid: (cols / 64, width).
#include "activations.glsl"

layout(local_size_x = 64) in;

layout(set = 0, binding = 0) readonly buffer In { float in_[]; };  // [width, cols]
layout(set = 0, binding = 1) writeonly buffer OutActivations { float out_activations[]; };  // activations [width, cols]

layout(push_constant) uniform Push {
  uint cols;
};

void main() {
  uint c = gl_GlobalInvocationID.x, w = gl_WorkGroupID.y;
  if (c >= cols) return;
  float x = in_[w * cols + c];
  precise float y = x * x;
  out_activations[activation_row(w, cols) + c] = x <= 0.0 ? 0.0 : y;
}
