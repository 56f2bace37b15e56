// Pairs of a row of the pass and one of its experts: what the products with experts have in common, by multiply-adds
// (expert_product.glsl) and on matrix cores (expert_tile.glsl). A workgroup computes a tile of up to TILE_COLUMNS pairs of
// one expert and TILE_ROWS of that expert's rows. Workgroup (x, y): tile of pairs, tile of rows.

layout(constant_id = GROUPED_ID) const uint GROUPED = 0;  // 1: tiles are those that expert_groups.comp made; 0: one pair each

layout(set = 0, binding = 2) readonly buffer In { vec4 in_quads[]; };            // activations [rows, cols]
layout(set = 0, binding = 3) readonly buffer InSquares { float in_squares[]; };  // [rows, square_blocks]
layout(set = 0, binding = 4) readonly buffer Chosen { uint chosen[]; };          // [pairs]
layout(set = 0, binding = 5) readonly buffer Tiles { uvec4 tiles[]; };  // expert, first, count; as expert_groups.comp
layout(set = 0, binding = 6) readonly buffer Order { uint order[]; };   // pairs, those of an expert together
layout(set = 0, binding = 8) readonly buffer Bias { float bias[]; };    // of the weight's rows, where has_bias

layout(push_constant) uniform Push {
  uint shard_rows;     // of this shard of the weight
  uint shard_first;    // its first row in the whole weight
  uint cols;
  uint expert_rows;    // of the weight, of each expert
  uint row_pairs;      // pairs that read the same row of activations
  uint square_blocks;  // of a row of them
  float norm_eps;      // 0: no norm
  uint has_bias;
  OWN_PUSH             // what the op defines before it includes this file
};

// Those beyond `pair_count` are the last. In units of 16 bytes, to which all of shared memory is aligned.
shared uvec4 tile_pairs[(TILE_COLUMNS + 3u) / 4u];
uint pair(uint c) { return tile_pairs[c / 4u][c % 4u]; }
void put_pair(uint c, uint value) { tile_pairs[c / 4u][c % 4u] = value; }

// The tile's pairs; false where this workgroup has none.
bool find_pairs(out uint expert, out uint pair_count) {
  uint first = gl_WorkGroupID.x;
  expert = 0u;
  pair_count = 1u;
  if (GROUPED != 0u) {
    uvec4 tile = tiles[gl_WorkGroupID.x];
    expert = tile.x;
    first = tile.y;
    pair_count = tile.z;
    if (pair_count == 0u) return false;
    if (gl_LocalInvocationIndex < TILE_COLUMNS) {
      put_pair(gl_LocalInvocationIndex, order[first + min(gl_LocalInvocationIndex, pair_count - 1u)]);
    }
  } else {
    expert = chosen[first];
    if (gl_LocalInvocationIndex < TILE_COLUMNS) put_pair(gl_LocalInvocationIndex, first);
  }
  return true;
}

// Whether any of the tile's rows is in this shard.
bool in_shard(uint weight_row) {
  return weight_row + TILE_ROWS > shard_first && weight_row < shard_first + shard_rows;
}
// Row r of the tile in the shard; rows that are not here are computed as the shard's first, and not stored.
uint shard_row(uint r, uint weight_row) {
  uint own = weight_row + r - shard_first;
  return own < shard_rows ? own : 0u;
}

// The family's: the sum of row r of the tile and column c.
float tile_sum(uint c, uint r);
// With the row's bias.
float with_bias(uint c, uint r, uint weight_row) {
  precise float sum = tile_sum(c, r);
  if (has_bias != 0u) sum = sum + bias[weight_row + r];
  return sum;
}

// The op's: writes what it makes of the sums for rows first_row ... of the expert, those for which exists() holds.
void finish_tile(uint pair_count, uint first_row, uint weight_row);

// Whether row r of the tile is one of the expert's and in this shard; `weight_row` is that of row 0 in the whole weight.
bool exists(uint r, uint first_row, uint weight_row) {
  return first_row + r < expert_rows && weight_row + r - shard_first < shard_rows;
}
