#version 450
// variants: quads QUADS=1; words QUADS=0
// out[to] = in[from], bit for bit. Grid: (elements of a row / 64, moves along y and then z).
layout(local_size_x = 64) in;

#if QUADS
#define ELEMENT uvec4  // the number of columns is a multiple of 4
#else
#define ELEMENT uint
#endif

layout(set = 0, binding = 0) readonly buffer In { ELEMENT in_[]; };     // [rows, row_elements]
layout(set = 0, binding = 1) readonly buffer Moves { uvec2 moves[]; };  // from, to
layout(set = 0, binding = 2) writeonly buffer Out { ELEMENT out_[]; };  // [rows, row_elements]

layout(push_constant) uniform Push {
  uint row_elements;
  uint count;  // of moves
};

void main() {
  uint i = gl_GlobalInvocationID.x, row = gl_WorkGroupID.z * gl_NumWorkGroups.y + gl_WorkGroupID.y;
  if (i >= row_elements || row >= count) return;
  uvec2 move = moves[row];
  out_[move.y * row_elements + i] = in_[move.x * row_elements + i];
}
