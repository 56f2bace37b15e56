#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// x[w, r] += sum over i, in order, of shares[w, i] * products[w, i, r], and last shares[w, used] * shared_[w, r]; out = x * norm_weight, with the squares of x
// summed for each block of 64 rows; aux[w, aux_offset + r] = x. Grid: (blocks, width), or (1, width) where a row's squares
// are one sum, whose blocks are then added in order.
#include "activations.glsl"

const uint BLOCK = 64u;
layout(local_size_x = 64) in;

layout(set = 0, binding = 0) readonly buffer Products { float products[]; };       // [width, used, rows]
layout(set = 0, binding = 1) readonly buffer Shares { float shares[]; };           // [width, used + shared_experts]
layout(set = 0, binding = 2) buffer X { float x_[]; };                             // [width, rows]
layout(set = 0, binding = 3) readonly buffer NormWeight { float norm_weight[]; };  // [rows]
layout(set = 0, binding = 4) writeonly buffer Out { float out_[]; };               // activations [width, rows]
layout(set = 0, binding = 5) writeonly buffer OutSquares { float out_squares[]; };  // [width, square_blocks]
layout(set = 0, binding = 6) writeonly buffer Aux { float aux[]; };                // [width, aux_stride]

layout(set = 0, binding = 7) readonly buffer Shared { float shared_[]; };           // [width, rows]

layout(push_constant) uniform Push {
  uint rows;
  uint used;
  uint shared_experts;  // 0 or 1
  uint square_blocks;
  uint aux_stride;  // 0: no aux
  uint aux_offset;
};

shared float values[BLOCK];
shared float eighths[BLOCK / 8u];

// Row r of x, which becomes complete; 0 where there is none.
float finished(uint w, uint r, uint place) {
  if (r >= rows) return 0.0;
  uint first_share = w * (used + shared_experts);
  precise float sum = 0.0;
  for (uint i = 0u; i < used; ++i) sum = fma(shares[first_share + i], products[(w * used + i) * rows + r], sum);
  if (shared_experts != 0u) sum = fma(shares[first_share + used], shared_[w * rows + r], sum);
  precise float x = x_[w * rows + r] + sum;
  precise float y = x * norm_weight[r];
  x_[w * rows + r] = x;
  out_[place + r] = y;
  if (aux_stride != 0u) aux[w * aux_stride + aux_offset + r] = x;
  return x;
}

void main() {
  uint w = gl_WorkGroupID.y, lane = gl_LocalInvocationID.x;
  uint place = activation_row(w, rows);
  precise float all = 0.0;
  for (uint block = gl_WorkGroupID.x; block * BLOCK < rows; block += gl_NumWorkGroups.x) {
    values[lane] = finished(w, block * BLOCK + lane, place);
    barrier();
    if (lane < BLOCK / 8u) {
      precise float sum = 0.0;
      for (uint i = 0u; i < 8u; ++i) sum = fma(values[8u * lane + i], values[8u * lane + i], sum);
      eighths[lane] = sum;
    }
    barrier();
    precise float sum = 0.0;
    for (uint i = 0u; i < BLOCK / 8u; ++i) sum = sum + eighths[i];
    all = all + sum;
  }
  if (lane == 0u) out_squares[w * square_blocks + gl_WorkGroupID.x] = all;
}
