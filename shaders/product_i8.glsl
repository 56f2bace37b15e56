// The product on matrix cores in 8-bit integers (product.glsl): the activations of each block of 32 columns are rounded to
// 255 steps of their largest, the codes of the weights are integers as they are, and the sums of their products are exact.
// What a block gives is scaled in f32 and added in ascending order, so that a sum is the same at every width, whatever a
// matrix core does inside. The weights' scales, minima and codes are those of the other families.
//
// A block's share of a sum: sum of codes * (scale of the weight * scale of the activations); behind it, where weights have
// minima, minimum * (sum of the activations' codes * their scale). Types with a scale for each 16 columns have two shares.

#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require

layout(constant_id = 0) const uint TILE_COLUMNS = 16;  // a multiple of TN
layout(constant_id = 1) const uint INVOCATIONS = 32;   // SUBGROUPS whole subgroups
layout(constant_id = 2) const uint SUBGROUPS = 1;
layout(constant_id = 3) const uint TM = 16;  // rows, columns and depth of the device's matrices; TK: 8, 16 or 32
layout(constant_id = 4) const uint TN = 16;
layout(constant_id = 5) const uint TK = 16;
layout(constant_id = 6) const uint ROW_TILES = 1;  // of a subgroup
layout(constant_id = 7) const uint STEP = 32;      // columns of the weight staged at once: 32, 64 or 128
layout(local_size_x_id = 1) in;

const uint TILE_ROWS = SUBGROUPS * ROW_TILES * TM;
const uint COLUMN_TILES = TILE_COLUMNS / TN;

#include "product_tile.glsl"

// A block of 32 columns of a row as integers of 8 bits, four to a word; and the activations of a block in the order of the
// weights' codes.
//
// The order is the one that is cheapest to decode, as sums of integers are exact in any. Where a block has two scales,
// words 0 ... 3 have the codes of its first half.
//
// SCALES: of a block. MINIMA: whether a minimum goes with each.
// EXCHANGE: whether an eight of activations has bytes of two neighbours' words.

#if WEIGHT == 3
#define SCALES 1
#define MINIMA 0
#elif WEIGHT == 4
#define SCALES 1
#define MINIMA 1
#else
#define SCALES HALVES
#define MINIMA MINIMUM
#endif
#define EXCHANGE (WEIGHT == 5 || WEIGHT == 6 || WEIGHT == 7 || WEIGHT == 9 || WEIGHT == 10)

// By so many bits to the left, or to the right where they are fewer than none.
uint shifted(uint word, const int bits) { return bits < 0 ? word >> -bits : word << bits; }

// The codes less `zero`, where each is below 128.
uint less(uint codes, const uint zero) { return ((codes | 0x80808080u) - zero * 0x01010101u) ^ 0x80808080u; }

void decode_codes(RawBlock raw, out uint w[8]) {
#if WEIGHT == 3
  [[unroll]] for (uint j = 0u; j < 8u; ++j) w[j] = raw.units[j / 4u][j % 4u];
#elif WEIGHT == 4 || WEIGHT == 8
  // Word 2 j: columns 4 j and 4 j + 2 of both halves of the block; word 2 j + 1: those behind them.
  [[unroll]] for (uint j = 0u; j < 4u; ++j) {
#if WEIGHT == 4
    uint word = raw.units[0][j];
#else
    uint word = raw.bits.main_[j];
#endif
    w[2u * j] = word & 0x0F0F0F0Fu;
    w[2u * j + 1u] = (word >> 4) & 0x0F0F0F0Fu;
  }
#elif WEIGHT >= 11
  [[unroll]] for (uint j = 0u; j < 4u; ++j) {
    uint values[4];  // in the lower bytes of their halves
    [[unroll]] for (uint i = 0u; i < 4u; ++i) {
      f16vec2 value = table_pair(raw.bits.main_[j], i);
#if WEIGHT == 13
      precise f16vec2 centred = fma(value, f16vec2(8.0), f16vec2(1536.0));
      value = centred;
#endif
      values[i] = packFloat2x16(value) & 0x00FF00FFu;
    }
    w[2u * j] = values[0] | values[2] << 8;
    w[2u * j + 1u] = values[1] | values[3] << 8;
  }
#elif WEIGHT == 5 || WEIGHT == 9
  // Word j: columns j, j + 8, j + 16 and j + 24.
  [[unroll]] for (uint j = 0u; j < 8u; ++j) {
    const int i = int(j % 4u);
    w[j] = (shifted(raw.bits.main_[j / 4u], -4 * i) & 0x000F000Fu) |
           (shifted(raw.bits.main_[j / 4u + 2u], 8 - 4 * i) & 0x0F000F00u) |
           (shifted(raw.bits.high[0], 4 - int(j)) & 0x10101010u);
  }
#else
  // Word 4 h + i: columns i, i + 4, i + 8 and i + 12 of half h.
  [[unroll]] for (uint h = 0u; h < 2u; ++h) {
#if WEIGHT == 7
    uint bits = raw.bits.high[0] >> (16u * h);
    bits = (bits & 0xFFu) | (bits & 0xFF00u) << 8;
    bits = (bits | bits << 4) & 0x0F0F0F0Fu;
#elif WEIGHT == 10
    uint a = h == 0u ? (raw.bits.main_[0] & 0xFFFFu) | raw.bits.main_[2] << 16
                     : raw.bits.main_[0] >> 16 | (raw.bits.main_[2] & 0xFFFF0000u);
    uint b = h == 0u ? (raw.bits.main_[1] & 0xFFFFu) | raw.bits.main_[3] << 16
                     : raw.bits.main_[1] >> 16 | (raw.bits.main_[3] & 0xFFFF0000u);
#endif
    [[unroll]] for (uint j = 0u; j < 4u; ++j) {
      const int i = int(j);
#if WEIGHT == 6
      w[4u * h + j] = shifted(raw.bits.main_[h], -2 * i) & 0x03030303u;
#elif WEIGHT == 7
      uint code = (shifted(raw.bits.main_[h], -2 * i) & 0x03030303u) | (shifted(bits, 2 - i) & 0x04040404u);
      w[4u * h + j] = less(code, 4u);
#else
      uint code = (shifted(a, -4 * i) & 0x000F000Fu) | (shifted(b, 8 - 4 * i) & 0x0F000F00u) |
                  (shifted(raw.bits.high[h], 4 - 2 * i) & 0x30303030u);
      w[4u * h + j] = less(code, 32u);
#endif
    }
  }
#endif
}

// What codes of half h are multiplied by, and its minimum; b, the block.
vec2 scale_of_codes(RawBlock raw, uint b, uint h) {
#if WEIGHT == 3
  return vec2(uintBitsToFloat(raw.scale), 0.0);
#elif WEIGHT == 4
  return unpackHalf2x16(raw.scale);
#else
  return block_scale(raw.scale, b, raw.factor, h);
#endif
}

// The two quads of columns of a block that make up eight u of its activations, which become words 2 u and 2 u + 1.
uvec2 quads_of_eight(uint u) {
#if WEIGHT == 5 || WEIGHT == 9
  return uvec2(4u * (u % 2u) + u / 2u, 4u * (u % 2u) + u / 2u + 2u);
#elif WEIGHT == 3 || EXCHANGE
  return uvec2(2u * u, 2u * u + 1u);
#else
  return uvec2(u, u + 4u);
#endif
}

uint four_bytes(uint a, uint b, uint c, uint d) { return a | b << 8 | c << 16 | d << 24; }

// Words 2 u and 2 u + 1 of a block whose eights are in four invocations side by side; a, b: this one's quads as bytes.
uvec2 words_of_eight(uvec4 a, uvec4 b, uint u) {
#if WEIGHT == 3
  return uvec2(four_bytes(a.x, a.y, a.z, a.w), four_bytes(b.x, b.y, b.z, b.w));
#elif EXCHANGE
  // Elements of the quads that stand in the same place make up half a word; those of the neighbour's quads the other.
  bool odd = u % 2u == 1u;
  uint first = four_bytes(a.x, b.x, a.y, b.y), last = four_bytes(a.z, b.z, a.w, b.w);
  uint kept = odd ? last : first;
  uint got = subgroupShuffleXor(odd ? first : last, 1u);
  uint low = odd ? got : kept, high = odd ? kept : got;
  return uvec2((low & 0xFFFFu) | high << 16, low >> 16 | (high & 0xFFFF0000u));
#else
  return uvec2(four_bytes(a.x, a.z, b.x, b.z), four_bytes(a.y, a.w, b.y, b.w));
#endif
}

// Shared memory in units of 16 bytes, which hold the codes of UNIT columns; a unit more than needed has a row, so that
// rows begin in different banks. A part is what has one scale: a block or half of one. Matrices that are deeper than a
// part have zeros in place of the other half's codes.
const uint PARTS = uint(SCALES);
const uint UNIT = TK < 16u ? TK : 16u;
const uint BLOCK_UNITS = 32u / UNIT;  // of activations
const uint SPREAD = TK * PARTS > 32u ? 2u : 1u;
const uint STEP_BLOCKS = STEP / 32u;
const uint ROW_STRIDE = STEP_BLOCKS * BLOCK_UNITS * SPREAD + 1u;
const uint COLUMN_STRIDE = STEP_BLOCKS * BLOCK_UNITS + 1u;
// One after the other: codes of the weights [TILE_ROWS], of the activations [TILE_COLUMNS]; scales of the weights and, where
// they have them, minima [STEP_BLOCKS, PARTS, TILE_ROWS]; scales of the activations [STEP_BLOCKS, TILE_COLUMNS] and their
// scaled sums [STEP_BLOCKS, PARTS, TILE_COLUMNS]. At the end the tile's sums [TILE_COLUMNS, TILE_ROWS].
const uint COLUMNS_AT = TILE_ROWS * ROW_STRIDE;
const uint SCALES_AT = COLUMNS_AT + TILE_COLUMNS * COLUMN_STRIDE;
const uint MINIMA_AT = SCALES_AT + STEP_BLOCKS * PARTS * TILE_ROWS / 4u;
const uint STEPS_AT = MINIMA_AT + uint(MINIMA) * STEP_BLOCKS * PARTS * TILE_ROWS / 4u;
const uint CODE_SUMS_AT = STEPS_AT + STEP_BLOCKS * TILE_COLUMNS / 4u;
const uint STAGED = CODE_SUMS_AT + uint(MINIMA) * STEP_BLOCKS * PARTS * TILE_COLUMNS / 4u;
const uint SUM_UNITS = TILE_COLUMNS * TILE_ROWS / 4u;
const uint LARGER_UNITS = STAGED > SUM_UNITS ? STAGED : SUM_UNITS;
const uint POOL_UNITS = LARGER_UNITS > (LEAST_POOL + 3u) / 4u ? LARGER_UNITS : (LEAST_POOL + 3u) / 4u;
shared uvec4 pool[POOL_UNITS];

float pooled(uint i) { return uintBitsToFloat(pool[i / 4u][i % 4u]); }
void put_pooled(uint i, float value) { pool[i / 4u][i % 4u] = floatBitsToUint(value); }
vec4 pooled_quad(uint i) { return uintBitsToFloat(pool[i]); }

// What an invocation stages: blocks of 32 columns of a row, and eights of activations. A subgroup has rows of the same
// block; four invocations side by side have a block of activations.
const uint SUBGROUP = INVOCATIONS / SUBGROUPS;
const uint BLOCKS = TILE_ROWS * STEP_BLOCKS;
const uint OWN_BLOCKS = (BLOCKS + INVOCATIONS - 1u) / INVOCATIONS;
const uint EIGHTS = TILE_COLUMNS * (STEP / 8u);
const uint OWN_EIGHTS = (EIGHTS + INVOCATIONS - 1u) / INVOCATIONS;

RawBlock raw[OWN_BLOCKS];
uvec2 begins[OWN_BLOCKS];  // of the blocks' rows
vec4 activations[OWN_EIGHTS][2];
uint columns_begin[OWN_EIGHTS];  // of the eights' columns

// The first of the blocks that the subgroup stages together, of those numbered i; one past the last where there is none.
uint first_block(uint i) { return min(gl_SubgroupID * SUBGROUP + i * INVOCATIONS, BLOCKS); }
// The invocation's eight of those numbered i, which may be one past the last.
uint eight(uint i) { return gl_SubgroupID * SUBGROUP + gl_SubgroupInvocationID + i * INVOCATIONS; }

// Rows beyond the weight's bands are computed as the last one, and not stored.
void find_begins(uint first_column, uint first_row) {
  uint last = (rows + BAND - 1u) / BAND * BAND - 1u;
  [[unroll]] for (uint i = 0u; i < OWN_BLOCKS; ++i) {
    begins[i] = blocks_begin(min(first_row + first_block(i) % TILE_ROWS + gl_SubgroupInvocationID, last), cols);
  }
  [[unroll]] for (uint i = 0u; i < OWN_EIGHTS; ++i) {
    columns_begin[i] = input_of(first_column, min(eight(i), EIGHTS - 1u) / (STEP / 8u));
  }
}

// Starts the loads of the step at column k; the norm is applied as they are staged, so that nothing waits for them here.
// Blocks beyond the weight's are those of its end; their activations are 0.
void fetch_step(uint k) {
  [[unroll]] for (uint i = 0u; i < OWN_EIGHTS; ++i) {
    uint at = min(eight(i), EIGHTS - 1u) % (STEP / 8u);
    uvec2 quads = (k + at / 4u * 32u) / 4u + quads_of_eight(at % 4u);
    activations[i][0] = in_quads[columns_begin[i] + quads.x];
    activations[i][1] = in_quads[columns_begin[i] + quads.y];
  }
  [[unroll]] for (uint i = 0u; i < OWN_BLOCKS; ++i) {
    raw[i] = fetch_block(begins[i], min(k / 32u + first_block(i) / TILE_ROWS, blocks_of(cols) - 1u));
  }
}

void stage_weights(uint k) {
  [[unroll]] for (uint i = 0u; i < OWN_BLOCKS; ++i) {
    uint at = first_block(i);
    if (at < BLOCKS) {
      uint b = at / TILE_ROWS, row = at % TILE_ROWS + gl_SubgroupInvocationID;
      uint w[8];
      decode_codes(raw[i], w);
      uint to = row * ROW_STRIDE + b * BLOCK_UNITS * SPREAD;
      if (UNIT == 8u) {
        [[unroll]] for (uint u = 0u; u < 4u; ++u) pool[to + u] = uvec4(w[2u * u], w[2u * u + 1u], 0u, 0u);
      } else if (SPREAD == 2u) {
        pool[to] = uvec4(w[0], w[1], w[2], w[3]);
        pool[to + 1u] = pool[to + 2u] = uvec4(0u);
        pool[to + 3u] = uvec4(w[4], w[5], w[6], w[7]);
      } else {
        pool[to] = uvec4(w[0], w[1], w[2], w[3]);
        pool[to + 1u] = uvec4(w[4], w[5], w[6], w[7]);
      }
      [[unroll]] for (uint h = 0u; h < PARTS; ++h) {
        vec2 d = scale_of_codes(raw[i], k / 32u + b, h);
        put_pooled(4u * SCALES_AT + (b * PARTS + h) * TILE_ROWS + row, d.x);
        if (MINIMA == 1) put_pooled(4u * MINIMA_AT + (b * PARTS + h) * TILE_ROWS + row, d.y);
      }
    }
  }
}

// The activations of a block become multiples of their largest's 127th part. NaN and infinity, which are larger than
// all others as bits, make the scale NaN or infinite; what is too small to divide by becomes 0.
//
// Columns nobody asked for are left as they are: whatever comes of them is not stored.
void stage_activations(uint first_column) {
  [[unroll]] for (uint i = 0u; i < OWN_EIGHTS; ++i) {
    uint at = eight(i), c = at / (STEP / 8u);
    if (at < EIGHTS && first_column + c < width) {
      uint b = at % (STEP / 8u) / 4u, u = at % 4u;
      vec4 x[2] = {normed(activations[i][0], c), normed(activations[i][1], c)};
      uvec4 sizes = max(floatBitsToUint(x[0]) & 0x7FFFFFFFu, floatBitsToUint(x[1]) & 0x7FFFFFFFu);
      uint size = max(max(sizes.x, sizes.y), max(sizes.z, sizes.w));
      size = max(size, subgroupShuffleXor(size, 1u));
      size = max(size, subgroupShuffleXor(size, 2u));
      float largest = size < 0x0D800000u ? 0.0 : uintBitsToFloat(size);  // 2^-100
      precise float scale = largest * 0.007874015748;
      precise float inverse = largest == 0.0 ? 0.0 : 127.0 / largest;
      // 3 * 2^22, whose neighbours are integers: the lowest bits of the sum are the code.
      precise vec4 rounded[2] = {fma(x[0], vec4(inverse), vec4(12582912.0)), fma(x[1], vec4(inverse), vec4(12582912.0))};
      uvec4 codes[2] = {floatBitsToUint(rounded[0]), floatBitsToUint(rounded[1])};
      uvec2 w = words_of_eight(codes[0] & 0xFFu, codes[1] & 0xFFu, u);
      uint to = COLUMNS_AT + c * COLUMN_STRIDE + (b * 32u + 8u * u) / UNIT, half_unit = UNIT == 8u ? 0u : u % 2u * 2u;
      pool[to][half_unit] = w.x;
      pool[to][half_unit + 1u] = w.y;
      if (u == 0u) put_pooled(4u * STEPS_AT + b * TILE_COLUMNS + c, scale);
      if (MINIMA == 1) {
        uvec4 both = codes[0] + codes[1];
        uint sum = both.x + both.y + both.z + both.w - 8u * 0x4B400000u;
        sum += subgroupShuffleXor(sum, 1u);
        if (PARTS == 1u) sum += subgroupShuffleXor(sum, 2u);
        precise float scaled = scale * float(int(sum));
        if (u % (4u / PARTS) == 0u) put_pooled(4u * CODE_SUMS_AT + (b * PARTS + u / 2u) * TILE_COLUMNS + c, scaled);
      }
    }
  }
}

#define SUMS coopmat<float, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator>
#define COUNTS coopmat<int, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator>
SUMS sums[ROW_TILES][COLUMN_TILES];

// The same in all columns: TM numbers of rows from unit `from` on.
SUMS of_rows(uint from) {
  SUMS m;
  coopMatLoad(m, pool, from, 0u, gl_CooperativeMatrixLayoutColumnMajor);
  return m;
}
// The same in all rows: TN numbers of columns.
SUMS of_columns(uint from) {
  SUMS m;
  coopMatLoad(m, pool, from, 0u, gl_CooperativeMatrixLayoutRowMajor);
  return m;
}

// sums += the share of part h of the staged block b, of the subgroup's rows from `row` on.
void add_part(uint row, uint b, uint h) {
  const uint depth = SPREAD == 2u ? 1u : 32u / PARTS / TK;  // matrices of a part
  const uint part_units = BLOCK_UNITS * SPREAD / PARTS;
  const uint matrix_units = TK / UNIT;
  COUNTS counts[ROW_TILES][COLUMN_TILES];
  [[unroll]] for (uint d = 0u; d < depth; ++d) {
    coopmat<int8_t, gl_ScopeSubgroup, TM, TK, gl_MatrixUseA> a[ROW_TILES];
    [[unroll]] for (uint m = 0u; m < ROW_TILES; ++m) {
      uint from = (row + m * TM) * ROW_STRIDE + (b * PARTS + h) * part_units + d * matrix_units;
      coopMatLoad(a[m], pool, from, ROW_STRIDE, gl_CooperativeMatrixLayoutRowMajor);
    }
    [[unroll]] for (uint n = 0u; n < COLUMN_TILES; ++n) {
      coopmat<int8_t, gl_ScopeSubgroup, TK, TN, gl_MatrixUseB> x;
      uint of_part = SPREAD == 2u ? 0u : h * (BLOCK_UNITS / PARTS);
      uint from = COLUMNS_AT + n * TN * COLUMN_STRIDE + b * BLOCK_UNITS + of_part + d * matrix_units;
      coopMatLoad(x, pool, from, COLUMN_STRIDE, gl_CooperativeMatrixLayoutColumnMajor);
      [[unroll]] for (uint m = 0u; m < ROW_TILES; ++m) {
        if (d == 0u) counts[m][n] = COUNTS(0);
        counts[m][n] = coopMatMulAdd(a[m], x, counts[m][n]);
      }
    }
  }
  [[unroll]] for (uint m = 0u; m < ROW_TILES; ++m) {
    uint of_row = ((b * PARTS + h) * TILE_ROWS + row + m * TM) / 4u;
    SUMS scales = of_rows(SCALES_AT + of_row), minima;
    if (MINIMA == 1) minima = of_rows(MINIMA_AT + of_row);
    [[unroll]] for (uint n = 0u; n < COLUMN_TILES; ++n) {
      SUMS share = SUMS(counts[m][n]), steps = of_columns(STEPS_AT + (b * TILE_COLUMNS + n * TN) / 4u), code_sums;
      if (MINIMA == 1) code_sums = of_columns(CODE_SUMS_AT + ((b * PARTS + h) * TILE_COLUMNS + n * TN) / 4u);
      [[unroll]] for (uint i = 0u; i < sums[m][n].length(); ++i) {
        precise float scale = scales[i] * steps[i];
        float sum = fma(share[i], scale, sums[m][n][i]);
        if (MINIMA == 1) sum = fma(minima[i], code_sums[i], sum);
        sums[m][n][i] = sum;
      }
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
  if (!shares_sums()) return;
  for (uint i = gl_LocalInvocationIndex; i < TILE_ROWS / 4u * TILE_COLUMNS; i += INVOCATIONS) {
    uint c = i / (TILE_ROWS / 4u), r = 4u * (i % (TILE_ROWS / 4u));
    if (first_row + r < rows && first_column + c < width) {
      partials[partial_index(gl_WorkGroupID.z, first_column + c, row_offset + first_row + r)] = pooled_quad(i);
    }
  }
}

void main() {
  uint first_column = gl_WorkGroupID.x * TILE_COLUMNS, first_row = gl_WorkGroupID.y * TILE_ROWS;
  uint row = gl_SubgroupID * ROW_TILES * TM;  // of the tile: the subgroup's first
  uint begin = gl_WorkGroupID.z * chunk_columns;
  uint end = min(begin + chunk_columns, cols);
  find_begins(first_column, first_row);
  fetch_step(begin);
  begin_tile(first_column);
  load_factors(first_column);
  [[unroll]] for (uint m = 0u; m < ROW_TILES; ++m) {
    [[unroll]] for (uint n = 0u; n < COLUMN_TILES; ++n) sums[m][n] = SUMS(0.0);
  }
  for (uint k = begin; k < end; k += STEP) {
    barrier();
    stage_weights(k);
    stage_activations(first_column);
    barrier();
    if (k + STEP < end) fetch_step(k + STEP);
    [[unroll]] for (uint b = 0u; b < STEP_BLOCKS; ++b) {
      [[unroll]] for (uint h = 0u; h < PARTS; ++h) add_part(row, b, h);
    }
  }
  store_sums(first_column, first_row, row);
  finish(first_column, first_row);
}
