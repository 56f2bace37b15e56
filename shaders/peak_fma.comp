#version 450
#extension GL_EXT_control_flow_attributes : require
// Multiply-adds as fast as they go: CHAINS independent ones per invocation, STEPS of them unrolled, `loops` times.
// a = a m + c with m and c that the compiler cannot know.
layout(local_size_x = 256) in;

layout(constant_id = 0) const uint CHAINS = 16;
layout(constant_id = 1) const uint STEPS = 4;

layout(set = 0, binding = 0) uniform Numbers { float m; float c; float never; };
layout(set = 0, binding = 1) writeonly buffer Out { float result; };

layout(push_constant) uniform Push { uint loops; };

void main() {
  float a[CHAINS];
  [[unroll]] for (uint i = 0u; i < CHAINS; ++i) a[i] = float(gl_GlobalInvocationID.x + i);
  for (uint l = 0u; l < loops; ++l) {
    [[unroll]] for (uint s = 0u; s < STEPS; ++s) {
      [[unroll]] for (uint i = 0u; i < CHAINS; ++i) a[i] = fma(a[i], m, c);
    }
  }
  precise float all = 0.0;
  [[unroll]] for (uint i = 0u; i < CHAINS; ++i) all = all + a[i];
  if (all == never) result = all;  // so that nothing above is dead
}
