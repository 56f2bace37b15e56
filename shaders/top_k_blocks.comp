#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// variants: quads QUAD_LOADS=1; words QUAD_LOADS=0
// blocks[row, b] = winner of block b (key, id) and the block's sum of exp(logit - winner).
// One workgroup per GROUP blocks of a row.
#include "top_k.glsl"

layout(local_size_x = 64) in;

layout(set = 0, binding = 1) writeonly buffer Blocks { uvec4 blocks[]; };  // [rows, groups * GROUP]: key, id, sum, 0

layout(push_constant) uniform Push { uint vocab; };

void main() {
  uint row = gl_WorkGroupID.y;
  uint block = gl_WorkGroupID.x * GROUP + gl_LocalInvocationID.x;
  uvec4 keys[VECS];
  uint best = KEY_NONE;
  uint best_id = 0u;
  [[unroll]] for (uint j = 0u; j < VECS; ++j) {
    uint quad = block_quad(block, j);
    keys[j] = quad_keys(load_quad(row, quad, vocab), quad, vocab);
    [[unroll]] for (uint e = 0u; e < 4u; ++e) {
      if (keys[j][e] > best) {  // ids ascend, so the first of equals stays
        best = keys[j][e];
        best_id = 4u * quad + e;
      }
    }
  }
  // Relative to an infinite winner every term would be NaN. With 0 instead, -inf gives a sum of 0 and +inf is settled by
  // step 2.
  float winner = logit_of(best);
  float base = isinf(winner) ? 0.0 : winner;
  precise float sum = 0.0;
  [[unroll]] for (uint j = 0u; j < VECS; ++j) {
    [[unroll]] for (uint e = 0u; e < 4u; ++e) {
      precise float below = logit_of(keys[j][e]) - base;
      sum = sum + exp(below);
    }
  }
  blocks[(row * gl_NumWorkGroups.x + gl_WorkGroupID.x) * GROUP + gl_LocalInvocationID.x] =
      uvec4(best, best_id, floatBitsToUint(sum), 0u);
}
