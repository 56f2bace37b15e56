#version 450
#extension GL_GOOGLE_include_directive : require
// variants: plain FILTERED=0; filtered FILTERED=1
// best[row, block] = key and id of the block's largest logit; ties go to the lowest id, a broken logit wins over all.
// Rows after which nothing is drawn are as good as broken. FILTERED also clears the row's state.
#include "sample.glsl"

layout(set = 0, binding = 0) readonly buffer Logits { uint logits[]; };  // [rows, vocab]
layout(set = 0, binding = 1) writeonly buffer Best { uvec2 best[]; };     // [rows, blocks]
layout(set = 0, binding = 2) readonly buffer Rows { SampledRow rows[]; };
#if FILTERED
layout(set = 0, binding = 3) writeonly buffer State { uint state[]; };  // [rows, STATE_WORDS]
#endif

void main() {
  uint row = gl_WorkGroupID.y;
  uint block = gl_WorkGroupID.x;
  bool is_wanted = rows[first_row + row].token != NO_TOKEN;
  uint end = is_wanted ? min((block + 1u) * BLOCK, vocab) : 0u;
  uvec2 own = uvec2(is_wanted ? KEY_NONE : KEY_BROKEN, NO_TOKEN);
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
