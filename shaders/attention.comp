#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// variants: f32 CACHE=0; f16 CACHE=1
// softmax(scale q . K) V of one row and one group of GROUP query heads that share a K/V head.
//
// A row's keys are a virtual sequence by absolute position (rows.h). Positions fall into aligned chunks of 64. A chunk
// gives, per head, its largest score m, l = sum of exp(score - m) and o = sum of exp(score - m) v; chunks merge in
// ascending order. Nothing depends on which keys are committed and which belong to the same pass.
//
// In a chunk an invocation first owns positions (POSITIONS of them: scores), then elements of the head (o).
#include "rows.glsl"
#include "keys.glsl"
#include "activations.glsl"

layout(constant_id = 0) const uint LANES = 8;      // divides 64
layout(constant_id = 1) const uint HEAD_DIM = 64;  // multiple of UNIT
layout(constant_id = 2) const uint GROUP = 3;
layout(local_size_x_id = 0) in;

#if CACHE == 1
#define UNIT 8u  // elements of 16 bytes
#else
#define UNIT 4u
#endif

const uint CHUNK = 64u;
const uint POSITIONS = CHUNK / LANES;
const uint UNITS = HEAD_DIM / UNIT;
const uint OWNED_UNITS = (UNITS + LANES - 1u) / LANES;  // of the output, per invocation
const uint UNIFORM_QUADS = 4096u;
const uint Q_BINDINGS = 8u;

layout(set = 0, binding = 0) readonly buffer K { uvec4 k_units[]; };  // [slots, kv_heads, UNITS]
layout(set = 0, binding = 1) readonly buffer V { uvec4 v_units[]; };
uvec4 fetch_k(uint i) { return k_units[i]; }
uvec4 fetch_v(uint i) { return v_units[i]; }
layout(set = 0, binding = 2) uniform Q { vec4 q[UNIFORM_QUADS]; } queries[Q_BINDINGS];  // whole rows in each
vec4 fetch_q(uint binding, uint i) { return queries[binding & (Q_BINDINGS - 1u)].q[i]; }  // see linear_uniform.glsl
layout(set = 0, binding = 3) readonly buffer Rows { Row rows_[]; };
layout(set = 0, binding = 4) readonly buffer Ancestors { uint ancestors[]; };
layout(set = 0, binding = 5) writeonly buffer OutActivations { vec4 out_activations4[]; };  // activations [width, heads * HEAD_DIM]

layout(push_constant) uniform Push {
  uint first_row;
  uint rows_per_binding;
  uint kv_heads;
  uint tile;
  float scale;
};

shared float lane_values[GROUP * LANES];
// By position of the chunk: the slot's first unit, then the bits of a weight per head. Read whole: software devices pay
// for shared memory by the access.
const uint ENTRY_VECTORS = (GROUP + 4u) / 4u;
shared uvec4 entries[CHUNK * ENTRY_VECTORS];

void decode(uvec4 unit, out float x[UNIT]) {
#if CACHE == 1
  [[unroll]] for (uint j = 0u; j < 4u; ++j) {
    vec2 two = unpackHalf2x16(unit[j]);
    x[2u * j] = two.x;
    x[2u * j + 1u] = two.y;
  }
#else
  [[unroll]] for (uint j = 0u; j < 4u; ++j) x[j] = uintBitsToFloat(unit[j]);
#endif
}

float score[POSITIONS][GROUP];
float best[GROUP], sum_[GROUP];                  // running over chunks
float out_[OWNED_UNITS][UNIT][GROUP];            // running over chunks
float chunk_out[OWNED_UNITS][UNIT][GROUP];

// score = q . k of the positions this invocation owns: position base + lane * POSITIONS + p. Those below base + hidden
// and from base + count on are not seen: -inf, and the row's own slot, which is finite.
void add_scores(Row row, uint head, uint base, uint hidden, uint count, uint binding, uint at, out uint unit[POSITIONS]) {
  [[unroll]] for (uint p = 0u; p < POSITIONS; ++p) {
    uint i = gl_LocalInvocationID.x * POSITIONS + p;
    uint slot = row.slot;
    if (i >= hidden && i < count) {
      uint position = base + i;
      slot = position < row.prefix ? position : ancestors[row.first_ancestor + position - row.prefix];
    }
    unit[p] = (slot * kv_heads + head) * UNITS;
    [[unroll]] for (uint g = 0u; g < GROUP; ++g) score[p][g] = 0.0;
  }
  for (uint u = 0u; u < UNITS; ++u) {
    float k[POSITIONS][UNIT];
    [[unroll]] for (uint p = 0u; p < POSITIONS; ++p) decode(fetch_k(unit[p] + u), k[p]);
    [[unroll]] for (uint d = 0u; d < UNIT; d += 4u) {
      [[unroll]] for (uint g = 0u; g < GROUP; ++g) {
        vec4 q = fetch_q(binding, at + (g * HEAD_DIM + u * UNIT + d) / 4u);
        [[unroll]] for (uint i = 0u; i < 4u; ++i) {
          [[unroll]] for (uint p = 0u; p < POSITIONS; ++p) score[p][g] = fma(k[p][d + i], q[i], score[p][g]);
        }
      }
    }
  }
  [[unroll]] for (uint p = 0u; p < POSITIONS; ++p) {
    uint place = gl_LocalInvocationID.x * POSITIONS + p;
    bool seen = place >= hidden && place < count;
    [[unroll]] for (uint g = 0u; g < GROUP; ++g) {
      precise float scaled = score[p][g] * scale;
      score[p][g] = seen ? scaled : uintBitsToFloat(0xFF800000u);
    }
  }
}

// m of the chunk, by head. Maxima are exact in any order.
void chunk_maximum(out float m[GROUP]) {
  [[unroll]] for (uint g = 0u; g < GROUP; ++g) {
    float own = score[0][g];
    [[unroll]] for (uint p = 1u; p < POSITIONS; ++p) own = max(own, score[p][g]);
    lane_values[g * LANES + gl_LocalInvocationID.x] = own;
    m[g] = uintBitsToFloat(0xFF800000u);
  }
  barrier();
  for (uint l = 0u; l < LANES; ++l) {
    [[unroll]] for (uint g = 0u; g < GROUP; ++g) m[g] = max(m[g], lane_values[g * LANES + l]);
  }
  barrier();
}

// weights = exp(score - m) and, by head, l of the chunk: an invocation's own in order, then the invocations in order.
void chunk_weights(float m[GROUP], uint unit[POSITIONS], out float l[GROUP]) {
  float own[GROUP];
  [[unroll]] for (uint g = 0u; g < GROUP; ++g) own[g] = 0.0;
  [[unroll]] for (uint p = 0u; p < POSITIONS; ++p) {
    uint entry[4u * ENTRY_VECTORS];
    entry[0] = unit[p];
    [[unroll]] for (uint g = 0u; g < GROUP; ++g) {
      precise float e = exp(score[p][g] - m[g]);
      precise float sum = own[g] + e;
      own[g] = sum;
      entry[g + 1u] = floatBitsToUint(e);
    }
    [[unroll]] for (uint v = 0u; v < ENTRY_VECTORS; ++v) {
      entries[(gl_LocalInvocationID.x * POSITIONS + p) * ENTRY_VECTORS + v] =
          uvec4(entry[4u * v], entry[4u * v + 1u], entry[4u * v + 2u], entry[4u * v + 3u]);
    }
  }
  [[unroll]] for (uint g = 0u; g < GROUP; ++g) {
    lane_values[g * LANES + gl_LocalInvocationID.x] = own[g];
    l[g] = 0.0;
  }
  barrier();
  for (uint i = 0u; i < LANES; ++i) {
    [[unroll]] for (uint g = 0u; g < GROUP; ++g) {
      precise float sum = l[g] + lane_values[g * LANES + i];
      l[g] = sum;
    }
  }
}

void chunk_output(uint hidden, uint count) {
  [[unroll]] for (uint o = 0u; o < OWNED_UNITS; ++o) {
    [[unroll]] for (uint d = 0u; d < UNIT; ++d) {
      [[unroll]] for (uint g = 0u; g < GROUP; ++g) chunk_out[o][d][g] = 0.0;
    }
  }
  for (uint j = hidden; j < count; ++j) {
    uvec4 entry[ENTRY_VECTORS];
    [[unroll]] for (uint v = 0u; v < ENTRY_VECTORS; ++v) entry[v] = entries[j * ENTRY_VECTORS + v];
    uint base = entry[0].x;
    float w[GROUP];
    [[unroll]] for (uint g = 0u; g < GROUP; ++g) w[g] = uintBitsToFloat(entry[(g + 1u) / 4u][(g + 1u) % 4u]);
    [[unroll]] for (uint o = 0u; o < OWNED_UNITS; ++o) {
      float v[UNIT];
      decode(fetch_v(base + min(o * LANES + gl_LocalInvocationID.x, UNITS - 1u)), v);
      [[unroll]] for (uint d = 0u; d < UNIT; ++d) {
        [[unroll]] for (uint g = 0u; g < GROUP; ++g) chunk_out[o][d][g] = fma(w[g], v[d], chunk_out[o][d][g]);
      }
    }
  }
}

void merge(float m[GROUP], float l[GROUP]) {
  [[unroll]] for (uint g = 0u; g < GROUP; ++g) {
    float top = max(best[g], m[g]);
    precise float old_weight = exp(best[g] - top);
    precise float new_weight = exp(m[g] - top);
    precise float kept = sum_[g] * old_weight;
    sum_[g] = fma(l[g], new_weight, kept);
    [[unroll]] for (uint o = 0u; o < OWNED_UNITS; ++o) {
      [[unroll]] for (uint d = 0u; d < UNIT; ++d) {
        precise float before = out_[o][d][g] * old_weight;
        out_[o][d][g] = fma(chunk_out[o][d][g], new_weight, before);
      }
    }
    best[g] = top;
  }
}

void main() {
  uint head = gl_WorkGroupID.x;
  uint w = first_row + gl_WorkGroupID.y;
  Row row = rows_[w];
  uint first = first_key(row);
  uint keys = keys_end(row);
  uint binding = gl_WorkGroupID.y / rows_per_binding;
  uint at = ((gl_WorkGroupID.y % rows_per_binding) * kv_heads + head) * GROUP * HEAD_DIM / 4u;
  [[unroll]] for (uint g = 0u; g < GROUP; ++g) {
    best[g] = -3.0e38;  // not -inf: exp(best - top) of the first chunk must be 0, not NaN
    sum_[g] = 0.0;
    [[unroll]] for (uint o = 0u; o < OWNED_UNITS; ++o) {
      [[unroll]] for (uint d = 0u; d < UNIT; ++d) out_[o][d][g] = 0.0;
    }
  }
  for (uint base = first / CHUNK * CHUNK; base < keys; base += CHUNK) {
    uint hidden = max(first, base) - base;
    uint count = min(CHUNK, keys - base);
    float m[GROUP], l[GROUP];
    uint unit[POSITIONS];
    add_scores(row, head, base, hidden, count, binding, at, unit);
    chunk_maximum(m);
    chunk_weights(m, unit, l);
    chunk_output(hidden, count);
    merge(m, l);
    barrier();
  }
  uvec2 place = activation_column(w, tile, kv_heads * GROUP * HEAD_DIM);
  [[unroll]] for (uint o = 0u; o < OWNED_UNITS; ++o) {
    uint unit = o * LANES + gl_LocalInvocationID.x;
    if (unit < UNITS) {
      [[unroll]] for (uint g = 0u; g < GROUP; ++g) {
        uint k = (head * GROUP + g) * HEAD_DIM + unit * UNIT;
        [[unroll]] for (uint d = 0u; d < UNIT; d += 4u) {
          precise vec4 y = vec4(out_[o][d][g], out_[o][d + 1u][g], out_[o][d + 2u][g], out_[o][d + 3u][g]) / sum_[g];
          out_activations4[activation_element(place, k + d) / 4u] = y;
        }
      }
    }
  }
}
