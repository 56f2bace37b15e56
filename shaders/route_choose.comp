#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_memory_scope_semantics : require
// chosen[w] = the experts of the `used` largest logits, largest first, ties to the lower one, NaN below all numbers;
// shares[w, i] = exp(logit of chosen[w, i] - largest) over the sum of that, of the chosen ones or of all, times factor,
// times scales[chosen[w, i]] where SCALES;
// shares[w, used] = 1 / (1 + exp(-logit)) of a shared expert, whose logit comes last, or 1 where it has none.
// SIGMOID: scores 1 / (1 + exp(-logit)) in the place of the exponentials; chosen by scores plus a bias, in the groups
// whose two largest have the largest sums. One workgroup per row. An expert's
// rank is the number of those before it, so nothing is sorted and no order of arrival matters. MARKS: the bits of the
// experts that rows with ancestors choose are set in `touched`.
#include "rows.glsl"

const uint LANES = 64u;
const uint MAX_EXPERTS = 1024u;
const uint MAX_USED = 64u;
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint MARKS = 0;
layout(constant_id = 1) const uint SCALES = 0;
layout(constant_id = 2) const uint SIGMOID = 0;

layout(set = 0, binding = 0) readonly buffer Logits { float logits[]; };   // [width, experts + shared_gates]
layout(set = 0, binding = 1) writeonly buffer Chosen { uint chosen[]; };   // [width, used]
layout(set = 0, binding = 2) writeonly buffer Shares { float shares[]; };  // [width, used + shared_experts]

layout(set = 0, binding = 3) readonly buffer Rows { Row rows_[]; };
layout(set = 0, binding = 4) buffer Touched { uint touched[]; };
layout(set = 0, binding = 5) readonly buffer Scales { float scales[]; };  // [experts]
layout(set = 0, binding = 6) readonly buffer ChoiceBias { float choice_bias[]; };  // [experts], if there is one

layout(push_constant) uniform Push {
  uint experts;
  uint used;
  uint of_chosen;       // 0: shares are of all
  uint shared_gates;    // 0 or 1: rows of the router for a shared expert
  uint shared_experts;  // 0 or 1
  uint first_word;      // of the layer
  uint has_choice_bias;
  uint groups;
  uint groups_used;
  float factor;
};

shared uint keys[MAX_EXPERTS];
shared uint group_keys[MAX_EXPERTS / 2u];
shared float best[MAX_USED];  // logits, or scores with a sigmoid, of the chosen ones
shared float scale_of[MAX_USED];
shared float sums[LANES];

// Around what is done to a buffer that all rows share.
#define BUFFER_BARRIER()                                                                                   \
  controlBarrier(gl_ScopeWorkgroup, gl_ScopeDevice, gl_StorageSemanticsBuffer | gl_StorageSemanticsShared, \
                 gl_SemanticsAcquireRelease)

// Larger for a larger logit, the same for both zeros, 0 for NaN.
uint key_of(float logit) {
  uint bits = floatBitsToUint(logit);
  uint magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return 0u;
  return bits == magnitude ? magnitude + 0x80000000u : 0x80000000u - magnitude;
}

// The other way; of NaN the least number.
float number_of(uint key) {
  if (key == 0u) return uintBitsToFloat(0xFF800000u);
  return uintBitsToFloat(key >= 0x80000000u ? key - 0x80000000u : (0x80000000u - key) | 0x80000000u);
}

float logistic(float logit) {
  precise float below = 1.0 + exp(-logit);
  precise float score = 1.0 / below;
  return score;
}

// Experts of groups that are not taken get the key of NaN.
void choose_groups(uint lane) {
  uint each = experts / groups;
  for (uint g = lane; g < groups; g += LANES) {
    uint first = 0u, second = 0u;
    for (uint e = g * each; e < (g + 1u) * each; ++e) {
      uint key = keys[e];
      second = max(second, min(first, key));
      first = max(first, key);
    }
    precise float sum = number_of(first) + number_of(second);
    group_keys[g] = key_of(sum);
  }
  barrier();
  for (uint e = lane; e < experts; e += LANES) {
    uint own = e / each, rank = 0u;
    for (uint other = 0u; other < groups; ++other) {
      rank += group_keys[other] > group_keys[own] || (group_keys[other] == group_keys[own] && other < own) ? 1u : 0u;
    }
    if (rank >= groups_used) keys[e] = 0u;
  }
}

float exponential(float logit, float largest) {
  precise float below = logit - largest;
  return exp(below);
}

void main() {
  uint w = gl_WorkGroupID.x, lane = gl_LocalInvocationID.x;
  uint first_logit = w * (experts + shared_gates), first_share = w * (used + shared_experts);
  for (uint e = lane; e < experts; e += LANES) {
    precise float by = logits[first_logit + e];
    if (SIGMOID != 0u) {
      by = logistic(by);
      if (has_choice_bias != 0u) by = by + choice_bias[e];
    }
    keys[e] = key_of(by);
  }
  barrier();
  if (SIGMOID != 0u && groups > 1u) choose_groups(lane);
  BUFFER_BARRIER();
  for (uint e = lane; e < experts; e += LANES) {
    uint own = keys[e], rank = 0u;
    for (uint other = 0u; other < experts; ++other) {
      rank += keys[other] > own || (keys[other] == own && other < e) ? 1u : 0u;
    }
    if (rank < used) {
      chosen[w * used + rank] = e;
      best[rank] = SIGMOID != 0u ? logistic(logits[first_logit + e]) : logits[first_logit + e];
      scale_of[rank] = SCALES != 0u ? scales[e] : 1.0;
      if (MARKS != 0u && rows_[w].ancestor_count != 0u) atomicOr(touched[first_word + e / 32u], 1u << (e % 32u));
    }
  }
  BUFFER_BARRIER();
  float largest = best[0];
  precise float own = 0.0;
  if (of_chosen != 0u) {
    if (lane < used) own = SIGMOID != 0u ? best[lane] : exponential(best[lane], largest);
  } else if (SIGMOID == 0u) {
    for (uint e = lane; e < experts; e += LANES) own = own + exponential(logits[first_logit + e], largest);
  }
  sums[lane] = own;
  barrier();
  precise float sum = 0.0;
  for (uint l = 0u; l < LANES; ++l) sum = sum + sums[l];
  if (lane < used) {
    precise float share;
    if (SIGMOID != 0u) {
      precise float least = sum + 1e-20;
      share = of_chosen != 0u ? best[lane] / least : best[lane];
    } else {
      share = exponential(best[lane], largest) / sum;
    }
    precise float of_all = share * factor;
    precise float scaled = of_all * scale_of[lane];
    shares[first_share + lane] = scaled;
  }
  if (shared_experts != 0u && lane == 0u) {
    shares[first_share + used] = shared_gates != 0u ? logistic(logits[first_logit + experts]) : 1.0;
  }
}
