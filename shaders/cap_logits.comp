#version 450
#extension GL_GOOGLE_include_directive : require
// logits[w, t] = cap * tanh(logits[w, t] / cap). One invocation per element; a NaN stays one.
#include "exponentials.glsl"

layout(local_size_x = 64) in;

layout(set = 0, binding = 0) buffer Logits { float logits[]; };  // [width, vocab]

layout(push_constant) uniform Push {
  uint vocab;
  float cap;
};

void main() {
  uint t = gl_GlobalInvocationID.x;
  if (t >= vocab) return;
  uint i = gl_WorkGroupID.y * vocab + t;
  float x = logits[i];
  if ((floatBitsToUint(x) & 0x7FFFFFFFu) > 0x7F800000u) return;
  precise float inner = x / cap;
  precise float y = cap * tanh_of(inner);
  logits[i] = y;
}
