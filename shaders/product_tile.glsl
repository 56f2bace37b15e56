// A tile: what the families of products share behind their TILE_ROWS, TILE_COLUMNS and INVOCATIONS (product.glsl). EXPERTS:
// one of a product with experts on matrix cores (product_matrix.glsl), with the pairs of one expert in the place of columns
// of the pass; a row's sum is that of all columns of the weight, in one chunk. MATRIX: tables of codes as well.

#ifdef EXPERTS
#extension GL_KHR_memory_scope_semantics : require

#include "expert_product.glsl"

#define chunk_columns cols
#define LEAST_POOL 0u

uint expert, pair_count;  // of the tile

bool has_column(uint first_column, uint c) { return c < pair_count; }
uint input_row(uint first_column, uint c) { return pair(min(c, pair_count - 1u)) / row_pairs; }
uint asked_columns(uint first_column) { return pair_count; }
#else
// Columns nobody asked for are computed as the last one, and not stored.
bool has_column(uint first_column, uint c) { return first_column + c < width; }
uint input_row(uint first_column, uint c) { return min(first_column + c, width - 1u); }
uint asked_columns(uint first_column) { return min(TILE_COLUMNS, width - first_column); }
#endif

// The family's shared memory as floats: TILE_COLUMNS * TILE_ROWS at least. It holds the lanes of load_factors(), then
// what the family puts there, and then, where the chunk's sums are not shared, the sum of element (c, r) at
// c * TILE_ROWS + r.
float pooled(uint i);
void put_pooled(uint i, float value);
vec4 pooled_quad(uint i);  // 4 i ... 4 i + 3

const uint FACTOR_LANES = 32u;       // at most TILE_ROWS
// Of the norm, by column. All of shared memory is in units of 16 bytes, so that what follows is aligned to them.
shared vec4 factors[(TILE_COLUMNS + 3u) / 4u];

// factors[c] = 1 / sqrt(mean of squares + eps), or 1 without a norm. The order of the sum is that of its blocks: block b
// goes to lane b mod 32, and lanes are added in order.
void load_factors(uint first_column) {
  for (uint i = gl_LocalInvocationIndex; i < TILE_COLUMNS * FACTOR_LANES; i += INVOCATIONS) {
    precise float sum = 0.0;
    if (norm_eps > 0.0 && has_column(first_column, i / FACTOR_LANES)) {
      uint row = input_row(first_column, i / FACTOR_LANES);
      for (uint b = i % FACTOR_LANES; b < square_blocks; b += FACTOR_LANES) sum = sum + in_squares[row * square_blocks + b];
    }
    put_pooled(i, sum);
  }
  barrier();
  for (uint c = gl_LocalInvocationIndex; c < TILE_COLUMNS; c += INVOCATIONS) {
    precise float sum = 0.0;
    for (uint l = 0u; l < FACTOR_LANES; ++l) sum = sum + pooled(c * FACTOR_LANES + l);
    precise float mean = sum / float(cols);
    precise float shifted = mean + norm_eps;
    factors[c / 4u][c % 4u] = norm_eps > 0.0 ? inversesqrt(shifted) : 1.0;
  }
  barrier();
}

// Elements of column c of the tile, times the norm's factor.
vec4 normed(vec4 x, uint c) {
  precise vec4 y = x * factors[c / 4u][c % 4u];
  return y;
}

#ifdef EXPERTS
uint input_of(uint first_column, uint c) { return activation_row(input_row(first_column, c), cols) / 4u; }

uint tile_weight_row(uint first_row) { return expert * expert_rows + first_row; }
uint weight_row(uint first_row, uint r) { return shard_row(r, tile_weight_row(first_row)); }

bool find_tile(uint first_column, uint first_row) {
  if (!find_pairs(expert, pair_count) || !in_shard(tile_weight_row(first_row))) return false;
  barrier();
  return true;
}

float tile_sum(uint c, uint r) { return pooled(c * TILE_ROWS + r); }

void begin_tile(uint first_column) {}
void finish(uint first_column, uint first_row) { finish_tile(pair_count, first_row, tile_weight_row(first_row)); }
#else
#if FINISHES_TILES
shared uvec4 is_last;
#endif

// Where the elements of column c of the tile begin, in quads. Rows of activations are padded to whole units of 64
// elements with zeros.
uint input_of(uint first_column, uint c) { return input_row(first_column, c) * in_stride; }

// Row r of the tile, as the weight's blocks have it: rows beyond its bands are computed as the last one, and not stored.
uint weight_row(uint first_row, uint r) { return min(first_row + r, (rows + BAND - 1u) / BAND * BAND - 1u); }

// Whether this workgroup has a tile.
bool find_tile(uint first_column, uint first_row) { return true; }

uint chunks() { return gl_NumWorkGroups.z; }

// Whether the sums of a chunk go to memory, where other workgroups find them.
bool shares_sums() { return FINISHES_TILES == 0 || chunks() > 1u; }

// Where the sums of rows row ... row + 3 of the whole weight lie until all are there; row is a multiple of 4.
uint partial_index(uint chunk, uint column, uint row) {
  return partial_base + (chunk * width + column) * ((total_rows + 3u) / 4u) + row / 4u;
}

// The sums over all chunks of rows row ... row + 3 of the whole weight.
vec4 shared_sum(uint column, uint row) {
  precise vec4 sum = vec4(0.0);
  for (uint z = 0u; z < chunks(); z += 4u) {  // loaded together, so that they are waited for once
    vec4 parts[4];
    [[unroll]] for (uint i = 0u; i < 4u; ++i) parts[i] = partials[partial_index(min(z + i, chunks() - 1u), column, row)];
    [[unroll]] for (uint i = 0u; i < 4u; ++i) {
      if (z + i < chunks()) sum = sum + parts[i];
    }
  }
  return sum;
}

#define DEVICE_BARRIER()                                                                                    \
  controlBarrier(gl_ScopeWorkgroup, gl_ScopeDevice, gl_StorageSemanticsBuffer | gl_StorageSemanticsShared, \
                 gl_SemanticsAcquireRelease)

#if FINISHES_TILES
// The sums over all chunks of elements (c, r) ... (c, r + 3) of the tile; r is a multiple of 4, and (c, r) is one of
// those asked for.
vec4 quad_sum(uint first_column, uint first_row, uint c, uint r) {
  if (!shares_sums()) return pooled_quad((c * TILE_ROWS + r) / 4u);
  return shared_sum(first_column + c, row_offset + first_row + r);
}

// Behind the writes of a chunk's sums: whether this workgroup is the last of the tile's, which finishes it. The barrier
// before the count makes the group's writes available to the device, the count orders the groups, and the barrier behind
// it makes what the others wrote visible to the whole group.
bool comes_last() {
  if (!shares_sums()) return true;
  uint counter = counter_base + gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  DEVICE_BARRIER();
  if (gl_LocalInvocationIndex == 0u) is_last.x = atomicAdd(arrived[counter], 1u) + 1u == chunks() ? 1u : 0u;
  DEVICE_BARRIER();
  if (is_last.x == 0u) return false;
  if (gl_LocalInvocationIndex == 0u) arrived[counter] = 0u;
  return true;
}

// The op's: writes the tile's elements. All invocations call it.
void finish_tile(uint first_column, uint first_row);

void begin_tile(uint first_column) {}
void finish(uint first_column, uint first_row) {
  if (comes_last()) finish_tile(first_column, first_row);
}
#else
// The op's, called by all invocations: before the product, and when the chunk's sums are written.
void begin_tile(uint first_column);
void finish(uint first_column, uint first_row);
#endif
#endif

#if MATRIX
f16vec2 half_pair(uint bits) { return unpackFloat2x16(bits); }

// The values that codes of four bits stand for in IQ4 and MXFP4, in the arithmetic of halves, which has all of them exactly.
// `word` is one of the block's. Pair i has the codes in bits 4 i of its two halves.

#if WEIGHT == 11 || WEIGHT == 12
// 1536 + value. The sixteen values are nearly a polynomial of their codes: one of degree four, computed in halves, is off
// by less than 0.44, and the last addition rounds to whole numbers, as the halves from 1024 to 2048 are. The constants are
// right for all codes, whether fma() rounds once or twice.
f16vec2 table_pair(uint word, const uint i) {
  uint bits = i == 0u ? word << 4 : word >> (4u * i - 4u);
  precise f16vec2 code = unpackFloat2x16((bits & 0x00F000F0u) | 0x54005400u);  // 64 + code
  precise f16vec2 x = fma(code, f16vec2(0.44970703125), f16vec2(-33.0));
  precise f16vec2 square = fma(x, x, f16vec2(26.375));
  precise f16vec2 slope = fma(square, f16vec2(0.033538818359375), x);
  precise f16vec2 value = fma(square, slope, f16vec2(1530.0));
  return value;
}
#elif WEIGHT == 13
// An eighth of twice the value. The bits of exponent and mantissa are those of the half u = 2^(exponent - 3) *
// (1 + mantissa / 2), which is right but for the exponent 0, where the value has no leading 1: 2 u - 1/4.
f16vec2 table_pair(uint word, const uint i) {
  const uint at = 4u * i;
  uint bits = at < 9u ? word << (9u - at) : word >> (at - 9u);
  precise f16vec2 u = unpackFloat2x16((bits & 0x0E000E00u) | 0x30003000u);
  precise f16vec2 magnitude = min(u, fma(u, f16vec2(2.0), f16vec2(-0.25)));
  return unpackFloat2x16(packFloat2x16(magnitude) | ((word << (12u - at)) & 0x80008000u));
}
#endif
#endif
