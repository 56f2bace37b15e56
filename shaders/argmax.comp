#version 450
#extension GL_EXT_control_flow_attributes : require
// Largest element of each row and where it is; ties go to the lowest index, NaN never wins.
// variants: part STAGE=0; final STAGE=1
// Stage 0: one workgroup per (block of 1024 logits, row) leaves one candidate. Stage 1: one workgroup per row takes the
// best candidate. Comparisons are exact, so no order matters.
layout(constant_id = 0) const uint LANES = 8;
layout(local_size_x_id = 0) in;

const uint BLOCK = 1024u;
const uint NONE = 0xFFFFFFFFu;

#if STAGE == 0
layout(set = 0, binding = 0) readonly buffer In { float logits[]; };            // [width, count]
#else
layout(set = 0, binding = 0) readonly buffer In { uvec2 candidates[]; };        // [width, count]
#endif
layout(set = 0, binding = 1) writeonly buffer Out { uvec2 out_[]; };            // id, bits of the logit

layout(push_constant) uniform Push {
  uint count;  // per row
  uint blocks;  // per row
  uint first_row;  // of the output
};

shared uvec2 lane_best[LANES];

// Whether candidate b beats a.
bool beats(uvec2 b, uvec2 a) {
  if (b.x == NONE) return false;
  if (a.x == NONE) return true;
  float x = uintBitsToFloat(b.y), y = uintBitsToFloat(a.y);
  return x > y || (x == y && b.x < a.x);
}

void main() {
  uint row = gl_WorkGroupID.y;
  uint lane = gl_LocalInvocationID.x;
  uint first = gl_WorkGroupID.x * BLOCK;
  uvec2 best = uvec2(NONE, 0x7FC00000u);
#if STAGE == 0
  uint end = min(first + BLOCK, count);
  for (uint i = first + lane; i < end; i += LANES) {
    float value = logits[row * count + i];
    uvec2 candidate = uvec2(value == value ? i : NONE, floatBitsToUint(value));
    if (beats(candidate, best)) best = candidate;
  }
#else
  for (uint i = lane; i < count; i += LANES) {
    uvec2 candidate = candidates[row * count + i];
    if (beats(candidate, best)) best = candidate;
  }
#endif
  lane_best[lane] = best;
  barrier();
  if (lane == 0u) {
    for (uint l = 1u; l < LANES; ++l) {
      if (beats(lane_best[l], best)) best = lane_best[l];
    }
    out_[(first_row + row) * blocks + gl_WorkGroupID.x] = best;
  }
}
