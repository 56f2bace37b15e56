#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// A short convolution between two gates (ShortConvArgs of engine/compute/ops.h has the formula). One invocation per
// column. Grid: (cols / 64, steps).
#include "activations.glsl"
#include "rows.glsl"

layout(constant_id = 0) const uint TAPS = 3;
layout(constant_id = 1) const uint READS = 1;  // 0: only tails are written
layout(local_size_x = 64) in;

layout(set = 0, binding = 0) readonly buffer In { float in_[]; };         // [rows, 3 cols]
layout(set = 0, binding = 1) readonly buffer Steps { uvec4 steps[]; };    // [steps]
layout(set = 0, binding = 2) readonly buffer Weights { float weights[]; };  // [cols, TAPS]
layout(set = 0, binding = 3) buffer Tails { float tails[]; };             // [kept, TAPS - 1, cols]
layout(set = 0, binding = 4) writeonly buffer OutActivations { float out_activations[]; };  // activations [rows, cols]

layout(push_constant) uniform Push { uint cols; };

const uint IN_TAIL = 0x80000000u;
uint window[TAPS];  // the row of each; IN_TAIL: of `tails`

// The rows before a step's are found by parents, and beyond the pass in the tail of the text.
void find_window(uint step) {
  uint at = step, last = step, beyond = 0u;
  for (uint t = TAPS; t-- > 0u;) {
    if (at != NONE) {
      window[t] = steps[at].x;
      last = at;
      at = steps[at].y;
    } else {
      window[t] = IN_TAIL | (steps[last].z * (TAPS - 1u) + TAPS - 2u - beyond);
      ++beyond;
    }
  }
}

float gated(uint t, uint c) {
  if ((window[t] & IN_TAIL) != 0u) return tails[(window[t] & ~IN_TAIL) * cols + c];
  uint at = window[t] * 3u * cols + c;
  precise float product = in_[at] * in_[at + 2u * cols];
  return product;
}

void main() {
  uint c = gl_GlobalInvocationID.x;
  uvec4 step = steps[gl_WorkGroupID.y];
  if (step.x == NONE || c >= cols) return;
  find_window(gl_WorkGroupID.y);
  precise float sum = 0.0;
  [[unroll]] for (uint t = 0u; t < TAPS; ++t) {
    float x = gated(t, c);
    sum = fma(weights[c * TAPS + t], x, sum);
    if (t > 0u && step.w < SPARE) tails[(step.w * (TAPS - 1u) + t - 1u) * cols + c] = x;
  }
  if (READS == 0u) return;
  precise float y = in_[step.x * 3u * cols + cols + c] * sum;
  out_activations[activation_row(step.x, cols) + c] = y;
}
