#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// What a recurrence reads, a gated delta net or a scan (DeltaInputsArgs of engine/compute/ops.h has the formulas). One
// workgroup per (head, step), query heads first, then key heads, value heads and, last, the numbers of all value heads.
#include "rows.glsl"
#include "exponentials.glsl"

layout(constant_id = 0) const uint TAPS = 4;
layout(constant_id = 1) const uint CORRECTS = 1;       // 0: a scan
layout(constant_id = 2) const uint HAS_CONV_BIAS = 0;
layout(local_size_x = 32) in;

layout(set = 0, binding = 0) readonly buffer In { float in_[]; };       // [rows, row_elements]
layout(set = 0, binding = 1) readonly buffer Steps { uvec4 steps[]; };  // [steps]
layout(set = 0, binding = 2) readonly buffer Taps { float taps[]; };    // [channels, TAPS]
layout(set = 0, binding = 3) readonly buffer Bias { float bias[]; };    // [value_heads]
layout(set = 0, binding = 4) readonly buffer Rate { float rate[]; };    // [value_heads]
layout(set = 0, binding = 5) buffer Tails { float tails[]; };           // [kept, TAPS - 1, channels]
layout(set = 0, binding = 6) buffer Out { float out_[]; };              // [rows, row_elements]
layout(set = 0, binding = 7) readonly buffer ConvBias { float conv_bias[]; };  // [channels], where there is one

layout(push_constant) uniform Push {
  uint row_elements;
  uint channels;
  uint key_heads;
  uint value_heads;
  uint key_dim;
  uint value_dim;
  float query_scale;  // 1 / sqrt(key_dim)
  float eps;
};

const uint LANES = 32u;
const uint IN_TAIL = 0x80000000u;
shared float lane_sums[LANES];
uint window[TAPS];  // where the first channel of each is; IN_TAIL: in `tails`

// The rows before a step's are found by parents, and beyond the pass in the tail of the text.
void find_window(uint step) {
  uint at = step, last = step, beyond = 0u;
  for (uint t = TAPS; t-- > 0u;) {
    if (at != NONE) {
      window[t] = steps[at].x * row_elements;
      last = at;
      at = steps[at].y;
    } else {
      window[t] = IN_TAIL | ((steps[last].z * (TAPS - 1u) + TAPS - 2u - beyond) * channels);
      ++beyond;
    }
  }
}

float input_of(uint t, uint c) {
  return (window[t] & IN_TAIL) != 0u ? tails[(window[t] & ~IN_TAIL) + c] : in_[window[t] + c];
}

float convolved(uint c, uint kept) {
  precise float sum = HAS_CONV_BIAS != 0u ? conv_bias[c] : 0.0;
  [[unroll]] for (uint t = 0u; t < TAPS; ++t) {
    float x = input_of(t, c);
    sum = fma(taps[c * TAPS + t], x, sum);
    if (t > 0u && kept < SPARE) tails[(kept * (TAPS - 1u) + t - 1u) * channels + c] = x;
  }
  return silu(sum);
}

void write_gates(uint to) {
  for (uint h = gl_LocalInvocationID.x; h < value_heads; h += LANES) {
    uint at = window[TAPS - 1u] + channels + h;
    precise float x = in_[CORRECTS != 0u ? at + value_heads : at] + bias[h];
    precise float soft = softplus(x);
    precise float exponent = rate[h] * soft;
    out_[to + channels + h] = CORRECTS != 0u ? sigmoid(in_[at]) : soft;
    out_[to + channels + value_heads + h] = exp_of_negative(exponent);
  }
}

void main() {
  uint unit = gl_WorkGroupID.x, lane = gl_LocalInvocationID.x;
  uvec4 step = steps[gl_WorkGroupID.y];
  if (step.x == NONE) return;  // all of the workgroup
  find_window(gl_WorkGroupID.y);
  uint to = step.x * row_elements;
  if (unit == 2u * key_heads + value_heads) {
    write_gates(to);
    return;
  }
  bool is_value = unit >= 2u * key_heads;
  uint dim = is_value ? value_dim : key_dim;
  uint first = is_value ? 2u * key_heads * key_dim + (unit - 2u * key_heads) * value_dim : unit * key_dim;
  precise float squares = 0.0;
  for (uint c = lane; c < dim; c += LANES) {
    float y = convolved(first + c, step.w);
    out_[to + first + c] = y;
    squares = fma(y, y, squares);
  }
  if (is_value || CORRECTS == 0u) return;
  lane_sums[lane] = squares;
  barrier();
  precise float all = 0.0;
  for (uint l = 0u; l < LANES; ++l) all = all + lane_sums[l];
  precise float scale = (unit < key_heads ? query_scale : 1.0) / sqrt(all + eps);
  for (uint c = lane; c < dim; c += LANES) {
    precise float y = out_[to + first + c] * scale;
    out_[to + first + c] = y;
  }
}
