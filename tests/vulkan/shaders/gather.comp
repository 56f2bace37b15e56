#version 450
// variants: words STRIDE=1; pairs STRIDE=2
// out[i] = in[i * STRIDE] + 1.
layout(local_size_x = 32) in;

layout(set = 0, binding = 0) readonly buffer In { uint in_[]; };
layout(set = 0, binding = 4) buffer Out { uint out_[]; };

layout(push_constant) uniform Push {
  uint count;
};

void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i < count) out_[i] = in_[i * STRIDE] + 1u;
}
