#version 450
#extension GL_GOOGLE_include_directive : require
// tokens[first_row + row] = the token with the largest log p + G among those that top-k, top-p and min-p leave, or NO_TOKEN
// where a logit is broken or all are banned. One workgroup for each row.
//
// Tokens are ordered by (how far the key lies below the best one's, id), 64 bits, the best first. The last one that a filter
// keeps is found byte by byte: how many of the tokens that agree with it so far have which next byte, and of what weight.
#define RUNNING_SUMS
#include "sample.glsl"

layout(set = 0, binding = 0) readonly buffer Logits { uint logits[]; };  // [rows, vocab]
layout(set = 0, binding = 1) readonly buffer Best { uvec2 best[]; };      // [rows, blocks]
layout(set = 0, binding = 2) readonly buffer Settings { SamplingWords settings; };
layout(set = 0, binding = 3) readonly buffer Rows { SampledRow rows[]; };
layout(set = 0, binding = 4) readonly buffer State { uint state[]; };  // [rows, STATE_WORDS]
layout(set = 0, binding = 5) readonly buffer List { uvec2 list[]; };    // [rows, LIST_TOKENS]
layout(set = 0, binding = 6) writeonly buffer Tokens { uint tokens[]; };

#include "sample_noise.glsl"

const uint BYTES = 256u;
shared uint counts[BYTES];
shared uint lows[BYTES];   // sums of the lower 12 bits of weights: of up to 2^20 tokens
shared uint highs[BYTES];  // of the next 10
shared uint tops[BYTES];   // of the last 10
shared uint next_byte;
shared uvec3 reached;  // what the bytes before that one have
shared uint in_byte;   // tokens with that byte

uvec2 top;        // key and id of the best
float highest;
uint places;      // tokens to look at
bool listed;      // in the list; else in the logits

// Key and id of a token; KEY_BANNED of one that the list would not have.
uvec2 token_at(uint place) {
  uint row = gl_WorkGroupID.x;
  if (listed) return list[row * LIST_TOKENS + place];
  return uvec2(key_of(logits[row * vocab + place]), place);
}

uint weight_of(uint key) {
  return weight_at(distance_between(highest, logit_of(key), settings.inverse_temperature));
}

// Bytes 0 ... 3 of how far the key is from the best one's, then bytes 4 ... 7 of the id; the most significant first.
uint byte_of(uvec2 order, uint i) { return (i < 4u ? order.x >> (24u - 8u * i) : order.y >> (56u - 8u * i)) & 0xFFu; }

bool agrees(uvec2 order, uvec2 prefix, uint bytes) {
  if (bytes < 4u) return bytes == 0u || order.x >> (32u - 8u * bytes) == prefix.x >> (32u - 8u * bytes);
  return order.x == prefix.x && (bytes == 4u || order.y >> (64u - 8u * bytes) == prefix.y >> (64u - 8u * bytes));
}

bool is_after(uvec2 a, uvec2 b) { return a.x > b.x || (a.x == b.x && a.y > b.y); }

// Counts and weights by byte i of the tokens that agree with the prefix and are not behind `last`.
void count_bytes(uint i, uvec2 prefix, uvec2 last, bool weighs) {
  uint lane = gl_LocalInvocationID.x;
  for (uint b = lane; b < BYTES; b += LANES) {
    counts[b] = 0u;
    lows[b] = 0u;
    highs[b] = 0u;
    tops[b] = 0u;
  }
  barrier();
  for (uint place = lane; place < places; place += LANES) {
    uvec2 token = token_at(place);
    uvec2 order = uvec2(top.x - token.x, token.y);
    if (!is_number(token.x) || !agrees(order, prefix, i) || is_after(order, last)) continue;
    uint b = byte_of(order, i);
    atomicAdd(counts[b], 1u);
    if (!weighs) continue;
    uint weight = weight_of(token.x);
    if (weight == 0u) continue;
    atomicAdd(lows[b], weight & 0xFFFu);
    atomicAdd(highs[b], weight >> 12 & 0x3FFu);
    atomicAdd(tops[b], weight >> 22);
  }
  barrier();
}

// Count and weight of a byte.
uvec3 byte_sum(uint b) {
  uvec2 weight = sum64(uvec2(lows[b], 0u), uvec2(highs[b] << 12, highs[b] >> 20));
  return uvec3(counts[b], sum64(weight, uvec2(tops[b] << 22, tops[b] >> 10)));
}

// The first token, in order, with which the count reaches `wanted`.x or the weight wanted.yz; the last one where none does.
// Tokens behind `last` do not count.
uvec2 find_last(uvec3 wanted, bool weighs, uvec2 last) {
  uint lane = gl_LocalInvocationID.x;
  const uint each = (BYTES + LANES - 1u) / LANES;
  uvec2 prefix = uvec2(0u);
  uvec3 before = uvec3(0u);
  for (uint i = 0u; i < 8u; ++i) {
    count_bytes(i, prefix, last, weighs);
    uvec3 own = uvec3(0u);
    for (uint b = lane * each; b < min((lane + 1u) * each, BYTES); ++b) own = sum_of(own, byte_sum(b));
    if (lane == 0u) in_byte = 0u;
    uvec3 all;
    uvec3 sum = sum_of(before, sum_before(own, all));
    for (uint b = lane * each; b < min((lane + 1u) * each, BYTES); ++b) {
      uvec3 next = sum_of(sum, byte_sum(b));
      bool reaches = weighs ? is_less(sum.yz, wanted.yz) && !is_less(next.yz, wanted.yz)
                            : sum.x < wanted.x && next.x >= wanted.x;
      if (reaches) {  // in one byte at most
        next_byte = b;
        reached = sum;
        in_byte = counts[b];
      }
      sum = next;
    }
    barrier();
    uint count = in_byte;
    uint found = next_byte;
    before = reached;
    barrier();
    if (count == 0u) return last;  // all of them are too few
    uint shift = i < 4u ? 24u - 8u * i : 56u - 8u * i;
    if (i < 4u) {
      prefix.x |= found << shift;
    } else {
      prefix.y |= found << shift;
    }
    // Alone: whatever its other bytes are, no other that agrees comes before `last`.
    if (count == 1u) {
      uint rest = (1u << shift) - 1u;
      uvec2 end = i < 4u ? uvec2(prefix.x | rest, 0xFFFFFFFFu) : uvec2(prefix.x, prefix.y | rest);
      return is_after(end, last) ? last : end;
    }
  }
  return prefix;
}

// The sum of the weights of all tokens up to `last`.
uvec2 weight_up_to(uvec2 last) {
  uvec2 own = uvec2(0u);
  for (uint place = gl_LocalInvocationID.x; place < places; place += LANES) {
    uvec2 token = token_at(place);
    if (!is_number(token.x) || is_after(uvec2(top.x - token.x, token.y), last)) continue;
    own = sum64(own, uvec2(weight_of(token.x), 0u));
  }
  uvec3 all;
  sum_before(uvec3(0u, own), all);
  return all.yz;
}

void main() {
  uint row = gl_WorkGroupID.x;
  top = best_of_row(row);
  if (!is_number(top.x)) {
    if (gl_LocalInvocationID.x == 0u) tokens[first_row + row] = NO_TOKEN;
    return;
  }
  highest = logit_of(top.x);
  uint at = row * STATE_WORDS;
  listed = state[at + LISTED] <= LIST_TOKENS;
  places = listed ? state[at + LISTED] : vocab;
  uvec2 wanted = uvec2(state[at + WANTED], state[at + WANTED + 1u]);
  uvec2 last = uvec2(0xFFFFFFFFu);
  if (settings.top_k != 0u) {
    last = find_last(uvec3(settings.top_k, 0u, 0u), false, last);
    if (settings.top_p != 0u) wanted = share_of(weight_up_to(last), settings.top_p);
  }
  if (settings.top_p != 0u) last = find_last(uvec3(0u, wanted), true, last);

  uint position = position_of(first_row + row);
  uvec2 own = mark_of(top.y, position);
  for (uint place = gl_LocalInvocationID.x; place < places; place += LANES) {
    uvec2 token = token_at(place);
    if (!is_number(token.x) || is_after(uvec2(top.x - token.x, token.y), last)) continue;
    uint far = distance_of(highest, token.x);
    if (!can_win(far, 1u, own)) continue;
    uvec4 words = random_words(token.y / 2u, position);
    own = with_candidate(own, token.y, far, (token.y & 1u) == 0u ? words.xy : words.zw);
  }
  own = best_of_group(own);
  if (gl_LocalInvocationID.x == 0u) tokens[first_row + row] = own.y;
}
