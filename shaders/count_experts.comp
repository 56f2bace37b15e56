#version 450
// counts[l] = bits set in touched[l], which become 0. One workgroup per layer, an invocation for each word: 1024 experts
// at most.
layout(local_size_x = 32) in;

layout(set = 0, binding = 0) buffer Touched { uint touched[]; };           // [layers, words]
layout(set = 0, binding = 1) writeonly buffer Counts { uint counts[]; };  // [layers]

layout(push_constant) uniform Push { uint words; };

shared uint sums[32];

void main() {
  uint layer = gl_WorkGroupID.x, i = gl_LocalInvocationID.x;
  uint own = 0u;
  if (i < words) {
    own = uint(bitCount(touched[layer * words + i]));
    touched[layer * words + i] = 0u;
  }
  sums[i] = own;
  barrier();
  if (i != 0u) return;
  uint all = 0u;
  for (uint k = 0u; k < 32u; ++k) all += sums[k];
  counts[layer] = all;
}
