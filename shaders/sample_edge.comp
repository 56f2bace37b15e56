#version 450
#extension GL_GOOGLE_include_directive : require
// state[row].edge = the bucket in which the count reaches top-k or, without top-k, the weight reaches top-p's share of all.
#define RUNNING_SUMS
#include "sample.glsl"

layout(set = 0, binding = 0) readonly buffer Settings { SamplingWords settings; };
layout(set = 0, binding = 1) buffer State { uint state[]; };  // [rows, STATE_WORDS]

shared uint edge;

// Count and weight of the tokens of a bucket.
uvec3 bucket(uint at, uint i) {
  uint high = state[at + HIGHS + i];
  return uvec3(state[at + COUNTS + i], sum64(uvec2(high << 20, high >> 12), uvec2(state[at + LOWS + i], 0u)));
}

void main() {
  uint lane = gl_LocalInvocationID.x;
  uint at = gl_WorkGroupID.x * STATE_WORDS;
  const uint each = BUCKETS / LANES;
  uvec3 own = uvec3(0u);
  for (uint i = 0u; i < each; ++i) own = sum_of(own, bucket(at, lane * each + i));
  if (lane == 0u) edge = BUCKETS - 1u;
  uvec3 all;
  uvec3 sum = sum_before(own, all);
  uvec2 wanted = share_of(all.yz, settings.top_p);
  for (uint i = lane * each; i < (lane + 1u) * each; ++i) {
    uvec3 next = sum_of(sum, bucket(at, i));
    bool reaches = settings.top_k != 0u ? sum.x < settings.top_k && next.x >= settings.top_k
                                        : is_less(sum.yz, wanted) && !is_less(next.yz, wanted);
    if (reaches) edge = i;  // in one bucket at most
    sum = next;
  }
  barrier();
  if (lane == 0u) {
    state[at + EDGE] = edge;
    state[at + WANTED] = wanted.x;
    state[at + WANTED + 1u] = wanted.y;
  }
}
