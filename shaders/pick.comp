#version 450
// out[i] = logits[row - first_row, token] of pair i, where the row is one of those bound; other elements stay.
layout(local_size_x = 64) in;

layout(set = 0, binding = 0) readonly buffer Logits { uint logits[]; };  // [rows, vocab]
layout(set = 0, binding = 1) readonly buffer Pairs { uvec2 pairs[]; };   // row, token
layout(set = 0, binding = 2) writeonly buffer Out { uint out_[]; };      // [count]

layout(push_constant) uniform Push {
  uint count;
  uint first_row;
  uint rows;
  uint vocab;
};

void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i >= count) return;
  uvec2 pair = pairs[i];
  uint row = pair.x - first_row;  // wraps for the rows before
  if (row < rows) out_[i] = logits[row * vocab + pair.y];
}
