// The skinny matrix product every linear op shares: total[r][c] = sum over k of weight[row + r, k] * in[c, k] for the R
// consecutive rows an invocation owns and the N columns of a tile.
//
// This is the product of the family that reads through texel buffers (llvmpipe); GPUs have product.glsl. The order of a
// row's sum is fixed and independent of N, R, LANES and UNROLL, which only say who computes what: from zero in order
// (block types: 32 products, then the block's scale and minimum). So every width gives the same bits
// (docs/architecture.md, "Numeric contract").
//
// Workgroup (x, y) computes tile x of the dispatch, rows from y on: tiles follow each other while the weights are near.

layout(constant_id = 0) const uint N = 1;         // columns of this tile, 1 ... 32
layout(constant_id = 1) const uint R = 4;         // rows of an invocation, a multiple of 4 that divides 16
layout(constant_id = 2) const uint LANES = 8;     // invocations along the rows
layout(constant_id = 4) const uint UNROLL = 1;    // quads unrolled: a whole unit, four (half a unit of q4_1), or 1
layout(constant_id = 6) const uint RAGGED = 0;    // 1 when cols is no multiple of 32
layout(constant_id = 7) const uint QUADS = 0;     // 1: rows, strides and offsets are multiples of 4, rows one of R
layout(local_size_x_id = 2) in;

#include "weights.glsl"
#include "activations.glsl"

struct LinearShape {
  uint rows;  // of the weight (shard)
  uint cols;
  uint first_quad;  // of this workgroup's tile, where activations are one texel buffer
};

// Globals may not be `precise` (glslang makes locals of them); fma() cannot be contracted further, and each plain sum goes
// through a precise local.
float total[R][N];

// First column and first quad of this workgroup's tile, from those of the dispatch.
uint tile_column(uint first_column) { return first_column + gl_WorkGroupID.x * N; }
uint tile_quad(uint first_quad, uint cols) { return first_quad + gl_WorkGroupID.x * (activation_tile_stride(N, cols) / 4u); }

// First of the R rows of this invocation; `owned` tells whether there are any.
uint first_row(LinearShape s, out bool owned) {
  uint row = (gl_WorkGroupID.y * LANES + gl_LocalInvocationID.x) * R;
  owned = row < s.rows;
  return min(row, (s.rows + BAND - 1u) / BAND * BAND - R);
}

#if HAS_SCALES || IS_WORDS
float dot_[R][N];  // the block under way, or half of it
#define INNER dot_
#else
#define INNER total
#endif

// Sums of the block's activations, a quad at a time, for types with a minimum: of both halves where each has its own.
#if IS_WORDS
#define HAS_MINIMUM MINIMUM
#define SUMS HALVES
#else
#define HAS_MINIMUM (WEIGHT == 4)
#define SUMS 1
#endif
#if HAS_MINIMUM
float sum_[SUMS][N];

void clear_sums() {
  [[unroll]] for (uint h = 0u; h < uint(SUMS); ++h) {
    [[unroll]] for (uint c = 0u; c < N; ++c) sum_[h][c] = 0.0;
  }
}
#endif

#include "linear_shared.glsl"
#if IS_WORDS
#include "linear_words.glsl"
#endif

// Fills total for the rows from `row` on.
void multiply(LinearShape shape, uint row) {
  Activations from = Activations(shape.first_quad);
  uint block = 0u, last = blocks_of(shape.cols);
  [[unroll]] for (uint r = 0u; r < R; ++r) {
    [[unroll]] for (uint c = 0u; c < N; ++c) total[r][c] = 0.0;
  }
#if IS_WORDS
  uint first = words_of(row, shape.cols);
  while (block < last) {
    add_block(first, block, from, shape.cols - block * 32u);
#else
  uint unit = units_of(row, shape.cols) + block * UNITS_PER_BLOCK * BAND;
  while (block < last) {
#if HAS_SCALES
    [[unroll]] for (uint c = 0u; c < N; ++c) {
      [[unroll]] for (uint r = 0u; r < R; ++r) dot_[r][c] = 0.0;
    }
#endif
    add_block(unit, from, shape.cols - block * 32u);
#if HAS_SCALES
    uint scales = UNITS_PER_BLOCK == 1u ? unit : scales_of(row, shape.cols) + block * BAND;
    [[unroll]] for (uint q = 0u; q < R / 4u; ++q) {
      uvec4 words = fetch_scales(scales / 4u + q);
      [[unroll]] for (uint r = 0u; r < 4u; ++r) {
#if WEIGHT == 4
        vec2 d = unpackHalf2x16(words[r]);
        [[unroll]] for (uint c = 0u; c < N; ++c) {
          total[4u * q + r][c] = fma(d.x, dot_[4u * q + r][c], total[4u * q + r][c]);
          total[4u * q + r][c] = fma(d.y, sum_[0][c], total[4u * q + r][c]);
        }
#else
        precise float d = uintBitsToFloat(words[r]) * DOT_SCALE;
        [[unroll]] for (uint c = 0u; c < N; ++c) total[4u * q + r][c] = fma(d, dot_[4u * q + r][c], total[4u * q + r][c]);
#endif
      }
    }
#endif
    unit += UNITS_PER_BLOCK * BAND;
#endif
    from.at += 8u * N;
    ++block;
  }
}

// 1 / sqrt(mean of squares + eps): the scale of the norm whose weight is already in the activations.
float norm_scale(float sum_of_squares, uint cols, float eps) {
  precise float mean = sum_of_squares / float(cols);
  precise float shifted = mean + eps;
  return inversesqrt(shifted);
}
