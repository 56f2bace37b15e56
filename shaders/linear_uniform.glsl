// One block of 32 columns where all invocations read the same activation at the same time, as GPUs do best: one scalar
// load from uniform memory on AMD, a constant-cache broadcast on NVIDIA. Included by linear_core.glsl.

const uint UNIFORM_QUADS = 4096u;  // 64 KiB a binding
const uint ACTIVATION_BINDINGS = 8u;
layout(set = 0, binding = 2) uniform ActivationQuads { vec4 x[UNIFORM_QUADS]; } activations[ACTIVATION_BINDINGS];

const float DOT_SCALE = 1.0;

struct Activations {
  uint binding;
  uint at;  // quad of column 0; the other columns follow
};

Activations segment_activations(LinearShape shape, uint s) {
  uint per_binding = UNIFORM_QUADS / (SEGMENT / 4u * N);
  return Activations(s / per_binding, (s % per_binding) * (SEGMENT / 4u) * N);
}

// The mask changes nothing where this runs; SwiftShader computes the descriptor's address in branches not taken, too, with
// whatever is in `binding` there.
vec4 fetch_activations(Activations from, uint c) {
  return activations[from.binding & (ACTIVATION_BINDINGS - 1u)].x[from.at + c];
}

// The activations of quad `half` of a block's halves; `k_end`: columns left from it on.
void fetch_quad(Activations from, uint half_, uint k_end, out vec4 x[N]) {
  [[unroll]] for (uint c = 0u; c < N; ++c) {
    x[c] = fetch_activations(from, c);
    if (RAGGED != 0u) {  // the weights there are 0, but what lies in the activations need not be finite
      [[unroll]] for (uint i = 0u; i < 4u; ++i) x[c][i] = i < k_end ? x[c][i] : 0.0;
    }
#if HAS_MINIMUM
    precise float quad = x[c].x + x[c].y;
    quad = quad + x[c].z;
    quad = quad + x[c].w;
    precise float sum = sum_[half_][c] + quad;
    sum_[half_][c] = sum;
#endif
  }
}

uint left_after(uint k_end, uint k) { return k_end > k ? k_end - k : 0u; }

void begin_block(Activations from, uint k_end) {
#if HAS_MINIMUM
  clear_sums();
#endif
}

#if IS_WORDS
// Quad q of the block.
void load_quad(Activations from, uint q, uint k_end, out vec4 x[N]) {
  fetch_quad(Activations(from.binding, from.at + q * N), SUMS == 2 ? q / 4u : 0u, left_after(k_end, 4u * q), x);
}

#if HAS_MINIMUM
float half_sum(uint h, uint c) { return sum_[h][c]; }
#endif

#else
// Quad q of the unit of each row, times the activations; `k_end`: columns left from this quad on.
void add_quad(uvec4 unit[R], const uint q, Activations from, uint k_end) {
  vec4 x[N];
  fetch_quad(from, 0u, k_end, x);
  [[unroll]] for (uint i = 0u; i < 4u; ++i) {
    [[unroll]] for (uint c = 0u; c < N; ++c) {
      [[unroll]] for (uint r = 0u; r < R; ++r) INNER[r][c] = fma(decode(unit[r], q, i), x[c][i], INNER[r][c]);
    }
  }
}

// One unit of each row.
void add_unit(uint first, Activations from, uint k_end) {
  uvec4 unit[R];
  [[unroll]] for (uint r = 0u; r < R; ++r) unit[r] = fetch_unit(first + r);
  if (UNROLL == QUADS_PER_UNIT) {
    [[unroll]] for (uint q = 0u; q < QUADS_PER_UNIT; ++q) {
      add_quad(unit, q, Activations(from.binding, from.at + q * N), left_after(k_end, 4u * q));
    }
    return;
  }
  // The quad at hand is always quad 0: units are turned under it.
#if WEIGHT == 4
  for (uint h = 0u; h < 2u; ++h) {
    if (UNROLL == 4u) {
      [[unroll]] for (uint q = 0u; q < 4u; ++q) {
        add_quad(unit, q, Activations(from.binding, from.at + q * N), left_after(k_end, 4u * q));
      }
      [[unroll]] for (uint r = 0u; r < R; ++r) unit[r] >>= 16;
      from.at += 4u * N;
      k_end = left_after(k_end, 16u);
      continue;
    }
#endif
    for (uint q = 0u; q < min(QUADS_PER_UNIT, 4u); ++q) {
      add_quad(unit, 0u, from, k_end);
      [[unroll]] for (uint r = 0u; r < R; ++r) unit[r] = QUADS_PER_UNIT == 2u ? unit[r].zwxy : unit[r].yzwx;
      from.at += N;
      k_end = left_after(k_end, 4u);
    }
#if WEIGHT == 4
    [[unroll]] for (uint r = 0u; r < R; ++r) unit[r] >>= 16;
  }
#endif
}

// One block of 32: index of row 0's first unit, the block's activations, columns from here on.
void add_block(uint unit, Activations from, uint k_end) {
  begin_block(from, k_end);
  for (uint u = 0u; u < UNITS_PER_BLOCK; ++u) {
    add_unit(unit, from, k_end);
    unit += BAND;
    from.at += QUADS_PER_UNIT * N;
    k_end = left_after(k_end, PER_UNIT);
  }
}
#endif
