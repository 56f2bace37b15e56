#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
// variants: f32 CACHE=0; f16 CACHE=1; q8_0 CACHE=2
// softmax(scale q . K) V of one row and one group of GROUP query heads that share a K/V head, for llvmpipe: one subgroup,
// no shared memory (llvmpipe pays some 80 instructions for each word of it), queries and weights handed round by shuffles.
//
// A row's keys are a virtual sequence by absolute position (rows.h). Positions fall into aligned chunks of 64. A chunk
// gives, per head, its largest score m, l = sum of exp(score - m) and o = sum of exp(score - m) v; chunks merge in
// ascending order. Nothing depends on which keys are committed and which belong to the same pass.
//
// In a chunk an invocation first owns positions (POSITIONS of them: scores), then elements of the head (o).
#include "rows.glsl"
#include "keys.glsl"
#include "activations.glsl"
#include "cache.glsl"
#include "scores.glsl"

layout(constant_id = 0) const uint LANES = 8;      // of a subgroup: 4 or 8
layout(constant_id = 1) const uint HEAD_DIM = 64;  // multiple of UNIT
layout(constant_id = 2) const uint GROUP = 3;
layout(constant_id = 9) const uint SINKS = 0;
layout(local_size_x_id = 0) in;

// Elements that are read at a time: 16 bytes, of q8_0 half of them, so that more lanes have some.
#if CACHE == 0
#define UNIT 4u
#else
#define UNIT 8u
#endif

const uint CHUNK = 64u;
const uint POSITIONS = CHUNK / LANES;
const uint UNITS = HEAD_DIM / UNIT;
const uint OWNED_UNITS = (UNITS + LANES - 1u) / LANES;  // of the output, per invocation
const uint HEAD_QUADS = HEAD_DIM / 4u;
const uint HELD_QUADS = (HEAD_QUADS + LANES - 1u) / LANES;  // of a query, per invocation

layout(set = 0, binding = 0) uniform usamplerBuffer k_units;  // [slots, kv_heads, UNITS]
layout(set = 0, binding = 1) uniform usamplerBuffer v_units;
layout(set = 0, binding = 2) uniform usamplerBuffer queries;  // [width, heads, HEAD_QUADS]
layout(set = 0, binding = 3) readonly buffer Rows { Row rows_[]; };
layout(set = 0, binding = 4) readonly buffer Ancestors { uint ancestors[]; };
layout(set = 0, binding = 5) writeonly buffer OutActivations { vec4 out_activations4[]; };  // activations [width, heads * HEAD_DIM]

layout(set = 0, binding = 6) readonly buffer Pages { uint pages[]; };  // by position / CHUNK

layout(set = 0, binding = 7) readonly buffer Sinks { float sinks[]; };  // [heads], where SINKS

layout(push_constant) uniform Push {
  uint kv_heads;
  uint tile;
  float scale;
};

const float LOWEST = -3.0e38;  // not -inf: exp(best - top) of the first chunk must be 0, not NaN

// Elements of a head that begins at texel `first`. scale: of their block (block_scale).
void read_unit(usamplerBuffer cache, uint first, uint unit, float scale, out float x[UNIT]) {
#if CACHE == 2
  uvec4 two = texelFetch(cache, int(first + unit / 2u));
  vec4 low = kv_elements(unit % 2u == 0u ? two.x : two.z, scale);
  vec4 high = kv_elements(unit % 2u == 0u ? two.y : two.w, scale);
  [[unroll]] for (uint j = 0u; j < 4u; ++j) {
    x[j] = low[j];
    x[j + 4u] = high[j];
  }
#elif CACHE == 1
  uvec4 words = texelFetch(cache, int(first + unit));
  [[unroll]] for (uint j = 0u; j < 4u; ++j) {
    vec2 two = unpackHalf2x16(words[j]);
    x[2u * j] = two.x;
    x[2u * j + 1u] = two.y;
  }
#else
  uvec4 words = texelFetch(cache, int(first + unit));
  [[unroll]] for (uint j = 0u; j < 4u; ++j) x[j] = uintBitsToFloat(words[j]);
#endif
}

// Where the head begins in a slot, in texels.
uint head_texel(uint slot, uint head) {
#if CACHE == 2
  return slot * (kv_slot_words(kv_heads, HEAD_DIM) / 4u) + head * (HEAD_DIM / 16u);
#else
  return (slot * kv_heads + head) * UNITS;
#endif
}

float block_scale(usamplerBuffer cache, uint first, uint head, uint block) {
#if CACHE == 2
  uint word = kv_scale_word(kv_heads, HEAD_DIM, head, block / 2u);
  uvec4 words = texelFetch(cache, int(first - head * (HEAD_DIM / 16u) + word / 4u));
  vec2 both = unpackHalf2x16(words[word % 4u]);
  return block % 2u == 0u ? both.x : both.y;
#else
  return 1.0;
#endif
}

vec4 query[GROUP][HELD_QUADS];                   // quad h * LANES + own index of each head
float score[POSITIONS][GROUP];                   // of position base + lane * POSITIONS + p; later its weight
uint first_texel[POSITIONS];                     // of the head in the position's slot
float best[GROUP], sum_[GROUP];                  // running over chunks
float out_[OWNED_UNITS][UNIT][GROUP];            // running over chunks
float chunk_out[OWNED_UNITS][UNIT][GROUP];

void hold_queries(uint first_quad) {
  [[unroll]] for (uint g = 0u; g < GROUP; ++g) {
    [[unroll]] for (uint h = 0u; h < HELD_QUADS; ++h) {
      uint quad = min(h * LANES + gl_LocalInvocationID.x, HEAD_QUADS - 1u);
      query[g][h] = uintBitsToFloat(texelFetch(queries, int(first_quad + g * HEAD_QUADS + quad)));
    }
  }
}

// Positions below base + hidden and from base + count on are not seen; they have the row's own slot.
void find_slots(Row row, uint head, uint base, uint hidden, uint count) {
  uint page = pages[base / CHUNK];
  [[unroll]] for (uint p = 0u; p < POSITIONS; ++p) {
    uint i = gl_LocalInvocationID.x * POSITIONS + p;
    uint slot = row.slot;
    if (i >= hidden && i < count) {
      uint position = base + i;
      slot = position < row.prefix ? page * CHUNK + i : ancestors[row.first_ancestor + position - row.prefix];
    }
    first_texel[p] = head_texel(slot, head);
  }
}

// score = q . k
void add_scores(uint head, uint hidden, uint count) {
  [[unroll]] for (uint p = 0u; p < POSITIONS; ++p) {
    [[unroll]] for (uint g = 0u; g < GROUP; ++g) score[p][g] = 0.0;
  }
  [[unroll]] for (uint h = 0u; h < HELD_QUADS; ++h) {
    const uint units = min(LANES * 4u / UNIT, UNITS - h * (LANES * 4u / UNIT));  // covered by the quads held as h
    float scales[POSITIONS];
    [[unroll]] for (uint p = 0u; p < POSITIONS; ++p) scales[p] = block_scale(k_units, first_texel[p], head, h * LANES / 8u);
    for (uint u = 0u; u < units; ++u) {
      float q[GROUP][UNIT];
      [[unroll]] for (uint g = 0u; g < GROUP; ++g) {
        [[unroll]] for (uint d = 0u; d < UNIT; ++d) q[g][d] = subgroupShuffle(query[g][h][d % 4u], (u * UNIT + d) / 4u);
      }
      [[unroll]] for (uint p = 0u; p < POSITIONS; ++p) {
        float k[UNIT];
        read_unit(k_units, first_texel[p], h * (LANES * 4u / UNIT) + u, scales[p], k);
        [[unroll]] for (uint g = 0u; g < GROUP; ++g) {
          [[unroll]] for (uint d = 0u; d < UNIT; ++d) score[p][g] = fma(k[d], q[g][d], score[p][g]);
        }
      }
    }
  }
  [[unroll]] for (uint p = 0u; p < POSITIONS; ++p) {
    uint place = gl_LocalInvocationID.x * POSITIONS + p;
    bool seen = place >= hidden && place < count;
    [[unroll]] for (uint g = 0u; g < GROUP; ++g) {
      float scaled = score_of(score[p][g], scale);
      score[p][g] = seen ? scaled : uintBitsToFloat(0xFF800000u);
    }
  }
}

// m of the chunk, by head. Maxima are exact in any order.
void chunk_maximum(out float m[GROUP]) {
  [[unroll]] for (uint g = 0u; g < GROUP; ++g) {
    float own = score[0][g];
    [[unroll]] for (uint p = 1u; p < POSITIONS; ++p) own = max(own, score[p][g]);
    m[g] = own;
    [[unroll]] for (uint l = 0u; l < LANES; ++l) m[g] = max(m[g], subgroupShuffle(own, l));
  }
}

// score becomes exp(score - m); l of the chunk, by head: an invocation's own in order, then the invocations in order.
void chunk_weights(float m[GROUP], out float l[GROUP]) {
  [[unroll]] for (uint g = 0u; g < GROUP; ++g) {
    precise float own = 0.0;
    [[unroll]] for (uint p = 0u; p < POSITIONS; ++p) {
      precise float e = exp(score[p][g] - m[g]);
      own = own + e;
      score[p][g] = e;
    }
    precise float all = 0.0;
    [[unroll]] for (uint i = 0u; i < LANES; ++i) all = all + subgroupShuffle(own, i);
    l[g] = all;
  }
}

void chunk_output(uint head, uint hidden, uint count) {
  [[unroll]] for (uint o = 0u; o < OWNED_UNITS; ++o) {
    [[unroll]] for (uint d = 0u; d < UNIT; ++d) {
      [[unroll]] for (uint g = 0u; g < GROUP; ++g) chunk_out[o][d][g] = 0.0;
    }
  }
  // Positions that are not seen have weight 0 and the row's own slot: finite, so they add nothing.
  for (uint l = hidden / POSITIONS; l * POSITIONS < count; ++l) {
    [[unroll]] for (uint p = 0u; p < POSITIONS; ++p) {
      uint first = subgroupShuffle(first_texel[p], l);
      float w[GROUP];
      [[unroll]] for (uint g = 0u; g < GROUP; ++g) w[g] = subgroupShuffle(score[p][g], l);
      [[unroll]] for (uint o = 0u; o < OWNED_UNITS; ++o) {
        uint unit = min(o * LANES + gl_LocalInvocationID.x, UNITS - 1u);
        float v[UNIT];
        read_unit(v_units, first, unit, block_scale(v_units, first, head, unit / (32u / UNIT)), v);
        [[unroll]] for (uint d = 0u; d < UNIT; ++d) {
          [[unroll]] for (uint g = 0u; g < GROUP; ++g) chunk_out[o][d][g] = fma(w[g], v[d], chunk_out[o][d][g]);
        }
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

// The sinks of the heads, which have no values: `keep` is what they leave of out_.
void merge_sinks(uint head, out float keep[GROUP]) {
  [[unroll]] for (uint g = 0u; g < GROUP; ++g) {
    float sink = SINKS != 0u ? sinks[head * GROUP + g] : LOWEST;
    float top = max(best[g], sink);
    keep[g] = exp(best[g] - top);
    precise float kept = sum_[g] * keep[g];
    precise float all = kept + exp(sink - top);
    sum_[g] = SINKS != 0u ? all : sum_[g];
  }
}

// A row that sees nothing gets zeros.
void write_output(uint w, uint head, bool sees, float keep[GROUP]) {
  uvec2 place = activation_column(w, tile, kv_heads * GROUP * HEAD_DIM);
  [[unroll]] for (uint o = 0u; o < OWNED_UNITS; ++o) {
    uint unit = o * LANES + gl_LocalInvocationID.x;
    if (unit < UNITS) {
      [[unroll]] for (uint g = 0u; g < GROUP; ++g) {
        uint k = (head * GROUP + g) * HEAD_DIM + unit * UNIT;
        [[unroll]] for (uint d = 0u; d < UNIT; d += 4u) {
          precise vec4 all = vec4(out_[o][d][g], out_[o][d + 1u][g], out_[o][d + 2u][g], out_[o][d + 3u][g]);
          if (SINKS != 0u) all = all * keep[g];
          precise vec4 y = all / sum_[g];
          out_activations4[activation_element(place, k + d) / 4u] = sees ? y : vec4(0.0);
        }
      }
    }
  }
}

void main() {
  uint head = gl_WorkGroupID.x;
  uint w = gl_WorkGroupID.y;
  Row row = rows_[w];
  uint first = first_key(row);
  uint keys = keys_end(row);
  hold_queries((w * kv_heads + head) * GROUP * HEAD_QUADS);
  [[unroll]] for (uint g = 0u; g < GROUP; ++g) {
    best[g] = LOWEST;
    sum_[g] = 0.0;
    [[unroll]] for (uint o = 0u; o < OWNED_UNITS; ++o) {
      [[unroll]] for (uint d = 0u; d < UNIT; ++d) out_[o][d][g] = 0.0;
    }
  }
  for (uint base = first / CHUNK * CHUNK; base < keys; base += CHUNK) {
    uint hidden = max(first, base) - base;
    uint count = min(CHUNK, keys - base);
    float m[GROUP], l[GROUP];
    find_slots(row, head, base, hidden, count);
    add_scores(head, hidden, count);
    chunk_maximum(m);
    chunk_weights(m, l);
    chunk_output(head, hidden, count);
    merge(m, l);
  }
  float keep[GROUP];
  merge_sinks(head, keep);
  write_output(w, head, keys > first, keep);
}
