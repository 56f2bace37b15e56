#version 450
#extension GL_GOOGLE_include_directive : require
// variants: best RANDOM=0; drawn RANDOM=1
// tokens[first_row + row] = the id of the row's best pair, or NO_TOKEN where a logit is broken or all are banned.
#include "sample.glsl"

layout(set = 0, binding = 0) readonly buffer Best { uvec2 best[]; };         // [rows, blocks]
layout(set = 0, binding = 1) writeonly buffer Tokens { uint tokens[]; };
#if RANDOM
layout(set = 0, binding = 2) readonly buffer Drawn { uvec2 drawn[]; };  // [rows, blocks]
#endif

void main() {
  uint row = gl_WorkGroupID.x;
  uvec2 top = uvec2(KEY_NONE, NO_TOKEN);
  for (uint i = gl_LocalInvocationID.x; i < blocks; i += LANES) top = better_of(top, best[row * blocks + i]);
  top = best_of_group(top);
  bool is_known = is_number(top.x);
#if RANDOM
  uvec2 own = uvec2(0u, NO_TOKEN);
  if (is_known) {
    for (uint i = gl_LocalInvocationID.x; i < blocks; i += LANES) own = better_of(own, drawn[row * blocks + i]);
  }
  top = best_of_group(own);
#endif
  if (gl_LocalInvocationID.x == 0u) tokens[first_row + row] = is_known ? top.y : NO_TOKEN;
}
