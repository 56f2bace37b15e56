// The skinny matrix product every linear op shares: total[r][c] = sum over k of weight[row + r, k] * in[c, k] for the R
// consecutive rows an invocation owns and the N columns of a tile.
//
// The order of a row's sum is fixed and independent of N, R, LANES, SPLIT and UNROLL, which only say who computes what:
// K is cut into segments of 256; a segment is summed from zero in order (block types: 32 products, then the block's
// scale and minimum); segments are added left to right. So every width gives the same bits (docs/architecture.md, "Numeric contract").

layout(constant_id = 0) const uint N = 1;         // columns of this tile, 1 ... 32
layout(constant_id = 1) const uint R = 4;         // rows of an invocation, a multiple of 4 that divides 16
layout(constant_id = 2) const uint LANES = 8;     // invocations along the rows
layout(constant_id = 3) const uint SPLIT = 1;     // segments worked on at once
layout(constant_id = 4) const uint UNROLL = 1;    // quads unrolled: a whole unit, four (half a unit of q4_1), or 1
layout(constant_id = 6) const uint RAGGED = 0;    // 1 when cols is no multiple of 32
layout(constant_id = 7) const uint QUADS = 0;     // 1: rows, strides and offsets are multiples of 4, rows one of R
layout(local_size_x_id = 2, local_size_y_id = 3) in;

#include "weights.glsl"

const uint SEGMENT = 256u;

// Activations are read in quads: element k ... k+3 of one column (panel.glsl), at an index all invocations share.
#if TEXEL
// llvmpipe: about 11 instructions an activation, a third of what a uniform buffer costs inside a loop.
layout(set = 0, binding = 2) uniform usamplerBuffer activations;
vec4 fetch_activations(uint binding, uint i) { return uintBitsToFloat(texelFetch(activations, int(i))); }
#else
// Uniform memory: one scalar load on AMD, a constant-cache broadcast on NVIDIA. 64 KiB a binding.
const uint UNIFORM_QUADS = 4096u;
const uint ACTIVATION_BINDINGS = 8u;
layout(set = 0, binding = 2) uniform Activations { vec4 x[UNIFORM_QUADS]; } activations[ACTIVATION_BINDINGS];
// The mask changes nothing where this runs; SwiftShader computes the descriptor's address in branches not taken, too, with
// whatever is in `binding` there.
vec4 fetch_activations(uint binding, uint i) { return activations[binding & (ACTIVATION_BINDINGS - 1u)].x[i]; }
#endif

struct LinearShape {
  uint rows;         // of the weight (shard)
  uint stored_rows;  // padded
  uint cols;
  uint first_quad;  // of the tile, where activations are one texel buffer
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

// Quad q of the unit of each row, times the activations from quad `at` on; `k_end`: columns left from this quad on.
void add_quad(uvec4 unit[R], const uint q, uint binding, uint at, uint k_end) {
  vec4 x[N];
  [[unroll]] for (uint c = 0u; c < N; ++c) {
    x[c] = fetch_activations(binding, at + c);
    if (RAGGED != 0u) {  // the weights there are 0, but what lies in the panel need not be finite
      [[unroll]] for (uint i = 0u; i < 4u; ++i) x[c][i] = i < k_end ? x[c][i] : 0.0;
    }
  }
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    [[unroll]] for (uint c = 0u; c < N; ++c) {
#if WEIGHT == 4
      precise float sum = sum_[c] + x[c][i];
      sum_[c] = sum;
#endif
      [[unroll]] for (uint r = 0u; r < R; ++r) INNER[r][c] = fma(decode(unit[r], q, i), x[c][i], INNER[r][c]);
    }
  }
}

uint left_after(uint k_end, uint k) { return k_end > k ? k_end - k : 0u; }

// One unit of each row. There is no loop where a count is 1: llvmpipe keeps such loops, at twice the run time.
void add_unit(uint first, uint binding, uint at, uint k_end) {
  uvec4 unit[R];
  [[unroll]] for (uint r = 0u; r < R; ++r) unit[r] = fetch_unit(first + r);
  if (UNROLL == QUADS_PER_UNIT) {
    [[unroll]] for (uint q = 0u; q < QUADS_PER_UNIT; ++q) {
      add_quad(unit, q, binding, at + q * N, left_after(k_end, 4u * q));
    }
    return;
  }
  // The quad at hand is always quad 0: units are turned under it.
#if WEIGHT == 4
  for (uint h = 0u; h < 2u; ++h) {
    if (UNROLL == 4u) {
      [[unroll]] for (uint q = 0u; q < 4u; ++q) add_quad(unit, q, binding, at + q * N, left_after(k_end, 4u * q));
      [[unroll]] for (uint r = 0u; r < R; ++r) unit[r] >>= 16;
      at += 4u * N;
      k_end = left_after(k_end, 16u);
      continue;
    }
#endif
    for (uint q = 0u; q < min(QUADS_PER_UNIT, 4u); ++q) {
      add_quad(unit, 0u, binding, at, k_end);
      [[unroll]] for (uint r = 0u; r < R; ++r) unit[r] = QUADS_PER_UNIT == 2u ? unit[r].zwxy : unit[r].yzwx;
      at += N;
      k_end = left_after(k_end, 4u);
    }
#if WEIGHT == 4
    [[unroll]] for (uint r = 0u; r < R; ++r) unit[r] >>= 16;
  }
#endif
}

// One block of 32: unit index of row 0, binding and first quad of the block's activations, columns from here on.
void add_block(uint unit, uint stored_rows, uint binding, uint at, uint k_end) {
#if WEIGHT == 4
  add_unit(unit, binding, at, k_end);
#else
  for (uint u = 0u; u < UNITS_PER_BLOCK; ++u) {
    add_unit(unit, binding, at, k_end);
    unit += stored_rows;
    at += QUADS_PER_UNIT * N;
    k_end = left_after(k_end, PER_UNIT);
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
#if TEXEL
  uint binding = 0u;
  uint at = shape.first_quad + s * (SEGMENT / 4u) * N;
#else
  uint per_binding = UNIFORM_QUADS / (SEGMENT / 4u * N);
  uint binding = s / per_binding;
  uint at = (s % per_binding) * (SEGMENT / 4u) * N;
#endif
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
    at += 8u * N;
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
