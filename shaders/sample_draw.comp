#version 450
#extension GL_GOOGLE_include_directive : require
// drawn[row, block] = value and id of the block's largest log p + G, or of the best token of the row where no token of the
// block has more: that token's value is a mark that few others can reach, and the leading bit of their random number is
// enough to see that. Neighbouring tokens share a block of random words.
#include "sample.glsl"

layout(set = 0, binding = 0) readonly buffer Logits { uint logits[]; };  // [rows, vocab]
layout(set = 0, binding = 1) readonly buffer Best { uvec2 best[]; };      // [rows, blocks]
layout(set = 0, binding = 2) readonly buffer Settings { SamplingWords settings; };
layout(set = 0, binding = 3) readonly buffer Rows { SampledRow rows[]; };
layout(set = 0, binding = 4) writeonly buffer Drawn { uvec2 drawn[]; };  // [rows, blocks]

#include "sample_noise.glsl"

void main() {
  uint row = gl_WorkGroupID.y;
  uint block = gl_WorkGroupID.x;
  uvec2 top = best_of_row(row);
  if (!is_number(top.x)) return;
  float highest = logit_of(top.x);
  uint position = position_of(first_row + row);
  uvec2 own = mark_of(top.y, position);
  uint end = min((block + 1u) * BLOCK, vocab);
  for (uint pair = block * BLOCK / 2u + gl_LocalInvocationID.x; 2u * pair < end; pair += LANES) {
    uint even = key_of(logits[row * vocab + 2u * pair]);
    uint odd = 2u * pair + 1u < end ? key_of(logits[row * vocab + 2u * pair + 1u]) : KEY_BANNED;
    uvec2 far = uvec2(distance_of(highest, even), distance_of(highest, odd));
    if (!can_win(min(far.x, far.y), 1u, own)) continue;
    uvec4 words = random_words(pair, position);
    own = with_candidate(own, 2u * pair, far.x, words.xy);
    own = with_candidate(own, 2u * pair + 1u, far.y, words.zw);
  }
  own = best_of_group(own);
  if (gl_LocalInvocationID.x == 0u) drawn[row * blocks + block] = own;
}
