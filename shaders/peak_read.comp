#version 450
#extension GL_EXT_control_flow_attributes : require
// Memory reads as fast as they go: every invocation adds up UNITS units of 16 bytes; neighbours read neighbouring units.
// One workgroup covers UNITS * 256 units.
layout(local_size_x = 256) in;

layout(constant_id = 0) const uint UNITS = 16;

layout(set = 0, binding = 0) readonly buffer Units { uvec4 units[]; };
layout(set = 0, binding = 1) writeonly buffer Out { uvec4 result; };

layout(push_constant) uniform Push { uint never; };

void main() {
  uint first = gl_WorkGroupID.x * (UNITS * gl_WorkGroupSize.x) + gl_LocalInvocationID.x;
  uvec4 sum = uvec4(0u);
  [[unroll]] for (uint j = 0u; j < UNITS; ++j) sum += units[first + j * gl_WorkGroupSize.x];
  if (sum.x == never && sum.y == never && sum.z == never && sum.w == never) result = sum;  // so that no read is dead
}
