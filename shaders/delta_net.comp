#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// The recurrence of a gated delta net or a scan over a list of steps (engine/compute/ops.h). Per value head:
//
//   S <- decay S;  u = beta (value - S^T key);  S <- S + key u^T;  out = S^T query
//   of a scan:     u = beta value;                                 out = S^T query + skip value
//
// One invocation per column of S, which it keeps in registers and which no other meets, so that it takes back the states
// that it puts aside. Key and query of a step, which all columns share, are in shared memory: as uniform values they would
// take more scalar registers than there are. Grid: (value_dim / 32, value heads).
#include "rows.glsl"

layout(constant_id = 0) const uint KEY_DIM = 64;  // a multiple of 4, at most 128
layout(constant_id = 1) const uint READS = 1;     // 0: states are advanced and nothing is read
layout(constant_id = 2) const uint CORRECTS = 1;  // 0: a scan
layout(local_size_x = 32) in;

layout(set = 0, binding = 0) readonly buffer In { float in_[]; };     // [rows, row_elements]
layout(set = 0, binding = 1) readonly buffer In4 { vec4 in4[]; };     // the same
layout(set = 0, binding = 2) readonly buffer Steps { uvec4 steps[]; };  // [step_count]
layout(set = 0, binding = 3) buffer States { float states[]; };       // [kept, value_heads, KEY_DIM, value_dim]
layout(set = 0, binding = 4) buffer Spare { float spare[]; };         // the same
layout(set = 0, binding = 5) writeonly buffer Out { float out_[]; };  // [rows, value_heads * value_dim]
layout(set = 0, binding = 6) readonly buffer Skip { float skip[]; };  // [value_heads], of a scan

layout(push_constant) uniform Push {
  uint step_count;
  uint row_elements;
  uint key_heads;
  uint value_heads;
  uint value_dim;
  uint tiled;
};

const uint QUADS = KEY_DIM / 4u;
vec4 s[QUADS];  // the column
shared vec4 key_quads[QUADS], query_quads[QUADS];

float fold(vec4 sums) {
  precise float sum = (sums.x + sums.y) + (sums.z + sums.w);
  return sum;
}

// The first element of this invocation's column in a state.
uint column_of(uint place, uint head, uint j) {
  return ((place & ~SPARE) * value_heads + head) * KEY_DIM * value_dim + j;
}

void take(uint place, uint head, uint j) {
  uint at = column_of(place, head, j);
  if ((place & SPARE) != 0u) {
    [[unroll]] for (uint k = 0u; k < KEY_DIM; ++k) s[k / 4u][k % 4u] = spare[at + k * value_dim];
  } else {
    [[unroll]] for (uint k = 0u; k < KEY_DIM; ++k) s[k / 4u][k % 4u] = states[at + k * value_dim];
  }
}

void put(uint place, uint head, uint j) {
  uint at = column_of(place, head, j);
  if ((place & SPARE) != 0u) {
    [[unroll]] for (uint k = 0u; k < KEY_DIM; ++k) spare[at + k * value_dim] = s[k / 4u][k % 4u];
  } else {
    [[unroll]] for (uint k = 0u; k < KEY_DIM; ++k) states[at + k * value_dim] = s[k / 4u][k % 4u];
  }
}

// S^T key of the state that is forgotten in part.
float decayed(float decay) {
  precise vec4 sums = vec4(0.0);
  [[unroll]] for (uint q = 0u; q < QUADS; ++q) {
    precise vec4 x = s[q] * decay;
    s[q] = x;
    sums = fma(x, key_quads[q], sums);
  }
  return fold(sums);
}

// S^T query of the state with key u^T in it.
float updated(float u) {
  precise vec4 sums = vec4(0.0);
  [[unroll]] for (uint q = 0u; q < QUADS; ++q) {
    precise vec4 x = fma(key_quads[q], vec4(u), s[q]);
    s[q] = x;
    if (READS != 0u) sums = fma(x, query_quads[q], sums);
  }
  return fold(sums);
}

// S^T query of a scan's state that is forgotten in part and then has key u^T in it.
float scanned(float decay, float u) {
  precise vec4 sums = vec4(0.0);
  [[unroll]] for (uint q = 0u; q < QUADS; ++q) {
    precise vec4 rest = s[q] * decay;
    precise vec4 x = fma(key_quads[q], vec4(u), rest);
    s[q] = x;
    if (READS != 0u) sums = fma(x, query_quads[q], sums);
  }
  return fold(sums);
}

void main() {
  uint j = gl_GlobalInvocationID.x, head = gl_WorkGroupID.y, lane = gl_LocalInvocationID.x;
  bool has_column = j < value_dim;
  uint key_head = tiled != 0u ? head % key_heads : head / (value_heads / key_heads);
  uint keys = key_heads * KEY_DIM, values = value_heads * value_dim;
  for (uint i = 0u; i < step_count; ++i) {
    uvec4 step = steps[i];  // row, parent, from, to
    if (step.x == NONE) continue;
    if (step.z != NONE && has_column) take(step.z, head, j);
    uint row = step.x * row_elements;
    uint query = (row + key_head * KEY_DIM) / 4u, key = query + keys / 4u;
    uint gates = row + 2u * keys + values + head;
    if (lane < QUADS) {
      key_quads[lane] = in4[key + lane];
      if (READS != 0u) query_quads[lane] = in4[query + lane];
    }
    barrier();
    float value, result;
    if (CORRECTS != 0u) {
      float known = decayed(in_[gates + value_heads]);
      barrier();  // keys are read again, and not kept
      value = has_column ? in_[row + 2u * keys + head * value_dim + j] : 0.0;
      precise float u = in_[gates] * (value - known);
      result = updated(u);
    } else {
      value = has_column ? in_[row + 2u * keys + head * value_dim + j] : 0.0;
      precise float u = in_[gates] * value;
      result = scanned(in_[gates + value_heads], u);
      if (READS != 0u) result = fma(skip[head], value, result);
    }
    barrier();
    if (READS != 0u && has_column) out_[step.x * values + head * value_dim + j] = result;
    if (step.w != NONE && has_column) put(step.w, head, j);
  }
}
