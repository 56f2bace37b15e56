#version 450
// Keeps the device busy for `turns` times 64 dependent steps. Software devices end an invocation's loops, all together,
// after 65,535 turns (llvmpipe's limiter), hence the unrolled steps; more workgroups keep it busy for longer.
#extension GL_EXT_control_flow_attributes : require
layout(local_size_x = 1) in;

layout(set = 0, binding = 0) buffer Out { uint out_[]; };

layout(push_constant) uniform Push {
  uint turns;
};

void main() {
  uint x = out_[0] + gl_WorkGroupID.x;
  for (uint i = 0u; i < turns; ++i) {
    [[unroll]] for (uint step = 0u; step < 64u; ++step) x = x * 1664525u + 1013904223u;
  }
  if (gl_WorkGroupID.x == 0u) out_[0] = x;
}
