#version 450
// x[w, c] += bias[c]. One invocation per element.
layout(local_size_x = 64) in;

layout(set = 0, binding = 0) readonly buffer Bias { float bias[]; };  // [cols]
layout(set = 0, binding = 1) buffer X { float x[]; };                 // [width, cols]

layout(push_constant) uniform Push { uint cols; };

void main() {
  uint c = gl_GlobalInvocationID.x;
  if (c >= cols) return;
  uint i = gl_WorkGroupID.y * cols + c;
  precise float sum = x[i] + bias[c];
  x[i] = sum;
}
