#version 450
#extension GL_GOOGLE_include_directive : require
// state[row] += how many tokens of a block lie in each bucket of distance from the best and, where top-p needs them, the
// sums of their weights.
#include "sample.glsl"

layout(set = 0, binding = 0) readonly buffer Logits { uint logits[]; };  // [rows, vocab]
layout(set = 0, binding = 1) readonly buffer Best { uvec2 best[]; };      // [rows, blocks]
layout(set = 0, binding = 2) readonly buffer Settings { SamplingWords settings; };
layout(set = 0, binding = 3) coherent buffer State { uint state[]; };  // [rows, STATE_WORDS]

shared uint counts[BUCKETS];
shared uint lows[BUCKETS];   // sums of the lower 16 bits of weights
shared uint highs[BUCKETS];  // of the upper ones

void main() {
  uint row = gl_WorkGroupID.y;
  uint lane = gl_LocalInvocationID.x;
  for (uint i = lane; i < BUCKETS; i += LANES) {
    counts[i] = 0u;
    lows[i] = 0u;
    highs[i] = 0u;
  }
  uvec2 own = uvec2(KEY_NONE, NO_TOKEN);
  for (uint i = lane; i < blocks; i += LANES) own = better_of(own, best[row * blocks + i]);
  uvec2 top = best_of_group(own);
  if (!is_number(top.x)) return;  // nothing is drawn; the row's state stays 0
  float highest = logit_of(top.x);
  bool weighs = settings.top_k == 0u;
  uint end = min((gl_WorkGroupID.x + 1u) * BLOCK, vocab);
  for (uint id = gl_WorkGroupID.x * BLOCK + lane; id < end; id += LANES) {
    uint key = key_of(logits[row * vocab + id]);
    if (!is_number(key)) continue;
    float logit = logit_of(key);
    uint bucket = bucket_of(highest, logit);
    atomicAdd(counts[bucket], 1u);
    if (!weighs) continue;
    uint weight = weight_at(distance_between(highest, logit, settings.inverse_temperature));
    if (weight == 0u) continue;
    atomicAdd(lows[bucket], weight & 0xFFFFu);
    atomicAdd(highs[bucket], weight >> 16);
  }
  BUFFER_BARRIER();
  uint to = row * STATE_WORDS;
  for (uint i = lane; i < BUCKETS; i += LANES) {
    if (counts[i] == 0u) continue;
    atomicAdd(state[to + COUNTS + i], counts[i]);
    // highs * 2^16 + lows, cut behind 20 bits, so that the sums over all blocks fit.
    uint low = lows[i] + ((highs[i] & 15u) << 16);
    uint high = (highs[i] >> 4) + (low >> 20);
    if (low != 0u) atomicAdd(state[to + LOWS + i], low & 0xFFFFFu);
    if (high != 0u) atomicAdd(state[to + HIGHS + i], high);
  }
  BUFFER_BARRIER();
}
