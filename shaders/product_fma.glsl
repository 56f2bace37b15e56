// The product by multiply-adds, for devices without matrix cores (product.glsl). An invocation owns R rows of the weight,
// LANES apart, and N columns. A chunk is cut into slices of 256 columns, which are dealt to SLICES rows of invocations: a
// slice is summed from zero in order, and slices are added in order. N, LANES, SLICES, R and STAGE say who computes what
// and change no bit.

layout(constant_id = 0) const uint N = 1;       // columns of the tile
layout(constant_id = 1) const uint LANES = 64;  // invocations along the rows, a multiple of 4
layout(constant_id = 2) const uint SLICES = 1;  // slices worked on at once
layout(constant_id = 3) const uint R = 1;
layout(constant_id = 4) const uint STAGE = 1;   // blocks of 32 columns whose activations are staged at once; divides 8
layout(local_size_x_id = 1, local_size_y_id = 2) in;

const uint TILE_ROWS = LANES * R;
const uint TILE_COLUMNS = N;
const uint INVOCATIONS = LANES * SLICES;
const uint SLICE = 256u;

#include "product_tile.glsl"

// One after the other: staged activations [SLICES, N, STAGE_QUADS]; sums of slices [SLICES, N, TILE_ROWS]; sums of the
// tile [N, TILE_ROWS].
const uint STAGE_QUADS = STAGE * 8u;
const uint STAGED = SLICES * N * STAGE_QUADS;
const uint SUM_QUADS = SLICES * N * TILE_ROWS / 4u;
const uint LARGER_QUADS = STAGED > SUM_QUADS ? STAGED : SUM_QUADS;
const uint POOL_UNITS = LARGER_QUADS > (LEAST_POOL + 3u) / 4u ? LARGER_QUADS : (LEAST_POOL + 3u) / 4u;
shared vec4 pool[POOL_UNITS];

float pooled(uint i) { return pool[i / 4u][i % 4u]; }
void put_pooled(uint i, float value) { pool[i / 4u][i % 4u] = value; }
vec4 pooled_quad(uint i) { return pool[i]; }

float part[R][N];   // of the slice under way
float total[R][N];  // of the chunk; complete in the first row of invocations

// The quads that an invocation stages, on their way.
const uint OWN_QUADS = (STAGED + INVOCATIONS - 1u) / INVOCATIONS;
vec4 activations[OWN_QUADS];

uint slice_of(uint i) { return i / (N * STAGE_QUADS); }
uint column_of(uint i) { return i / STAGE_QUADS % N; }

// Starts the loads of the activations of STAGE blocks from column `first` on, for each of the slices.
void fetch_activations(uint first_column, uint first) {
  [[unroll]] for (uint j = 0u; j < OWN_QUADS; ++j) {
    uint i = min(gl_LocalInvocationIndex + j * INVOCATIONS, STAGED - 1u);
    uint k = min(first + slice_of(i) * SLICE + 4u * (i % STAGE_QUADS), 4u * in_stride - 4u);
    activations[j] = in_quads[input_of(first_column, column_of(i)) + k / 4u];
  }
}

void stage() {
  [[unroll]] for (uint j = 0u; j < OWN_QUADS; ++j) {
    uint i = gl_LocalInvocationIndex + j * INVOCATIONS;
    if (i < STAGED) pool[i] = normed(activations[j], column_of(i));
  }
}

RawBlock raw[R];  // the block that comes next
uvec2 begins[R];  // of the rows

// Columns beyond the weight's blocks are computed as the last ones, and not added.
void fetch_blocks(uint b) {
  [[unroll]] for (uint r = 0u; r < R; ++r) raw[r] = fetch_block(begins[r], min(b, blocks_of(cols) - 1u));
}

// part += block b of the rows, times the staged block at quad `from` of column 0. The block behind it is on its way
// meanwhile.
void add_block(uint b, uint from) {
  float w[R][32];
  [[unroll]] for (uint r = 0u; r < R; ++r) decode_block(raw[r], b, w[r]);
  fetch_blocks(b + 1u);
  [[unroll]] for (uint q = 0u; q < 8u; ++q) {
    [[unroll]] for (uint c = 0u; c < N; ++c) {
      vec4 x = pool[from + c * STAGE_QUADS + q];
      [[unroll]] for (uint r = 0u; r < R; ++r) {
        [[unroll]] for (uint i = 0u; i < 4u; ++i) part[r][c] = fma(w[r][4u * q + i], x[i], part[r][c]);
      }
    }
  }
}

// part = the slice of 256 columns from `first` + SLICE * gl_LocalInvocationID.y on.
void sum_slice(uint first_column, uint first, uint end) {
  [[unroll]] for (uint r = 0u; r < R; ++r) {
    [[unroll]] for (uint c = 0u; c < N; ++c) part[r][c] = 0.0;
  }
  uint column = first + gl_LocalInvocationID.y * SLICE;
  fetch_activations(first_column, first);
  fetch_blocks(column / 32u);
  for (uint k = 0u; k < SLICE; k += 32u * STAGE) {
    barrier();
    stage();
    barrier();
    if (k + 32u * STAGE < SLICE) fetch_activations(first_column, first + k + 32u * STAGE);
    uint from = gl_LocalInvocationID.y * N * STAGE_QUADS;
    for (uint s = 0u; s < STAGE && column < end; ++s) {
      add_block(column / 32u, from);
      from += 8u;
      column += 32u;
    }
  }
}

// total += the slices worked on, in order.
void add_slices(uint first, uint end) {
  if (SLICES == 1u) {
    [[unroll]] for (uint r = 0u; r < R; ++r) {
      [[unroll]] for (uint c = 0u; c < N; ++c) {
        precise float sum = total[r][c] + part[r][c];
        total[r][c] = sum;
      }
    }
    return;
  }
  barrier();
  uint lane = gl_LocalInvocationID.x;
  [[unroll]] for (uint r = 0u; r < R; ++r) {
    [[unroll]] for (uint c = 0u; c < N; ++c) {
      put_pooled((gl_LocalInvocationID.y * N + c) * TILE_ROWS + r * LANES + lane, part[r][c]);
    }
  }
  barrier();
  if (gl_LocalInvocationID.y != 0u) return;
  for (uint s = 0u; s < SLICES && first + s * SLICE < end; ++s) {
    [[unroll]] for (uint r = 0u; r < R; ++r) {
      [[unroll]] for (uint c = 0u; c < N; ++c) {
        precise float sum = total[r][c] + pooled((s * N + c) * TILE_ROWS + r * LANES + lane);
        total[r][c] = sum;
      }
    }
  }
}

// Leaves the chunk's sums where quad_sum() finds them.
void store_sums(uint first_column, uint first_row) {
  barrier();
  if (gl_LocalInvocationID.y == 0u) {
    [[unroll]] for (uint r = 0u; r < R; ++r) {
      uint row = r * LANES + gl_LocalInvocationID.x;
      [[unroll]] for (uint c = 0u; c < N; ++c) {
        if (!shares_sums()) {
          put_pooled(c * TILE_ROWS + row, total[r][c]);
        } else if (first_row + row < rows && first_column + c < width) {
          uint index = partial_index(gl_WorkGroupID.z, first_column + c, row_offset + first_row + row / 4u * 4u);
          partials[index][row % 4u] = total[r][c];
        }
      }
    }
  }
  barrier();
}

void main() {
  uint first_column = gl_WorkGroupID.x * N, first_row = gl_WorkGroupID.y * TILE_ROWS;
  // Rows beyond the weight's bands are computed as the last one, and not stored.
  uint last = (rows + BAND - 1u) / BAND * BAND - 1u;
  [[unroll]] for (uint r = 0u; r < R; ++r) {
    begins[r] = blocks_begin(min(first_row + r * LANES + gl_LocalInvocationID.x, last), cols);
  }
  begin_tile(first_column);
  load_factors(first_column);
  [[unroll]] for (uint r = 0u; r < R; ++r) {
    [[unroll]] for (uint c = 0u; c < N; ++c) total[r][c] = 0.0;
  }
  uint begin = gl_WorkGroupID.z * chunk_columns;
  uint end = min(begin + chunk_columns, cols);
  for (uint first = begin; first < end; first += SLICE * SLICES) {
    sum_slice(first_column, first, end);
    add_slices(first, end);
  }
  store_sums(first_column, first_row);
  finish(first_column, first_row);
}
