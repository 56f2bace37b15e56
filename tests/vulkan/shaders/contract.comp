#version 450
#extension GL_EXT_control_flow_attributes : require
// inexact: what the ISA gate must catch
// out[c] = w x + b[c]. Without `precise` the compiler fuses the multiply into the add where the product serves nothing
// else. With more than one column the product is also stored, so there it is rounded first.
layout(constant_id = 0) const uint N = 1;
layout(local_size_x = 64) in;

layout(set = 0, binding = 0) readonly buffer In { float in_[]; };
layout(set = 0, binding = 1) writeonly buffer Out { float out_[]; };

void main() {
  uint i = gl_GlobalInvocationID.x;
  float product = in_[2u * i] * in_[2u * i + 1u];
  [[unroll]] for (uint c = 0u; c < N; ++c) out_[c * 64u + i] = product + in_[1000u + c * 64u + i];
  if (N > 1u) out_[N * 64u + i] = product;
}
