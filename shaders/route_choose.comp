#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_memory_scope_semantics : require
// chosen[w] = the experts of the `used` largest logits, largest first, ties to the lower one, NaN below all numbers;
// shares[w, i] = exp(logit of chosen[w, i] - largest) over the sum of that, of the chosen ones or of all;
// shares[w, used] = 1 / (1 + exp(-logit)) of a shared expert, whose logit comes last. One workgroup per row. An expert's
// rank is the number of those before it, so nothing is sorted and no order of arrival matters. MARKS: the bits of the
// experts that rows with ancestors choose are set in `touched`.
#include "rows.glsl"

const uint LANES = 64u;
const uint MAX_EXPERTS = 1024u;
const uint MAX_USED = 64u;
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint MARKS = 0;

layout(set = 0, binding = 0) readonly buffer Logits { float logits[]; };   // [width, experts + shared_experts]
layout(set = 0, binding = 1) writeonly buffer Chosen { uint chosen[]; };   // [width, used]
layout(set = 0, binding = 2) writeonly buffer Shares { float shares[]; };  // [width, used + shared_experts]

layout(set = 0, binding = 3) readonly buffer Rows { Row rows_[]; };
layout(set = 0, binding = 4) buffer Touched { uint touched[]; };

layout(push_constant) uniform Push {
  uint experts;
  uint used;
  uint of_chosen;       // 0: shares are of all
  uint shared_experts;  // 0 or 1
  uint first_word;      // of the layer
};

shared uint keys[MAX_EXPERTS];
shared float best[MAX_USED];  // logits, largest first
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

float exponential(float logit, float largest) {
  precise float below = logit - largest;
  return exp(below);
}

void main() {
  uint w = gl_WorkGroupID.x, lane = gl_LocalInvocationID.x;
  uint first_logit = w * (experts + shared_experts), first_share = w * (used + shared_experts);
  for (uint e = lane; e < experts; e += LANES) keys[e] = key_of(logits[first_logit + e]);
  BUFFER_BARRIER();
  for (uint e = lane; e < experts; e += LANES) {
    uint own = keys[e], rank = 0u;
    for (uint other = 0u; other < experts; ++other) {
      rank += keys[other] > own || (keys[other] == own && other < e) ? 1u : 0u;
    }
    if (rank < used) {
      chosen[w * used + rank] = e;
      best[rank] = logits[first_logit + e];
      if (MARKS != 0u && rows_[w].ancestor_count != 0u) atomicOr(touched[first_word + e / 32u], 1u << (e % 32u));
    }
  }
  BUFFER_BARRIER();
  float largest = best[0];
  precise float own = 0.0;
  if (of_chosen != 0u) {
    if (lane < used) own = exponential(best[lane], largest);
  } else {
    for (uint e = lane; e < experts; e += LANES) own = own + exponential(logits[first_logit + e], largest);
  }
  sums[lane] = own;
  barrier();
  precise float sum = 0.0;
  for (uint l = 0u; l < LANES; ++l) sum = sum + sums[l];
  if (lane < used) {
    precise float share = exponential(best[lane], largest) / sum;
    shares[first_share + lane] = share;
  }
  if (shared_experts != 0u && lane == 0u) {
    precise float below = 1.0 + exp(-logits[first_logit + experts]);
    precise float share = 1.0 / below;
    shares[first_share + used] = share;
  }
}
