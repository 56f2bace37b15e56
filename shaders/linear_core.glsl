// The skinny matrix product every linear op shares: total[r][c] = sum over k of weight[row + r, k] * in[c, k] for the R
// consecutive rows an invocation owns and the N columns of a tile.
//
// The order of a row's sum is fixed and independent of N, R, LANES, SPLIT and UNROLL, which only say who computes what:
// K is cut into segments of 256; a segment is summed from zero in order (block types: 32 products, then the block's
// scale and minimum); segments are added left to right. So every width gives the same bits (design.md, section 4).

layout(constant_id = 0) const uint N = 1;         // columns of this tile, 1 ... 32
layout(constant_id = 1) const uint R = 4;         // rows of an invocation, a multiple of 4 that divides 16
layout(constant_id = 2) const uint LANES = 8;     // invocations along the rows
layout(constant_id = 3) const uint SPLIT = 1;     // segments worked on at once
layout(constant_id = 4) const uint WORDS = 4;     // unrolled words of a unit: 1 or 4
layout(constant_id = 5) const uint ELEMENTS = 1;  // unrolled elements of a word, divides PER_WORD
layout(constant_id = 6) const uint RAGGED = 0;    // 1 when cols is no multiple of 32
layout(constant_id = 7) const uint QUADS = 0;     // 1: rows, strides and offsets are multiples of 4, rows one of R
layout(local_size_x_id = 2, local_size_y_id = 3) in;

#include "weights.glsl"

const uint SEGMENT = 256u;
const uint UNIFORM_FLOATS = 16384u;  // 64 KiB, what Vulkan devices allow in practice
const uint ACTIVATION_BINDINGS = 8u;

// Reading activations from uniform memory is one scalar load on AMD, a constant-cache broadcast on NVIDIA and the fastest
// load of software devices.
layout(std430, set = 0, binding = 2) uniform Activations { float x[UNIFORM_FLOATS]; } activations[ACTIVATION_BINDINGS];

struct LinearShape {
  uint rows;         // of the weight (shard)
  uint stored_rows;  // padded
  uint cols;
};

// Globals may not be `precise` (glslang makes locals of them); fma() cannot be contracted further, and each plain sum goes
// through a precise local.
float total[R][N];

// First of the R rows of this invocation; `owned` tells whether there are any.
uint first_row(LinearShape s, out bool owned) {
  uint row = (gl_WorkGroupID.x * LANES + gl_LocalInvocationID.x) * R;
  owned = row < s.rows;
  return min(row, s.stored_rows - R);
}

float part[R][N];  // the segment under way
#if HAS_SCALES
float dot_[R][N];  // the block under way
float sum_[N];
#define INNER dot_
#else
#define INNER part
#endif

// The shape of the code below is for compilers that keep a loop of one iteration (llvmpipe does, at twice the run time):
// where a count is 1 there is no loop.

// Float offset of the activations of element k of a block, column 0 (panel.glsl); `k_end` is the number of elements
// there are. Weights beyond it are 0, but what lies there need not be finite.
uint activation_offset(uint k, uint k_end) {
  if (RAGGED != 0u) k = min(k, k_end - 1u);
  return (k >> 2) * 4u * N + (k & 3u);
}

// COUNT elements of one word of each row, from element k of a block on; `block`: where the block's activations start.
void add_elements(uint word[R], const uint COUNT, uint binding, uint block, uint k, uint k_end) {
  // Words hold 1, 2, 4 or 8 elements and so never straddle a quad but whole: one offset serves up to four.
  uint at = block + activation_offset(k, k_end);
  [[unroll]] for (uint i = 0u; i < COUNT; ++i) {
    uint element = RAGGED != 0u ? block + activation_offset(k + i, k_end) : at + (i / 4u) * 4u * N + i % 4u;
    [[unroll]] for (uint c = 0u; c < N; ++c) {
      float a = activations[binding].x[element + 4u * c];
#if WEIGHT == 4
      precise float sum = sum_[c] + a;
      sum_[c] = sum;
#endif
      [[unroll]] for (uint r = 0u; r < R; ++r) INNER[r][c] = fma(decode(word[r], i), a, INNER[r][c]);
    }
  }
}

void add_word(uint word[R], uint binding, uint block, uint k, uint k_end) {
  if (ELEMENTS == PER_WORD) {
    add_elements(word, PER_WORD, binding, block, k, k_end);
    return;
  }
#if WEIGHT != 0
  for (uint i = 0u; i < PER_WORD; i += ELEMENTS) {
    add_elements(word, ELEMENTS, binding, block, k, k_end);
    [[unroll]] for (uint r = 0u; r < R; ++r) word[r] >>= ELEMENTS * (32u / PER_WORD);
    k += ELEMENTS;
  }
#endif
}

void add_unit(uint unit, uint binding, uint block, uint k, uint k_end) {
  uvec4 w[R];
  uint word[R];
  [[unroll]] for (uint r = 0u; r < R; ++r) w[r] = fetch_unit(unit + r);
  if (WORDS == 4u) {
    [[unroll]] for (uint j = 0u; j < 4u; ++j) {
      [[unroll]] for (uint r = 0u; r < R; ++r) word[r] = w[r][j];
      add_word(word, binding, block, k + j * PER_WORD, k_end);
    }
    return;
  }
  for (uint j = 0u; j < 4u; ++j) {
    [[unroll]] for (uint r = 0u; r < R; ++r) word[r] = w[r].x;
    add_word(word, binding, block, k, k_end);
    [[unroll]] for (uint r = 0u; r < R; ++r) w[r] = w[r].yzwx;
    k += PER_WORD;
  }
}

// One block of 32: unit index of row 0, uniform binding and offset of the block's activations, elements it has.
void add_block(uint unit, uint stored_rows, uint binding, uint block, uint k_end) {
#if WEIGHT == 4
  add_unit(unit, binding, block, 0u, k_end);
#else
  for (uint u = 0u; u < UNITS_PER_BLOCK; ++u) {
    add_unit(unit, binding, block, u * PER_UNIT, k_end);
    unit += stored_rows;
  }
#endif
}

void clear_part() {
  [[unroll]] for (uint r = 0u; r < R; ++r) {
    [[unroll]] for (uint c = 0u; c < N; ++c) part[r][c] = 0.0;
  }
}

// part = segment s of the rows from `row` on.
void add_segment(LinearShape shape, uint row, uint s) {
  uint per_binding = UNIFORM_FLOATS / (SEGMENT * N);
  uint binding = s / per_binding;
  uint at = (s % per_binding) * SEGMENT * N;
  uint block = s * (SEGMENT / 32u);
  uint last = min(block + SEGMENT / 32u, (shape.cols + 31u) / 32u);
  clear_part();
  while (block < last) {
#if HAS_SCALES
    [[unroll]] for (uint c = 0u; c < N; ++c) {
      sum_[c] = 0.0;
      [[unroll]] for (uint r = 0u; r < R; ++r) dot_[r][c] = 0.0;
    }
    add_block(block * UNITS_PER_BLOCK * shape.stored_rows + row, shape.stored_rows, binding, at,
              shape.cols - block * 32u);
    [[unroll]] for (uint r = 0u; r < R; ++r) {
      uint word = fetch_scale(block * shape.stored_rows + row + r);
#if WEIGHT == 4
      vec2 d = unpackHalf2x16(word);
      [[unroll]] for (uint c = 0u; c < N; ++c) {
        part[r][c] = fma(d.x, dot_[r][c], part[r][c]);
        part[r][c] = fma(d.y, sum_[c], part[r][c]);
      }
#else
      float d = uintBitsToFloat(word);
      [[unroll]] for (uint c = 0u; c < N; ++c) part[r][c] = fma(d, dot_[r][c], part[r][c]);
#endif
    }
#else
    add_block(block * UNITS_PER_BLOCK * shape.stored_rows + row, shape.stored_rows, binding, at,
              shape.cols - block * 32u);
#endif
    at += 32u * N;
    ++block;
  }
}

shared float split_parts[SPLIT > 1u ? SPLIT * LANES * R * N : 1u];

// Fills total. With SPLIT > 1 it is complete only in the invocations of local row y = 0.
void multiply(LinearShape shape, uint row) {
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
