#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// variants: quads QUAD_LOADS=1; words QUAD_LOADS=0
// ids, values [row, k] = the k largest logits; log_sum_exp[row] = log sum exp(logit). One workgroup per row.
//
// The k-th largest of the keys that the invocations hold in registers is found by bisecting the range of keys: count how
// many are at least the middle, keep the half. No sort, no shared memory but one counter, and the answer does not depend
// on the order in which invocations arrive.
#include "top_k.glsl"

layout(constant_id = 0) const uint LANES = 64;  // multiple of SUMMERS, at least MAX_K
layout(constant_id = 2) const uint BLOCKS = 1;  // blocks an invocation holds: ceil(blocks / LANES)
layout(constant_id = 3) const uint CANDIDATE_QUADS = 1;  // quads it holds of the chosen blocks: ceil(chosen blocks * VECS / LANES)
layout(local_size_x_id = 0) in;

layout(set = 0, binding = 1) readonly buffer Blocks { uvec4 blocks[]; };  // [rows, block_count]
layout(set = 0, binding = 2) writeonly buffer Ids { uint ids[]; };        // [width, k]
layout(set = 0, binding = 3) writeonly buffer Values { uint values[]; };  // [width, k]
layout(set = 0, binding = 4) writeonly buffer Sums { float log_sum_exp[]; };  // [width]

layout(push_constant) uniform Push {
  uint vocab;
  uint k;
  uint first_row;     // of ids, values and log_sum_exp; logits and blocks are bound from there
  uint block_count;   // of a row, those without any logit included
  uint filled_blocks;  // of a row, those with at least one
};

const uint MAX_K = 64u;
const uint SUMMERS = 16u;
const uint KEYS = BLOCKS > 4u * CANDIDATE_QUADS ? BLOCKS : 4u * CANDIDATE_QUADS;
const uint UNKNOWN = 0xFFFFFFFFu;

shared uint counters[3];
shared uint largest;
shared uint chosen_count;
shared uint chosen[MAX_K];  // blocks, then ids
shared uvec2 winners[MAX_K];  // key, id
shared float lane_sums[LANES];

uint key[KEYS];  // what this invocation holds
uint turn = 0u;  // which of the counters is next

// How many keys of all invocations are at least `bound`. Three counters take turns: while one is read the next is
// counted, and the one after that is cleared.
uint count_at_least(uint bound) {
  uint own = 0u;
  [[unroll]] for (uint i = 0u; i < KEYS; ++i) own += key[i] >= bound ? 1u : 0u;
  if (own != 0u) atomicAdd(counters[turn], own);
  uint next = turn == 2u ? 0u : turn + 1u;
  if (gl_LocalInvocationID.x == 0u) counters[next] = 0u;
  barrier();
  uint count = counters[turn];
  turn = next;
  return count;
}

// The largest bound in [low, high] that at least `wanted` keys reach, given that `low` is such a bound and high + 1 is
// not. `count` is the number of keys that reach the result, or UNKNOWN.
uint bisect(uint wanted, uint low, uint high, out uint count) {
  count = UNKNOWN;
  while (low < high && count != wanted) {
    uint middle = low + (high - low - 1u) / 2u + 1u;
    uint reached = count_at_least(middle);
    if (reached >= wanted) {
      low = middle;
      count = reached;
    } else {
      high = middle - 1u;
    }
  }
  return low;
}

uint held_block(uint i) { return gl_LocalInvocationID.x + LANES * i; }

void hold_blocks() {
  [[unroll]] for (uint i = 0u; i < KEYS; ++i) key[i] = KEY_NONE;
  uint own = KEY_NONE;
  [[unroll]] for (uint i = 0u; i < BLOCKS; ++i) {
    uint found = blocks[gl_WorkGroupID.x * block_count + min(held_block(i), block_count - 1u)].x;
    key[i] = held_block(i) < block_count ? found : KEY_NONE;
    own = max(own, key[i]);
  }
  atomicMax(largest, own);
}

// Candidate quad i of this invocation: the chosen blocks' quads are dealt out one by one.
uint held_quad(uint i, out bool held) {
  uint at = gl_LocalInvocationID.x + LANES * i;
  held = at / VECS < min(k, filled_blocks);
  return block_quad(chosen[min(at / VECS, MAX_K - 1u)], at % VECS);
}

void hold_candidates() {
  [[unroll]] for (uint i = 0u; i < KEYS; ++i) key[i] = KEY_NONE;
  [[unroll]] for (uint i = 0u; i < CANDIDATE_QUADS; ++i) {
    bool held;
    uint quad = held_quad(i, held);
    if (!held) quad = 0u;
    uvec4 keys = quad_keys(load_quad(gl_WorkGroupID.x, quad, vocab), quad, vocab);
    [[unroll]] for (uint e = 0u; e < 4u; ++e) key[4u * i + e] = held ? keys[e] : KEY_NONE;
  }
}

// More keys reach `bound` than are wanted: equal logits, of which the lowest ids win. Turns the keys into new ones that
// are unique where it matters: all ones above the bound, at the bound higher for a lower id, none below.
uint tie_key(uint old, uint bound, uint id) {
  return old > bound ? 0xFFFFFFFFu : (old == bound ? 0xFFFFFFFEu - id : KEY_NONE);
}

void break_block_ties(uint bound) {
  [[unroll]] for (uint i = 0u; i < BLOCKS; ++i) {
    uint id = blocks[gl_WorkGroupID.x * block_count + min(held_block(i), block_count - 1u)].y;
    key[i] = tie_key(key[i], bound, id);
  }
}

void break_candidate_ties(uint bound) {
  [[unroll]] for (uint i = 0u; i < CANDIDATE_QUADS; ++i) {
    bool held;
    uint quad = held_quad(i, held);
    [[unroll]] for (uint e = 0u; e < 4u; ++e) key[4u * i + e] = tie_key(key[4u * i + e], bound, 4u * quad + e);
  }
}

uint bisect_ties(uint wanted) {
  uint count;
  return bisect(wanted, 0xFFFFFFFEu - vocab, 0xFFFFFFFEu, count);
}

// Where this invocation's keys that reach `bound` go in `chosen`.
uint reserve(uint bound) {
  uint own = 0u;
  [[unroll]] for (uint i = 0u; i < KEYS; ++i) own += key[i] >= bound ? 1u : 0u;
  return own == 0u ? 0u : atomicAdd(chosen_count, own);
}

// Fills `chosen` with the best blocks; returns a bound that at least k logits reach.
uint choose_blocks() {
  uint wanted = min(k, filled_blocks);
  uint count;
  uint bound = bisect(wanted, KEY_NAN, largest, count);
  uint reached_by_k = filled_blocks < k ? KEY_NAN : bound;
  if (count != wanted) {
    break_block_ties(bound);
    bound = bisect_ties(wanted);
  }
  uint slot = reserve(bound);
  [[unroll]] for (uint i = 0u; i < BLOCKS; ++i) {
    if (key[i] >= bound) chosen[slot++] = held_block(i);
  }
  barrier();
  return reached_by_k;
}

// Fills `chosen` with the ids of the k largest logits, in any order.
void choose_ids(uint lower_bound) {
  hold_candidates();
  uint count;
  // Step 1 may have rounded a capped logit otherwise than this kernel does: its keys bound nothing here.
  if (CAP != 0u) lower_bound = KEY_NAN;
  uint bound = bisect(k, lower_bound, CAP != 0u ? KEY_INFINITY : largest, count);
  if (count != k) {
    break_candidate_ties(bound);
    bound = bisect_ties(k);
  }
  uint quads[CANDIDATE_QUADS];
  [[unroll]] for (uint i = 0u; i < CANDIDATE_QUADS; ++i) {
    bool held;
    quads[i] = held_quad(i, held);
  }
  barrier();  // all have read `chosen`
  if (gl_LocalInvocationID.x == 0u) chosen_count = 0u;
  barrier();
  uint slot = reserve(bound);
  [[unroll]] for (uint i = 0u; i < 4u * CANDIDATE_QUADS; ++i) {
    if (key[i] >= bound) chosen[slot++] = 4u * quads[i / 4u] + i % 4u;
  }
  barrier();
}

// Each of the k winners counts those before it.
void write_in_order() {
  uint lane = gl_LocalInvocationID.x;
  uint id = 0u;
  uint bits = 0u;
  if (lane < k) {
    id = chosen[lane];
#if QUAD_LOADS
    bits = logits[gl_WorkGroupID.x * (vocab / 4u) + id / 4u][id % 4u];
#else
    bits = logits[gl_WorkGroupID.x * vocab + id];
#endif
    bits = capped(bits);
    winners[lane] = uvec2(key_of(bits), id);
  }
  barrier();
  if (lane < k) {
    uint own = key_of(bits);
    uint rank = 0u;
    for (uint i = 0u; i < k; ++i) {
      uvec2 other = winners[i];
      rank += other.x > own || (other.x == own && other.y < id) ? 1u : 0u;
    }
    uint at = (first_row + gl_WorkGroupID.x) * k + rank;
    ids[at] = id;
    values[at] = bits;
  }
}

// The blocks' sums, each relative to its own winner, put together: an invocation's blocks in order, then every
// SUMMERS-th invocation in order, then those in order.
void write_log_sum_exp() {
  uint lane = gl_LocalInvocationID.x;
  float top = logit_of(largest);
  float base = isinf(top) ? 0.0 : top;
  precise float sum = 0.0;
  [[unroll]] for (uint i = 0u; i < BLOCKS; ++i) {
    uvec4 block = blocks[gl_WorkGroupID.x * block_count + min(held_block(i), block_count - 1u)];
    float winner = logit_of(held_block(i) < block_count ? block.x : KEY_NONE);
    precise float below = winner - base;
    precise float share = isinf(winner) ? 0.0 : exp(below) * uintBitsToFloat(block.z);
    sum = sum + share;
  }
  lane_sums[lane] = sum;
  barrier();
  precise float part = 0.0;
  if (lane < SUMMERS) {
    for (uint l = lane; l < LANES; l += SUMMERS) part = part + lane_sums[l];
  }
  barrier();
  if (lane < SUMMERS) lane_sums[lane] = part;
  barrier();
  if (lane == 0u) {
    precise float all = 0.0;
    for (uint l = 0u; l < SUMMERS; ++l) all = all + lane_sums[l];
    precise float result = top + log(all);
    log_sum_exp[first_row + gl_WorkGroupID.x] = isinf(top) ? top : result;
  }
}

void main() {
  if (gl_LocalInvocationID.x == 0u) {
    counters[0] = 0u;
    largest = KEY_NONE;
    chosen_count = 0u;
  }
  barrier();
  hold_blocks();
  barrier();
  write_log_sum_exp();
  choose_ids(choose_blocks());
  write_in_order();
}
