#version 450
#extension GL_GOOGLE_include_directive : require
// activations[w, c] = gelu(scale * gate[w, c]) * inputs[w, offset + c], gelu(g) = g / (1 + exp(-2 sqrt(2 / pi) (g + 0.044715
// g^3))). One invocation per element. Grid: (cols / 64, width).
#include "activations.glsl"
#include "exponentials.glsl"

layout(local_size_x = 64) in;

layout(set = 0, binding = 0) readonly buffer Gate { float gate[]; };      // [width, cols]
layout(set = 0, binding = 1) readonly buffer Inputs { float inputs[]; };  // [width, stride]
layout(set = 0, binding = 2) writeonly buffer OutActivations { float out_activations[]; };  // activations [width, cols]

layout(push_constant) uniform Push {
  uint cols;
  uint stride;
  uint offset;
  float scale;
};

void main() {
  uint c = gl_GlobalInvocationID.x, w = gl_WorkGroupID.y;
  if (c >= cols) return;
  precise float g = scale * gate[w * cols + c];
  precise float square = g * g;
  precise float part = 0.044715 * square;
  precise float steep = 1.59576912 * fma(part, g, g);
  precise float opened = g * sigmoid(steep);
  precise float y = opened * inputs[w * stride + offset + c];
  out_activations[activation_row(w, cols) + c] = y;
}
