#version 450
#extension GL_GOOGLE_include_directive : require
// out[i] = in[index[first + i]]: values and sums of squares. Grid: (cols / 64, count).
#include "activations.glsl"

layout(local_size_x = 64) in;

layout(set = 0, binding = 0) readonly buffer In { float in_activations[]; };        // activations [width, cols]
layout(set = 0, binding = 1) readonly buffer InSquares { float in_squares[]; };
layout(set = 0, binding = 2) readonly buffer Index { uint index[]; };         // [first + count]
layout(set = 0, binding = 3) writeonly buffer Out { float out_activations[]; };     // activations [count, cols]
layout(set = 0, binding = 4) writeonly buffer OutSquares { float out_squares[]; };

layout(push_constant) uniform Push {
  uint cols;
  uint first;  // of the index
  uint square_blocks;  // of a row
};

void main() {
  uint k = gl_GlobalInvocationID.x;
  uint i = gl_WorkGroupID.y;
  uint from = index[first + i];
  if (k < square_blocks) out_squares[i * square_blocks + k] = in_squares[from * square_blocks + k];
  if (k < cols) {
    uint source = activation_row(from, cols);
    uint target = activation_row(i, cols);
    out_activations[target + k] = in_activations[source + k];
  }
}
