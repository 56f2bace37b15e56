#version 450
// x[w, c] += sum over taps j <= w, in order, of (base[side, j, c] + kernel[w, side, j, c / group]) * in[w - j, c]. One
// invocation per element.
layout(local_size_x = 64) in;

layout(set = 0, binding = 0) readonly buffer In { float in_[]; };          // [width, cols]
layout(set = 0, binding = 1) readonly buffer Base { float base[]; };       // [2, taps, cols]
layout(set = 0, binding = 2) readonly buffer Kernels { float kernels[]; };  // [width, 2, taps, cols / group]
layout(set = 0, binding = 3) buffer X { float x[]; };                      // [width, cols]

layout(push_constant) uniform Push {
  uint cols;
  uint taps;
  uint group;
  uint side;
};

void main() {
  uint c = gl_GlobalInvocationID.x, w = gl_WorkGroupID.y;
  if (c >= cols) return;
  uint groups = cols / group;
  float sum = x[w * cols + c];
  for (uint j = 0u; j < taps && j <= w; ++j) {
    precise float factor = base[(side * taps + j) * cols + c] + kernels[((w * 2u + side) * taps + j) * groups + c / group];
    sum = fma(factor, in_[(w - j) * cols + c], sum);
  }
  x[w * cols + c] = sum;
}
