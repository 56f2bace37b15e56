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
shared uint places[MAX_EXPERTS];  // of the expert's next pair in `order`
shared uvec2 sums[LANES];         // pairs and tiles of the lane's experts and those of the lanes before it

uint tiles_of(uint count) { return (count + tile_pairs - 1u) / tile_pairs; }

// sums = those of all lanes up to this one, each of which has put its own there.
void add_lanes_before(uint lane) {
  for (uint step = 1u; step < LANES; step *= 2u) {
    barrier();
    uvec2 before = lane >= step ? sums[lane - step] : uvec2(0u);
    barrier();
    sums[lane] += before;
  }
  barrier();
}

void main() {
  uint lane = gl_LocalInvocationIndex;
  for (uint e = lane; e < experts; e += LANES) counts[e] = 0u;
  barrier();
  for (uint i = lane; i < pairs; i += LANES) atomicAdd(counts[chosen[i]], 1u);
  barrier();
  // Each lane has some experts next to each other.
  uint each = (experts + LANES - 1u) / LANES, begin = min(lane * each, experts), end = min(begin + each, experts);
  uvec2 own = uvec2(0u);
  for (uint e = begin; e < end; ++e) own += uvec2(counts[e], tiles_of(counts[e]));
  sums[lane] = own;
  add_lanes_before(lane);
  uvec2 next = sums[lane] - own;
  for (uint e = begin; e < end; ++e) {
    places[e] = next.x;
    for (uint first = 0u; first < counts[e]; first += tile_pairs, ++next.y) {
      tiles[next.y] = uvec4(e, next.x + first, min(tile_pairs, counts[e] - first), 0u);
    }
    next.x += counts[e];
  }
  for (uint tile = sums[LANES - 1u].y + lane; tile < most_tiles; tile += LANES) tiles[tile] = uvec4(0u);
  barrier();
  for (uint i = lane; i < pairs; i += LANES) order[atomicAdd(places[chosen[i]], 1u)] = i;
}
