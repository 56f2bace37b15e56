// Products of pairs of a row of the pass and one of its experts: what expert_swiglu.comp and expert_products.comp share. A
// workgroup computes a tile of up to TILE_COLUMNS pairs of one expert and TILE_ROWS of that expert's rows. Workgroup (x, y):
// tile of pairs, tile of rows.
//
// EXPERTS: the product is that of product_matrix.glsl, and of this file product_tile.glsl takes the pairs. Otherwise it is
// made of multiply-adds: a sum has slices of 256 columns, each summed from zero in order, which are added in order. So it
// depends on the weight's columns alone, never on N, SLICES or on which pairs share a tile.

#ifdef EXPERTS
#define GROUPED_ID 9
#else
layout(constant_id = 0) const uint N = 1;       // pairs of a tile
layout(constant_id = 1) const uint LANES = 64;  // rows of a tile
layout(constant_id = 2) const uint SLICES = 4;  // slices worked on at once
layout(local_size_x_id = 1, local_size_y_id = 2) in;

const uint TILE_COLUMNS = N;
const uint TILE_ROWS = LANES;
#define GROUPED_ID 3
#endif

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

#ifndef EXPERTS
const uint SLICE = 256u;
const uint SLICE_QUADS = SLICE / 4u;
const uint INVOCATIONS = LANES * SLICES;
const uint FACTOR_LANES = 32u;

shared vec4 staged[SLICES * N * SLICE_QUADS];  // activations [SLICES, N, SLICE_QUADS]
shared float sums[SLICES * N * LANES];         // of slices [SLICES, N, LANES]; at the end of the tile [N, LANES]
shared float factors[N];                       // of the norm
float total[N];

// factors[c] = 1 / sqrt(mean of squares + eps), or 1 without a norm: block b goes to lane b mod 32, lanes are added in
// order.
void load_factors() {
  for (uint i = gl_LocalInvocationIndex; i < N * FACTOR_LANES; i += INVOCATIONS) {
    precise float sum = 0.0;
    if (norm_eps > 0.0) {
      uint row = pair(i / FACTOR_LANES) / row_pairs;
      for (uint b = i % FACTOR_LANES; b < square_blocks; b += FACTOR_LANES) sum = sum + in_squares[row * square_blocks + b];
    }
    staged[i / 4u][i % 4u] = sum;
  }
  barrier();
  for (uint c = gl_LocalInvocationIndex; c < N; c += INVOCATIONS) {
    precise float sum = 0.0;
    for (uint l = 0u; l < FACTOR_LANES; ++l) {
      uint i = c * FACTOR_LANES + l;
      sum = sum + staged[i / 4u][i % 4u];
    }
    precise float mean = sum / float(cols);
    precise float shifted = mean + norm_eps;
    factors[c] = norm_eps > 0.0 ? inversesqrt(shifted) : 1.0;
  }
}

// Stages the activations of the slices from column `first` on.
void stage(uint first) {
  for (uint i = gl_LocalInvocationIndex; i < SLICES * N * SLICE_QUADS; i += INVOCATIONS) {
    uint c = i / SLICE_QUADS % N, k = first + i / (N * SLICE_QUADS) * SLICE + 4u * (i % SLICE_QUADS);
    precise vec4 x = vec4(0.0);
    if (k < cols) {
      uint place = activation_row(pair(c) / row_pairs, cols);
      x = in_quads[(place + k) / 4u] * factors[c];
    }
    [[unroll]] for (uint e = 0u; e < 4u; ++e) staged[i][e] = k + e < cols ? x[e] : 0.0;
  }
}

// sums = own slice of those from column `first` on, for the row whose blocks begin there.
void sum_slice(uvec2 begin, uint first) {
  float part[N];
  [[unroll]] for (uint c = 0u; c < N; ++c) part[c] = 0.0;
  uint column = first + gl_LocalInvocationID.y * SLICE, last = blocks_of(cols) - 1u;
  RawBlock raw = fetch_block(begin, min(column / 32u, last));
  uint from = gl_LocalInvocationID.y * N * SLICE_QUADS;
  for (uint b = 0u; b < SLICE / 32u && column < cols; ++b) {
    float w[32];
    decode_block(raw, column / 32u, w);
    raw = fetch_block(begin, min(column / 32u + 1u, last));
    [[unroll]] for (uint q = 0u; q < 8u; ++q) {
      [[unroll]] for (uint c = 0u; c < N; ++c) {
        vec4 x = staged[from + c * SLICE_QUADS + q];
        [[unroll]] for (uint i = 0u; i < 4u; ++i) part[c] = fma(w[4u * q + i], x[i], part[c]);
      }
    }
    from += 8u;
    column += 32u;
  }
  [[unroll]] for (uint c = 0u; c < N; ++c) {
    sums[(gl_LocalInvocationID.y * N + c) * LANES + gl_LocalInvocationID.x] = part[c];
  }
}

// Leaves the products of the tile's pairs with rows first_row ... of the expert in `sums`.
void multiply_tile(uint row) {
  uvec2 begin = blocks_begin(row, cols);
  barrier();
  load_factors();
  [[unroll]] for (uint c = 0u; c < N; ++c) total[c] = 0.0;
  for (uint first = 0u; first < cols; first += SLICE * SLICES) {
    barrier();
    stage(first);
    barrier();
    sum_slice(begin, first);
    barrier();
    if (gl_LocalInvocationID.y == 0u) {
      for (uint s = 0u; s < SLICES && first + s * SLICE < cols; ++s) {
        [[unroll]] for (uint c = 0u; c < N; ++c) {
          precise float sum = total[c] + sums[(s * N + c) * LANES + gl_LocalInvocationID.x];
          total[c] = sum;
        }
      }
    }
  }
  barrier();
  if (gl_LocalInvocationID.y == 0u) {
    [[unroll]] for (uint c = 0u; c < N; ++c) sums[c * LANES + gl_LocalInvocationID.x] = total[c];
  }
  barrier();
}

float tile_sum(uint c, uint r) { return sums[c * LANES + r]; }

void main() {
  uint expert, pair_count;
  if (!find_pairs(expert, pair_count)) return;
  uint first_row = gl_WorkGroupID.y * LANES;
  uint weight_row = expert * expert_rows + first_row;
  if (!in_shard(weight_row)) return;
  multiply_tile(shard_row(gl_LocalInvocationID.x, weight_row));
  finish_tile(pair_count, first_row, weight_row);
}
#endif
