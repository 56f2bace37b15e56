#version 450
#extension GL_EXT_control_flow_attributes : require
// variants: storage TEXEL=0; texel TEXEL=1
// Memory reads as fast as they go: every invocation adds up UNITS units of 16 bytes; neighbours read neighbouring units.
// One workgroup covers UNITS * 256 units.
layout(local_size_x = 256) in;

layout(constant_id = 0) const uint UNITS = 16;

#if TEXEL
layout(set = 0, binding = 0) uniform usamplerBuffer units;
uvec4 fetch(uint i) { return texelFetch(units, int(i)); }
#else
layout(set = 0, binding = 0) readonly buffer Units { uvec4 units[]; };
uvec4 fetch(uint i) { return units[i]; }
#endif
layout(set = 0, binding = 1) writeonly buffer Out { uvec4 result; };

layout(push_constant) uniform Push { uint never; };

void main() {
  uint first = gl_WorkGroupID.x * (UNITS * gl_WorkGroupSize.x) + gl_LocalInvocationID.x;
  uvec4 sum = uvec4(0u);
  [[unroll]] for (uint j = 0u; j < UNITS; ++j) sum += fetch(first + j * gl_WorkGroupSize.x);
  if (sum.x == never && sum.y == never && sum.z == never && sum.w == never) result = sum;  // so that no read is dead
}
