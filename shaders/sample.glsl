// What the kernels of the op `sample` share. The vocabulary is cut into blocks of BLOCK tokens, a workgroup for each block
// of each row; what they leave is merged by whoever reads it. Everything that is merged is a maximum or a sum of integers,
// so no order matters.
//
//   sample_adjust   logits of tokens with a bias or a penalty, in place
//   sample_best     each block's largest logit
//   sample_draw     each block's largest log p + G                            (without top-k and top-p)
//   sample_final    the row's token
//   sample_count    how many logits of what weight lie how far below the best (with top-k or top-p, from here on)
//   sample_edge     how far below the best a token can lie and still be kept
//   sample_gather   a list of all tokens that near
//   sample_select   which of them are kept, and the row's token
#extension GL_KHR_memory_scope_semantics : require
#include "sampling.glsl"

layout(constant_id = 0) const uint LANES = 128;  // a power of two
layout(local_size_x_id = 0) in;

const uint BLOCK = 1024u;

layout(push_constant) uniform Push {
  uint vocab;
  uint blocks;  // of a row
  uint first_row;  // place of the first row of logits in the lists of rows and of tokens
  uint most_adjustments;
};

// What the kernels of the filters keep of a row.
const uint BUCKETS = 1024u;
const uint COUNTS = 0u;                // of tokens in each bucket
const uint LOWS = BUCKETS;             // sums of their weights: the lower 20 bits of each block's
const uint HIGHS = 2u * BUCKETS;       // the upper ones
const uint LISTED = 3u * BUCKETS;      // tokens that should be in the list
const uint EDGE = LISTED + 1u;         // the last bucket whose tokens are
const uint WANTED = LISTED + 2u;       // the weight that top-p wants, two words
const uint STATE_WORDS = 49u * 64u;
const uint LIST_TOKENS = 4096u;        // those that the list has room for; where there are more, all logits are looked at

#define BUFFER_BARRIER()                                                                                       \
  controlBarrier(gl_ScopeWorkgroup, gl_ScopeDevice, gl_StorageSemanticsBuffer | gl_StorageSemanticsShared, \
                 gl_SemanticsAcquireRelease)

// Integers in the order of the logits.
const uint KEY_NONE = 0u;
const uint KEY_BANNED = 0x007FFFFFu;  // -inf
const uint KEY_BROKEN = 0xFF800000u;  // +inf and NaN

uint key_of(uint bits) {
  if (!is_finite(bits)) return bits == MINUS_INFINITY ? KEY_BANNED : KEY_BROKEN;
  bits = settled(bits);
  return (bits & 0x80000000u) != 0u ? ~bits : bits | 0x80000000u;
}

float logit_of(uint key) { return uintBitsToFloat((key & 0x80000000u) != 0u ? key & 0x7FFFFFFFu : ~key); }

bool is_number(uint key) { return key > KEY_BANNED && key < KEY_BROKEN; }

// Finer near the best: 64 buckets for each doubling of the distance from 2^-6 to 2^10.
uint bucket_of(float best, float logit) {
  precise float below = best - logit;
  uint bucket = floatBitsToUint(below) >> 17;
  return min(max(bucket, 7744u) - 7744u, BUCKETS - 1u);
}

shared uvec2 lane_best[LANES];

// Of pairs (what counts, id): the larger, of equal ones that of the lower id.
uvec2 better_of(uvec2 a, uvec2 b) { return b.x > a.x || (b.x == a.x && b.y < a.y) ? b : a; }

// The best of all invocations' pairs.
uvec2 best_of_group(uvec2 own) {
  uint lane = gl_LocalInvocationID.x;
  lane_best[lane] = own;
  barrier();
  for (uint step = LANES / 2u; step > 0u; step /= 2u) {
    if (lane < step) lane_best[lane] = better_of(lane_best[lane], lane_best[lane + step]);
    barrier();
  }
  uvec2 best = lane_best[0];
  barrier();
  return best;
}

// Values of log p + G as integers that pairs can have, and a value's own bits again.
uint ordered(int value) { return uint(value) ^ 0x80000000u; }
int unordered(uint value) { return int(value ^ 0x80000000u); }

#ifdef RUNNING_SUMS
// Sums of weights in 64 bits, as uvec2(low, high), and running sums over a workgroup.

uvec2 sum64(uvec2 a, uvec2 b) {
  uint carry;
  uint low = uaddCarry(a.x, b.x, carry);
  return uvec2(low, a.y + b.y + carry);
}
bool is_less(uvec2 a, uvec2 b) { return a.y < b.y || (a.y == b.y && a.x < b.x); }

// ceil(total * share / 2^32); total below 2^52.
uvec2 share_of(uvec2 total, uint share) {
  uint high0, low0, high1, low1;
  umulExtended(total.x, share, high0, low0);
  umulExtended(total.y, share, high1, low1);
  return sum64(uvec2(low1, high1), uvec2(high0 + (low0 != 0u ? 1u : 0u), 0u));
}

// uvec3(count, weight's low and high word)
shared uvec3 lane_sums[LANES];

uvec3 sum_of(uvec3 a, uvec3 b) { return uvec3(a.x + b.x, sum64(a.yz, b.yz)); }

// What the invocations before this one have together; `all` is the sum of all.
uvec3 sum_before(uvec3 own, out uvec3 all) {
  uint lane = gl_LocalInvocationID.x;
  uvec3 running = own;
  lane_sums[lane] = own;
  barrier();
  for (uint step = 1u; step < LANES; step *= 2u) {
    uvec3 other = lane >= step ? lane_sums[lane - step] : uvec3(0u);
    barrier();
    running = sum_of(running, other);
    lane_sums[lane] = running;
    barrier();
  }
  all = lane_sums[LANES - 1u];
  uvec3 before = lane == 0u ? uvec3(0u) : lane_sums[lane - 1u];
  barrier();
  return before;
}
#endif
