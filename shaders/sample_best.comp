#version 450
#extension GL_GOOGLE_include_directive : require
// variants: plain FILTERED=0; filtered FILTERED=1
// best[row, block] = key and id of the block's largest logit; ties go to the lowest id, a broken logit wins over all.
// FILTERED also clears the row's state.
#include "sample.glsl"

layout(set = 0, binding = 0) readonly buffer Logits { uint logits[]; };  // [rows, vocab]
layout(set = 0, binding = 1) writeonly buffer Best { uvec2 best[]; };     // [rows, blocks]
#if FILTERED
layout(set = 0, binding = 2) writeonly buffer State { uint state[]; };  // [rows, STATE_WORDS]
#endif

void main() {
  uint row = gl_WorkGroupID.y;
  uint block = gl_WorkGroupID.x;
  uint end = min((block + 1u) * BLOCK, vocab);
  uvec2 own = uvec2(KEY_NONE, NO_TOKEN);
  for (uint id = block * BLOCK + gl_LocalInvocationID.x; id < end; id += LANES) {
    own = better_of(own, uvec2(key_of(logits[row * vocab + id]), id));
  }
#if FILTERED
  for (uint i = block * LANES + gl_LocalInvocationID.x; i < STATE_WORDS; i += blocks * LANES) {
    state[row * STATE_WORDS + i] = 0u;
  }
#endif
  own = best_of_group(own);
  if (gl_LocalInvocationID.x == 0u) best[row * blocks + block] = own;
}
