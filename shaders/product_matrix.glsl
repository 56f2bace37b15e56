// The product on matrix cores (product.glsl): f16 operands, f32 sums. The columns of a chunk are worked on in steps of STEP;
// of each, the weights of the tile's rows are decoded to f16 in shared memory once for all of its columns, the activations
// are rounded to f16 behind the norm's factor, and each subgroup multiplies ROW_TILES * TM rows with all columns of the
// tile.
//
// A sum is made of products of one shape, TK columns of the weight each, in ascending order, at every width: columns
// nobody asked for are zeros. What a matrix core does inside of such a product is the hardware's own; that it does the
// same for every column, wherever it stands, is what the self-test checks (engine/session/self_test.cpp).

#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require

layout(constant_id = 0) const uint TILE_COLUMNS = 16;  // a multiple of TN
layout(constant_id = 1) const uint INVOCATIONS = 32;   // SUBGROUPS whole subgroups
layout(constant_id = 2) const uint SUBGROUPS = 1;
layout(constant_id = 3) const uint TM = 16;  // rows, columns and depth of the device's matrices
layout(constant_id = 4) const uint TN = 16;
layout(constant_id = 5) const uint TK = 16;
layout(constant_id = 6) const uint ROW_TILES = 1;  // of a subgroup
layout(constant_id = 7) const uint STEP = 32;      // columns of the weight staged at once: 32, 64 or 128
layout(constant_id = 8) const uint AHEAD = 1;      // steps whose weights are under way: 1 or 2
layout(local_size_x_id = 1) in;

const uint TILE_ROWS = SUBGROUPS * ROW_TILES * TM;
const uint COLUMN_TILES = TILE_COLUMNS / TN;

#include "product_tile.glsl"

// A block of 32 columns of a row as pairs of halves: scale * code + minimum in the arithmetic of halves where the codes
// allow it.
//
// The columns of a block stand in the order in which they are cheapest to decode; activations are staged in the same
// one (quads_of_unit), so that a sum has the same products. Codes become halves by their bits: 0x6400 | code is
// 1024 + code.

#if WEIGHT >= 4
#define DECODES_PAIRS 1
#else
#define DECODES_PAIRS 0
#endif

#if DECODES_PAIRS
// Codes 2p and 2p + 1 of the block in the low bits of the two halves of a word; four bits higher where high_nibbles(p),
// which saves the shift of every other one.
#if WEIGHT == 4 || MAIN == 4
bool high_nibbles(const uint p) { return p % 2u == 1u; }
#else
bool high_nibbles(const uint p) { return false; }
#endif

uint code_pair(RawBlock raw, const uint p) {
#if WEIGHT == 4
  return (raw.units[0][p / 4u] >> (8u * (p % 4u / 2u))) & (high_nibbles(p) ? 0x00F000F0u : 0x000F000Fu);
#else
#if MAIN == 4
  const uint place = high_nibbles(p) ? 8u : 4u;  // of the upper bits
  uint codes = (raw.bits.main_[p / 4u] >> (8u * (p % 4u / 2u))) & (high_nibbles(p) ? 0x00F000F0u : 0x000F000Fu);
#else
  uint codes = (raw.bits.main_[p / 8u] >> (2u * (p % 8u))) & 0x00030003u;
#endif
#if HIGH == 1 && MAIN == 4
  codes |= ((raw.bits.high[0] >> p) & 0x00010001u) << place;
#elif HIGH == 1
  uint bits = raw.bits.high[0] >> (16u * (p / 8u) + p % 8u);
  codes |= (bits & 1u) << 2 | (bits & 0x100u) << 10;
#elif HIGH == 2
  uint bits = p < 8u ? (raw.bits.high[0] & 0xFFFFu) | raw.bits.high[1] << 16
                     : raw.bits.high[0] >> 16 | (raw.bits.high[1] & 0xFFFF0000u);
  codes |= ((bits >> (2u * (p % 8u))) & 0x00030003u) << place;
#endif
  return codes;
#endif
}
#endif

void decode_halves(RawBlock raw, uint b, out uint pairs[16]) {
#if WEIGHT >= 11
  float d = block_scale(raw.scale, b, raw.factor, 0u).x;
#if WEIGHT == 13
  precise float eighths = min(8.0 * d, 32768.0);
  f16vec2 scale = half_pair(packHalf2x16(vec2(eighths)));
#else
  f16vec2 scale = half_pair(packHalf2x16(vec2(d)));
#endif
  [[unroll]] for (uint p = 0u; p < 16u; ++p) {
    f16vec2 value = table_pair(raw.bits.main_[p / 4u], p % 4u);
#if WEIGHT != 13
    precise f16vec2 centred = value - float16_t(1536.0);
    value = centred;
#endif
    precise f16vec2 w = value * scale;
    pairs[p] = packFloat2x16(w);
  }
#elif DECODES_PAIRS
#if WEIGHT == 4
  f16vec2 both = half_pair(raw.scale);
  f16vec2 scale[2] = {both.xx, both.xx};
  f16vec2 minimum[2] = {both.yy, both.yy};
#else
  vec2 d[2];
  d[0] = block_scale(raw.scale, b, raw.factor, 0u);
  d[1] = HALVES == 2 ? block_scale(raw.scale, b, raw.factor, 1u) : d[0];
  f16vec2 scale[2], minimum[2];
#if MAIN == 4
  // A pair has a column of each half of the block.
  scale[0] = scale[1] = half_pair(packHalf2x16(vec2(d[0].x, d[1].x)));
  minimum[0] = minimum[1] = half_pair(packHalf2x16(vec2(d[0].y, d[1].y)));
#else
  [[unroll]] for (uint h = 0u; h < 2u; ++h) {
    scale[h] = half_pair(packHalf2x16(d[h].xx));
    minimum[h] = half_pair(packHalf2x16(d[h].yy));
  }
#endif
#endif
#if WEIGHT == 7
  const float16_t zero = float16_t(1028.0);
#elif WEIGHT == 10
  const float16_t zero = float16_t(1056.0);
#else
  const float16_t zero = float16_t(1024.0);
#endif
  [[unroll]] for (uint p = 0u; p < 16u; ++p) {
    // Exact in either form.
    f16vec2 bits = half_pair(code_pair(raw, p) | 0x64006400u);
    precise f16vec2 low = bits - zero;
    precise f16vec2 high = fma(bits, f16vec2(0.0625), f16vec2(float16_t(960.0) - zero));
    f16vec2 code = high_nibbles(p) ? high : low;
    precise f16vec2 w = fma(code, scale[p / 8u], minimum[p / 8u]);
    pairs[p] = packFloat2x16(w);
  }
#elif WEIGHT == 1
  [[unroll]] for (uint p = 0u; p < 16u; ++p) pairs[p] = raw.units[p / 4u][p % 4u];
#elif WEIGHT == 3
  f16vec2 scale = half_pair(packHalf2x16(vec2(uintBitsToFloat(raw.scale))));
  [[unroll]] for (uint p = 0u; p < 16u; ++p) {
    uint word = raw.units[p / 8u][p / 2u % 4u] >> (8u * (p % 2u));
    precise f16vec2 code = half_pair((word & 0x00FF00FFu ^ 0x00800080u) | 0x64006400u) - float16_t(1152.0);
    precise f16vec2 w = code * scale;
    pairs[p] = packFloat2x16(w);
  }
#else
  float w[32];
  decode_block(raw, b, w);
  [[unroll]] for (uint p = 0u; p < 16u; ++p) pairs[p] = packHalf2x16(vec2(w[2u * p], w[2u * p + 1u]));
#endif
}

// The first columns of the two quads that make up unit u (8 columns as they stand) of a block.
uvec2 quads_of_unit(uint u) {
#if WEIGHT == 4 || (DECODES_PAIRS && MAIN == 4)
  return uvec2(4u * u, 16u + 4u * u);
#elif DECODES_PAIRS
  return uvec2(16u * (u / 2u) + 4u * (u % 2u), 16u * (u / 2u) + 4u * (u % 2u) + 8u);
#else
  return uvec2(8u * u, 8u * u + 4u);
#endif
}

// The range of halves; what is beyond would become infinite.
uint to_halves(float a, float b) { return packHalf2x16(clamp(vec2(a, b), -65504.0, 65504.0)); }

// The unit made of the quads that begin there, in the order of the weights.
uvec4 unit_of_quads(vec4 a, vec4 b) {
#if DECODES_PAIRS
  return uvec4(to_halves(a.x, b.x), to_halves(a.y, b.y), to_halves(a.z, b.z), to_halves(a.w, b.w));
#elif WEIGHT == 3
  return uvec4(to_halves(a.x, a.z), to_halves(a.y, a.w), to_halves(b.x, b.z), to_halves(b.y, b.w));
#else
  return uvec4(to_halves(a.x, a.y), to_halves(a.z, a.w), to_halves(b.x, b.y), to_halves(b.z, b.w));
#endif
}

// Shared memory in units of eight halves; a unit more than STEP has to a row, so that rows begin in different banks.
// Weights [TILE_ROWS, STRIDE], then activations [TILE_COLUMNS, STRIDE]; at the end the tile's sums [TILE_COLUMNS, TILE_ROWS].
const uint STRIDE = STEP / 8u + 1u;
const uint STAGED = (TILE_ROWS + TILE_COLUMNS) * STRIDE;
const uint SUM_UNITS = TILE_COLUMNS * TILE_ROWS / 4u;
const uint LARGER_UNITS = STAGED > SUM_UNITS ? STAGED : SUM_UNITS;
const uint POOL_UNITS = LARGER_UNITS > (LEAST_POOL + 3u) / 4u ? LARGER_UNITS : (LEAST_POOL + 3u) / 4u;
shared uvec4 pool[POOL_UNITS];

float pooled(uint i) { return uintBitsToFloat(pool[i / 4u][i % 4u]); }
void put_pooled(uint i, float value) { pool[i / 4u][i % 4u] = floatBitsToUint(value); }
vec4 pooled_quad(uint i) { return uintBitsToFloat(pool[i]); }

// What an invocation stages: blocks of 32 columns of a row, and units of eight activations. A subgroup has rows of the
// same block.
const uint SUBGROUP = INVOCATIONS / SUBGROUPS;
const uint BLOCKS = TILE_ROWS * (STEP / 32u);
const uint OWN_BLOCKS = (BLOCKS + INVOCATIONS - 1u) / INVOCATIONS;
const uint UNITS = TILE_COLUMNS * (STEP / 8u);
const uint OWN_UNITS = (UNITS + INVOCATIONS - 1u) / INVOCATIONS;

// Dense weights are enough bytes under way in one step, and too many for registers in two.
#if WEIGHT <= 2
const uint SLOTS = 1u;
#else
const uint SLOTS = AHEAD;
#endif

RawBlock raw[SLOTS][OWN_BLOCKS];
uvec2 begins[OWN_BLOCKS];  // of the blocks' rows
vec4 activations[OWN_UNITS][2];
uint columns_begin[OWN_UNITS];  // of the units' columns
uint asked_units;               // of columns of the tile that somebody asked for

// The first of the blocks that the subgroup stages together, of those numbered i; one past the last where there is none.
uint first_block(uint i) { return min(gl_SubgroupID * SUBGROUP + i * INVOCATIONS, BLOCKS); }

void find_begins(uint first_column, uint first_row) {
  [[unroll]] for (uint i = 0u; i < OWN_BLOCKS; ++i) {
    begins[i] = blocks_begin(weight_row(first_row, first_block(i) % TILE_ROWS + gl_SubgroupInvocationID), cols);
  }
  asked_units = asked_columns(first_column) * (STEP / 8u);
  [[unroll]] for (uint i = 0u; i < OWN_UNITS; ++i) {
    columns_begin[i] = input_of(first_column, (gl_LocalInvocationIndex + i * INVOCATIONS) / (STEP / 8u));
  }
}

// Starts the loads of the activations of the step at column k; the norm is applied as they are staged, so that nothing
// waits for them here.
void fetch_activations(uint k) {
  [[unroll]] for (uint i = 0u; i < OWN_UNITS; ++i) {
    uint at = gl_LocalInvocationIndex + i * INVOCATIONS, unit = at % (STEP / 8u);
    if (at < asked_units) {
      uvec2 quads = k + unit / 4u * 32u + quads_of_unit(unit % 4u);
      activations[i][0] = in_quads[columns_begin[i] + quads.x / 4u];
      activations[i][1] = in_quads[columns_begin[i] + quads.y / 4u];
    }
  }
}

// Starts the loads of the weights of the step at column k. Blocks beyond the chunk's, which ends at column `end`, are its
// last one again: it is in a cache, and what comes of it is not used, or meets activations that are 0.
void fetch_weights(uint k, uint end, const uint slot) {
  uint last = (end - 1u) / 32u;
  [[unroll]] for (uint i = 0u; i < OWN_BLOCKS; ++i) {
    raw[slot][i] = fetch_block(begins[i], min(k / 32u + first_block(i) / TILE_ROWS, last));
  }
}

// The columns that nobody asked for, which stay zeros.
void clear_columns() {
  for (uint at = asked_units + gl_LocalInvocationIndex; at < UNITS; at += INVOCATIONS) {
    pool[(TILE_ROWS + at / (STEP / 8u)) * STRIDE + at % (STEP / 8u)] = uvec4(0u);
  }
}

// Puts what was loaded for the step at column k into shared memory.
void stage(uint k, const uint slot) {
  [[unroll]] for (uint i = 0u; i < OWN_BLOCKS; ++i) {
    uint at = first_block(i);
    if (at < BLOCKS) {
      uint pairs[16];
      decode_halves(raw[slot][i], k / 32u + at / TILE_ROWS, pairs);
      uint to = (at % TILE_ROWS + gl_SubgroupInvocationID) * STRIDE + at / TILE_ROWS * 4u;
      [[unroll]] for (uint u = 0u; u < 4u; ++u) {
        pool[to + u] = uvec4(pairs[4u * u], pairs[4u * u + 1u], pairs[4u * u + 2u], pairs[4u * u + 3u]);
      }
    }
  }
  [[unroll]] for (uint i = 0u; i < OWN_UNITS; ++i) {
    uint at = gl_LocalInvocationIndex + i * INVOCATIONS;
    if (at < asked_units) {
      uint c = at / (STEP / 8u);
      pool[(TILE_ROWS + c) * STRIDE + at % (STEP / 8u)] =
          unit_of_quads(normed(activations[i][0], c), normed(activations[i][1], c));
    }
  }
}

coopmat<float, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator> sums[ROW_TILES][COLUMN_TILES];

void add_products(uint row) {
  [[unroll]] for (uint k = 0u; k < STEP; k += TK) {
    coopmat<float16_t, gl_ScopeSubgroup, TM, TK, gl_MatrixUseA> a[ROW_TILES];
    [[unroll]] for (uint m = 0u; m < ROW_TILES; ++m) {
      coopMatLoad(a[m], pool, (row + m * TM) * STRIDE + k / 8u, STRIDE, gl_CooperativeMatrixLayoutRowMajor);
    }
    [[unroll]] for (uint n = 0u; n < COLUMN_TILES; ++n) {
      coopmat<float16_t, gl_ScopeSubgroup, TK, TN, gl_MatrixUseB> b;
      coopMatLoad(b, pool, (TILE_ROWS + n * TN) * STRIDE + k / 8u, STRIDE, gl_CooperativeMatrixLayoutColumnMajor);
      [[unroll]] for (uint m = 0u; m < ROW_TILES; ++m) sums[m][n] = coopMatMulAdd(a[m], b, sums[m][n]);
    }
  }
}

// Leaves the chunk's sums where quad_sum() finds them.
void store_sums(uint first_column, uint first_row, uint row) {
  barrier();
  [[unroll]] for (uint m = 0u; m < ROW_TILES; ++m) {
    [[unroll]] for (uint n = 0u; n < COLUMN_TILES; ++n) {
      coopMatStore(sums[m][n], pool, (n * TN * TILE_ROWS + row + m * TM) / 4u, TILE_ROWS / 4u,
                   gl_CooperativeMatrixLayoutColumnMajor);
    }
  }
  barrier();
#ifndef EXPERTS  // whose columns are one chunk
  if (!shares_sums()) return;
  for (uint i = gl_LocalInvocationIndex; i < TILE_ROWS / 4u * TILE_COLUMNS; i += INVOCATIONS) {
    uint c = i / (TILE_ROWS / 4u), r = 4u * (i % (TILE_ROWS / 4u));
    if (first_row + r < rows && first_column + c < width) {
      partials[partial_index(gl_WorkGroupID.z, first_column + c, row_offset + first_row + r)] = pooled_quad(i);
    }
  }
#endif
}

// sums += the step at column k, whose weights are in `slot`. What comes next is loaded in any case: a branch there would
// have compilers wait for more than they need. Loads come back in order, so what is needed first is asked for first.
void multiply_step(uint k, uint end, uint row, const uint slot) {
  barrier();
  stage(k, slot);
  barrier();
  fetch_activations(k + STEP < end ? k + STEP : k);
  fetch_weights(k + SLOTS * STEP, end, slot);
  add_products(row);
}

void main() {
  uint first_column = gl_WorkGroupID.x * TILE_COLUMNS, first_row = gl_WorkGroupID.y * TILE_ROWS;
  uint row = gl_SubgroupID * ROW_TILES * TM;  // of the tile: the subgroup's first
  if (!find_tile(first_column, first_row)) return;
  uint begin = gl_WorkGroupID.z * chunk_columns;
  uint end = min(begin + chunk_columns, cols);
  find_begins(first_column, first_row);
  [[unroll]] for (uint slot = 0u; slot < SLOTS; ++slot) fetch_weights(begin + slot * STEP, end, slot);
  fetch_activations(begin);
  begin_tile(first_column);
  load_factors(first_column);
  clear_columns();
  [[unroll]] for (uint m = 0u; m < ROW_TILES; ++m) {
    [[unroll]] for (uint n = 0u; n < COLUMN_TILES; ++n) {
      sums[m][n] = coopmat<float, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator>(0.0);
    }
  }
  for (uint k = begin;;) {
    multiply_step(k, end, row, 0u);
    k += STEP;
    if (k >= end) break;
    if (SLOTS > 1u) {
      multiply_step(k, end, row, 1u);
      k += STEP;
      if (k >= end) break;
    }
  }
  store_sums(first_column, first_row, row);
  finish(first_column, first_row);
}
