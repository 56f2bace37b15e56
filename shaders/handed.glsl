// Quads of activations that the invocations of a subgroup hand round: each holds some of the eight of a block of 32
// columns, and a shuffle by a constant gives its elements to all. To llvmpipe a load or a fetch is some 70 instructions for
// 8 invocations whatever they load, a shuffle one or two. Who includes it defines N, the columns of the product.
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require

layout(constant_id = 5) const uint SUBGROUP = 8;  // invocations that share: 4 or 8, at most a subgroup

const uint HELD = 8u / SUBGROUP;
vec4 held[HELD * N];  // quad h * SUBGROUP + own index of each column

float handed(uint q, uint c, uint i) {
  if (HELD == 1u) return subgroupShuffle(held[c][i], q);
  return q < SUBGROUP ? subgroupShuffle(held[c][i], q) : subgroupShuffle(held[(HELD - 1u) * N + c][i], q - SUBGROUP);
}
