#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// The second step of attention: one workgroup per (head, row) merges the partial results that attention_part.comp left
// (attention.glsl) and writes out = o / l. A row that sees nothing gets zeros. A head's sink is merged last.
//
// Invocations along x own quads of the head, those along y whole spans, SPAN_LANES at a time.
#include "rows.glsl"
#include "attention.glsl"
#include "activations.glsl"

layout(constant_id = 0) const uint QUAD_LANES = 32;
layout(constant_id = 1) const uint VALUE_DIM = 64;
layout(constant_id = 5) const uint SPAN_LANES = 8;
layout(constant_id = 7) const uint UNIT_CHUNKS = 1;  // 1, or SPAN_CHUNKS
layout(constant_id = 9) const uint SINKS = 0;
layout(local_size_x_id = 0, local_size_y_id = 5) in;

const uint VALUE_QUADS = VALUE_DIM / 4u;
const uint OWNED = (VALUE_QUADS + QUAD_LANES - 1u) / QUAD_LANES;  // quads of an invocation
#define MERGED_CHUNKS UNIT_CHUNKS
#define MERGE_BATCH SPAN_CHUNKS

layout(set = 0, binding = 0) readonly buffer Rows { Row rows_[]; };
layout(set = 0, binding = 1) readonly buffer Outputs { vec4 part_out[]; };  // [entries, VALUE_QUADS]
layout(set = 0, binding = 2) readonly buffer Sums { vec2 part_sums[]; };    // [entries]: m, l
layout(set = 0, binding = 3) writeonly buffer OutActivations { vec4 out_activations4[]; };  // activations [width, heads * VALUE_DIM]

layout(set = 0, binding = 4) readonly buffer Sinks { float sinks[]; };  // [heads], where SINKS

layout(push_constant) uniform Push {
  uint first_row;
  uint heads;
  uint units;
};

shared vec4 span_out[SPAN_LANES * VALUE_QUADS];
shared vec2 span_sums[SPAN_LANES];

uint quad_of(uint o) { return min(o * QUAD_LANES + gl_LocalInvocationID.x, VALUE_QUADS - 1u); }

#include "merge.glsl"

void main() {
  uint head = gl_WorkGroupID.x;
  uint w = first_row + gl_WorkGroupID.y;
  Entries e = entries_of(rows_[w], first_entry(gl_WorkGroupID.y, head, heads, units));
  float all_best = LOWEST, all_sum = 0.0;
  vec4 all_out[OWNED];
  [[unroll]] for (uint i = 0u; i < OWNED; ++i) all_out[i] = vec4(0.0);
  for (uint group = e.first / SPAN * SPAN; group < e.end; group += SPAN_LANES * SPAN) {
    merge_span(e, group + gl_LocalInvocationID.y * SPAN);
    if (gl_LocalInvocationID.x == 0u) span_sums[gl_LocalInvocationID.y] = vec2(best, sum_);
    [[unroll]] for (uint i = 0u; i < OWNED; ++i) span_out[gl_LocalInvocationID.y * VALUE_QUADS + quad_of(i)] = out_[i];
    barrier();
    uint spans = min(SPAN_LANES, (e.end - group + SPAN - 1u) / SPAN);
    for (uint s = 0u; s < spans; ++s) {
      vec2 factors = merge_factors(all_best, all_sum, span_sums[s].x, span_sums[s].y);
      [[unroll]] for (uint i = 0u; i < OWNED; ++i) {
        all_out[i] = merged(all_out[i], span_out[s * VALUE_QUADS + quad_of(i)], factors);
      }
    }
    barrier();
  }
  if (gl_LocalInvocationID.y != 0u) return;
  vec2 last = vec2(1.0, 0.0);
  if (SINKS != 0u) last = merge_factors(all_best, all_sum, sinks[head], 1.0);
  uint place = activation_row(w, heads * VALUE_DIM);
  [[unroll]] for (uint i = 0u; i < OWNED; ++i) {
    uint quad = i * QUAD_LANES + gl_LocalInvocationID.x;
    if (quad >= VALUE_QUADS) continue;
    precise vec4 o = all_out[i];
    if (SINKS != 0u) o = o * last.x;
    precise vec4 y = o / all_sum;
    out_activations4[(place + head * VALUE_DIM + quad * 4u) / 4u] = e.end > e.first ? y : vec4(0.0);
  }
}
