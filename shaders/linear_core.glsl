// The skinny matrix product every linear op shares: total[r][c] = sum over k of weight[row + r, k] * in[c, k] for the R
// consecutive rows an invocation owns and the N columns of a tile.
//
// The order of a row's sum is fixed and independent of N, R, LANES, SPLIT and UNROLL, which only say who computes what:
// K is cut into segments of 256 (WHOLE: it is one segment, on all products of a device); a segment is summed from zero in
// order (block types: 32 products, then the block's scale and minimum); segments are added left to right. So every width
// gives the same bits (docs/architecture.md, "Numeric contract").
//
// Workgroup (x, y) computes tile x of the dispatch, rows from y on: tiles follow each other while the weights are near.

layout(constant_id = 0) const uint N = 1;         // columns of this tile, 1 ... 32
layout(constant_id = 1) const uint R = 4;         // rows of an invocation, a multiple of 4 that divides 16
layout(constant_id = 2) const uint LANES = 8;     // invocations along the rows
layout(constant_id = 3) const uint SPLIT = 1;     // segments worked on at once
layout(constant_id = 4) const uint UNROLL = 1;    // quads unrolled: a whole unit, four (half a unit of q4_1), or 1
layout(constant_id = 6) const uint RAGGED = 0;    // 1 when cols is no multiple of 32
layout(constant_id = 8) const uint WHOLE = 0;     // 1: K is not cut into segments; SPLIT is 1
layout(constant_id = 7) const uint QUADS = 0;     // 1: rows, strides and offsets are multiples of 4, rows one of R
layout(local_size_x_id = 2, local_size_y_id = 3) in;

#include "weights.glsl"
#include "activations.glsl"

const uint SEGMENT = 256u;

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

float part[R][N];  // the segment under way
#if HAS_SCALES || IS_WORDS
float dot_[R][N];  // the block under way, or half of it
#define INNER dot_
#else
#define INNER part
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

#if TEXEL
#include "linear_shared.glsl"
#else
#include "linear_uniform.glsl"
#endif
#if IS_WORDS
#include "linear_words.glsl"
#endif

void clear_part() {
  [[unroll]] for (uint r = 0u; r < R; ++r) {
    [[unroll]] for (uint c = 0u; c < N; ++c) part[r][c] = 0.0;
  }
}

// part = segment s of the rows from `row` on.
void add_segment(LinearShape shape, uint row, uint s) {
  Activations from = segment_activations(shape, s);
  uint block = s * (SEGMENT / 32u);
  uint last = WHOLE != 0u ? blocks_of(shape.cols) : min(block + SEGMENT / 32u, blocks_of(shape.cols));
  clear_part();
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
          part[4u * q + r][c] = fma(d.x, dot_[4u * q + r][c], part[4u * q + r][c]);
          part[4u * q + r][c] = fma(d.y, sum_[0][c], part[4u * q + r][c]);
        }
#else
        precise float d = uintBitsToFloat(words[r]) * DOT_SCALE;
        [[unroll]] for (uint c = 0u; c < N; ++c) part[4u * q + r][c] = fma(d, dot_[4u * q + r][c], part[4u * q + r][c]);
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

shared float split_parts[SPLIT > 1u ? SPLIT * LANES * R * N : 1u];

// Fills total. With SPLIT > 1 it is complete only in the invocations of local row y = 0.
void multiply(LinearShape shape, uint row) {
  if (WHOLE != 0u) {
    add_segment(shape, row, 0u);
    [[unroll]] for (uint r = 0u; r < R; ++r) {
      [[unroll]] for (uint c = 0u; c < N; ++c) total[r][c] = part[r][c];
    }
    return;
  }
  [[unroll]] for (uint r = 0u; r < R; ++r) {
    [[unroll]] for (uint c = 0u; c < N; ++c) total[r][c] = 0.0;
  }
  uint segments = (shape.cols + SEGMENT - 1u) / SEGMENT;
  if (SPLIT == 1u) {
    for (uint s = 0u; s < segments; ++s) {
      add_segment(shape, row, s);
      [[unroll]] for (uint r = 0u; r < R; ++r) {
        [[unroll]] for (uint c = 0u; c < N; ++c) {
          precise float sum = total[r][c] + part[r][c];
          total[r][c] = sum;
        }
      }
    }
    return;
  }
  for (uint first = 0u; first < segments; first += SPLIT) {
    uint mine = first + gl_LocalInvocationID.y;
    if (mine < segments) {
      add_segment(shape, row, mine);
      [[unroll]] for (uint r = 0u; r < R; ++r) {
        [[unroll]] for (uint c = 0u; c < N; ++c) {
          split_parts[((gl_LocalInvocationID.y * R + r) * N + c) * LANES + gl_LocalInvocationID.x] = part[r][c];
        }
      }
    }
    barrier();
    if (gl_LocalInvocationID.y == 0u) {
      for (uint s = 0u; s < min(SPLIT, segments - first); ++s) {
        [[unroll]] for (uint r = 0u; r < R; ++r) {
          [[unroll]] for (uint c = 0u; c < N; ++c) {
            precise float sum = total[r][c] + split_parts[((s * R + r) * N + c) * LANES + gl_LocalInvocationID.x];
            total[r][c] = sum;
          }
        }
      }
    }
    barrier();
  }
}

// 1 / sqrt(mean of squares + eps): the scale of the norm whose weight is already in the activations.
float norm_scale(float sum_of_squares, uint cols, float eps) {
  precise float mean = sum_of_squares / float(cols);
  precise float shifted = mean + eps;
  return inversesqrt(shifted);
}
