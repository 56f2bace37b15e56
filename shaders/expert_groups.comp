#version 450
#extension GL_GOOGLE_include_directive : require
// Groups pairs of a row and an expert by the expert: order = all pairs, those of an expert together; tiles = up to N of
// them each, (expert, first in order, count, 0), and tiles of no pairs up to `most_tiles`. Within an expert pairs stand
// as they arrive, which changes no result: each is computed as if it were alone. One workgroup.

const uint LANES = 256u;
const uint MAX_EXPERTS = 1024u;
layout(local_size_x = 16, local_size_y = 16) in;

layout(set = 0, binding = 0) readonly buffer Chosen { uint chosen[]; };   // [pairs]
layout(set = 0, binding = 1) writeonly buffer Tiles { uvec4 tiles[]; };   // [most_tiles]
layout(set = 0, binding = 2) writeonly buffer Order { uint order[]; };    // [pairs]

layout(push_constant) uniform Push {
  uint pairs;
  uint experts;
  uint tile_pairs;  // N
  uint most_tiles;
};

shared uint counts[MAX_EXPERTS];
shared uint places[MAX_EXPERTS];       // of the expert's next pair in `order`
shared uint first_tiles[MAX_EXPERTS];
shared uint tile_count;

void main() {
  uint lane = gl_LocalInvocationIndex;
  for (uint e = lane; e < experts; e += LANES) counts[e] = 0u;
  barrier();
  for (uint i = lane; i < pairs; i += LANES) atomicAdd(counts[chosen[i]], 1u);
  barrier();
  if (lane == 0u) {
    uint place = 0u, tile = 0u;
    for (uint e = 0u; e < experts; ++e) {
      places[e] = place;
      first_tiles[e] = tile;
      place += counts[e];
      tile += (counts[e] + tile_pairs - 1u) / tile_pairs;
    }
    tile_count = tile;
  }
  barrier();
  for (uint e = lane; e < experts; e += LANES) {
    for (uint first = 0u, tile = first_tiles[e]; first < counts[e]; first += tile_pairs, ++tile) {
      tiles[tile] = uvec4(e, places[e] + first, min(tile_pairs, counts[e] - first), 0u);
    }
  }
  for (uint tile = tile_count + lane; tile < most_tiles; tile += LANES) tiles[tile] = uvec4(0u);
  barrier();
  for (uint i = lane; i < pairs; i += LANES) order[atomicAdd(places[chosen[i]], 1u)] = i;
}
