// One block of 32 columns where the invocations of a subgroup share its activations: each fetches one quad of every
// column and hands it round. Included by linear_core.glsl.
#include "handed.glsl"

layout(set = 0, binding = 2) uniform usamplerBuffer activations;

struct Activations {
  uint at;  // quad of column 0; the other columns follow
};

// Integers are not shifted down before they are converted, which saves an operation a weight: what is 2^n times too large
// meets activations (q4_1) or a block's scale (q8_0) divided by 2^n. Powers of two change no bit of the result.
#if WEIGHT == 3
const float DOT_SCALE = 1.0 / 16777216.0;
#else
const float DOT_SCALE = 1.0;
#endif
#if WEIGHT == 4
const vec4 HELD_SCALE = vec4(1.0, 1.0 / 16.0, 1.0 / 256.0, 1.0 / 4096.0);
#endif

#if !IS_WORDS
// Element i of the quad in word p (f16, bf16: the words 2p and 2p + 1; q4_1: the word's low half).
float decode_scaled(uvec4 unit, const uint p, const uint i) {
#if WEIGHT == 3
  uint word = i == 3u ? unit[p] : unit[p] << (24u - 8u * i);
  return float(int(i == 0u ? word : word & 0xFF000000u));
#elif WEIGHT == 4
  return float(int(unit[p] & (15u << (4u * i))));
#else
  return decode(unit, p, i);
#endif
}
#endif

void begin_block(Activations from, uint k_end) {
#if HAS_MINIMUM
  clear_sums();
#endif
  [[unroll]] for (uint h = 0u; h < HELD; ++h) {
    uint q = h * SUBGROUP + gl_SubgroupInvocationID % SUBGROUP;
    [[unroll]] for (uint c = 0u; c < N; ++c) {
      vec4 x = uintBitsToFloat(texelFetch(activations, int(from.at + q * N + c)));
      if (RAGGED != 0u) {  // the weights there are 0, but what lies in the activations need not be finite
        [[unroll]] for (uint i = 0u; i < 4u; ++i) x[i] = 4u * q + i < k_end ? x[i] : 0.0;
      }
#if HAS_MINIMUM
      precise float quad = x.x + x.y;
      quad = quad + x.z;
      quad = quad + x.w;
      [[unroll]] for (uint l = 0u; l < SUBGROUP; ++l) {
        uint part_of = SUMS == 2 ? (h * SUBGROUP + l) / 4u : 0u;
        precise float sum = sum_[part_of][c] + subgroupShuffle(quad, l);
        sum_[part_of][c] = sum;
      }
#endif
#if WEIGHT == 4
      x *= HELD_SCALE;
#endif
      held[h * N + c] = x;
    }
  }
}

#if IS_WORDS
void load_quad(Activations from, uint q, uint k_end, out vec4 x[N]) {
  [[unroll]] for (uint c = 0u; c < N; ++c) {
    [[unroll]] for (uint i = 0u; i < 4u; ++i) x[c][i] = handed(q, c, i);
  }
}

#if HAS_MINIMUM
float half_sum(uint h, uint c) { return sum_[h][c]; }
#endif

#else
// The quad in word p of the unit of each row, times quad q of the block's activations. A sum's four products follow each
// other, so that it stays in a register meanwhile.
void add_quad(uvec4 unit[R], const uint p, uint q) {
  float w[R][4];
  [[unroll]] for (uint r = 0u; r < R; ++r) {
    [[unroll]] for (uint i = 0u; i < 4u; ++i) w[r][i] = decode_scaled(unit[r], p, i);
  }
  [[unroll]] for (uint c = 0u; c < N; ++c) {
    float x[4];
    [[unroll]] for (uint i = 0u; i < 4u; ++i) x[i] = handed(q, c, i);
    [[unroll]] for (uint r = 0u; r < R; ++r) {
      [[unroll]] for (uint i = 0u; i < 4u; ++i) INNER[r][c] = fma(w[r][i], x[i], INNER[r][c]);
    }
  }
}

// The quads of a unit (q4_1: of its low halves), quad q of the block first. There is no loop where a count is 1: llvmpipe
// keeps such loops, at twice the run time.
const uint WORD_QUADS = min(QUADS_PER_UNIT, 4u);

void add_quads(inout uvec4 unit[R], uint q) {
  if (UNROLL >= WORD_QUADS) {
    [[unroll]] for (uint p = 0u; p < WORD_QUADS; ++p) add_quad(unit, p, q + p);
  } else {
    for (uint p = 0u; p < WORD_QUADS; ++p) {  // the quad at hand is always the first: units are turned under it
      add_quad(unit, 0u, q + p);
      [[unroll]] for (uint r = 0u; r < R; ++r) unit[r] = QUADS_PER_UNIT == 2u ? unit[r].zwxy : unit[r].yzwx;
    }
  }
}

// One block of 32: index of row 0's first unit, the block's activations, columns from here on.
void add_block(uint first, Activations from, uint k_end) {
  begin_block(from, k_end);
  uvec4 unit[R];
#if WEIGHT == 4
  [[unroll]] for (uint r = 0u; r < R; ++r) unit[r] = fetch_unit(first + r);
  if (UNROLL == QUADS_PER_UNIT) {
    add_quads(unit, 0u);
    [[unroll]] for (uint r = 0u; r < R; ++r) unit[r] >>= 16;
    add_quads(unit, 4u);
  } else {
    for (uint h = 0u; h < 2u; ++h) {
      add_quads(unit, 4u * h);
      [[unroll]] for (uint r = 0u; r < R; ++r) unit[r] >>= 16;
    }
  }
#else
  for (uint u = 0u; u < UNITS_PER_BLOCK; ++u) {
    [[unroll]] for (uint r = 0u; r < R; ++r) unit[r] = fetch_unit(first + u * BAND + r);
    add_quads(unit, u * QUADS_PER_UNIT);
  }
#endif
}
#endif
