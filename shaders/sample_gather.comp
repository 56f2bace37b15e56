#version 450
#extension GL_GOOGLE_include_directive : require
// list[row] = key and id of the tokens up to the edge, in any order, as far as there is room; state[row].listed = how many
// there are.
#include "sample.glsl"

layout(set = 0, binding = 0) readonly buffer Logits { uint logits[]; };  // [rows, vocab]
layout(set = 0, binding = 1) readonly buffer Best { uvec2 best[]; };      // [rows, blocks]
layout(set = 0, binding = 2) coherent buffer State { uint state[]; };    // [rows, STATE_WORDS]
layout(set = 0, binding = 3) writeonly buffer List { uvec2 list[]; };    // [rows, LIST_TOKENS]

shared uint found;
shared uint first;

void main() {
  uint row = gl_WorkGroupID.y;
  uint lane = gl_LocalInvocationID.x;
  uvec2 top = uvec2(KEY_NONE, NO_TOKEN);
  for (uint i = lane; i < blocks; i += LANES) top = better_of(top, best[row * blocks + i]);
  if (lane == 0u) found = 0u;
  top = best_of_group(top);
  float highest = logit_of(top.x);
  uint edge = state[row * STATE_WORDS + EDGE];
  uint begin = gl_WorkGroupID.x * BLOCK + lane;
  uint end = is_number(top.x) ? min((gl_WorkGroupID.x + 1u) * BLOCK, vocab) : 0u;
  uint own = 0u;
  for (uint id = begin; id < end; id += LANES) {
    uint key = key_of(logits[row * vocab + id]);
    if (is_number(key) && bucket_of(highest, logit_of(key)) <= edge) ++own;
  }
  uint slot = own == 0u ? 0u : atomicAdd(found, own);
  BUFFER_BARRIER();
  if (lane == 0u && found != 0u) first = atomicAdd(state[row * STATE_WORDS + LISTED], found);
  BUFFER_BARRIER();
  if (own == 0u) return;
  slot += first;
  for (uint id = begin; id < end; id += LANES) {
    uint key = key_of(logits[row * vocab + id]);
    if (!is_number(key) || bucket_of(highest, logit_of(key)) > edge) continue;
    if (slot < LIST_TOKENS) list[row * LIST_TOKENS + slot] = uvec2(key, id);
    ++slot;
  }
}
