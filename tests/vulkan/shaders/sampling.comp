#version 450
#extension GL_GOOGLE_include_directive : require
// Each function of shaders/sampling.glsl on its own.
// out[i] = function FUNCTION of the words in[i]
#include "sampling.glsl"
layout(constant_id = 0) const uint FUNCTION = 0;
layout(local_size_x = 64) in;

layout(set = 0, binding = 0) readonly buffer In { uvec4 in_[]; };
layout(set = 0, binding = 1) writeonly buffer Out { uvec4 out_[]; };
layout(set = 0, binding = 2) readonly buffer Settings { SamplingWords settings; };

layout(push_constant) uniform Push { uint count; };

void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i >= count) return;
  uvec4 x = in_[i];
  uvec4 y = uvec4(0u);
  if (FUNCTION == 0u) {
    uvec2 u = uniform_of(x.x, x.y);
    y = uvec4(u, uint(gumbel_noise(u)), uint(noise_at_most(bit_count(u))));
  } else if (FUNCTION == 1u) {
    uint far = distance_between(uintBitsToFloat(x.x), uintBitsToFloat(x.y), uintBitsToFloat(x.z));
    y = uvec4(far, weight_at(far), weight_at(x.w & 0x3FFFFFFFu), settled(x.x));
  } else if (FUNCTION == 2u) {
    y.x = adjusted_logit(x.x, uintBitsToFloat(x.y), x.z, settings);
  } else {
    y = philox(x, uvec2(settings.seed[0], settings.seed[1]));
  }
  out_[i] = y;
}
