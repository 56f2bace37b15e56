#version 450
#extension GL_GOOGLE_include_directive : require
// x[w, c] *= 1 / (1 + exp(-gate[w, c])). One invocation per element. Grid: (cols / 64, width).
#include "activations.glsl"
#include "exponentials.glsl"

layout(local_size_x = 64) in;

layout(set = 0, binding = 0) readonly buffer Gate { float gate[]; };  // [width, cols]
layout(set = 0, binding = 1) buffer X { float x_activations[]; };     // activations [width, cols]

layout(push_constant) uniform Push {
  uint cols;
};

void main() {
  uint c = gl_GlobalInvocationID.x, w = gl_WorkGroupID.y;
  if (c >= cols) return;
  uint at = activation_row(w, cols) + c;
  precise float y = x_activations[at] * sigmoid(gate[w * cols + c]);
  x_activations[at] = y;
}
