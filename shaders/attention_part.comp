#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// variants: f32 CACHE=0; f16 CACHE=1; q8_0 CACHE=2
// The first step of attention: softmax(scale q . K) V of chunks of 64 positions, for up to QUERIES queries at a time.
//
// The queries of a K/V head are those of all its GROUP query heads in all rows: query n is head n mod GROUP of row
// n / GROUP. A workgroup takes neighbouring queries and a unit of UNIT_CHUNKS chunks, brings each chunk's K, then V, into
// shared memory once, and leaves for every query (attention.glsl)
//
//   m = max s_j     l = sum of exp(s_j - m)     o = sum of exp(s_j - m) V_j     s_j = score_of(q . K_j, scale), j seen
//
// merged over the chunks of a unit of several. Orders, whatever the group: s_j over ascending elements; l adds positions
// c, c + 16, c + 32, c + 48 of the chunk for each column c, then the 16 columns; o over ascending j.
//
// OWN: the chunks that a row has for itself, a workgroup to each; their entries come after those of the units.
//
// MERGED_CHUNKS: whoever comes last for a row merges its entries as well (merge.glsl), to the bits of attention_merge.comp;
// a counter for each row and K/V head tells, and nobody waits. 0: that is a step of its own.
#extension GL_KHR_memory_scope_semantics : require
#include "rows.glsl"
#include "attention.glsl"
#include "exponentials.glsl"

layout(constant_id = 11) const float SOFTCAP = 0.0;  // 0: none

// The score of a product of a query and a key.
float score_of(float product, float scale) {
  precise float score = product * scale;
  if (SOFTCAP > 0.0) {
    precise float inner = score / SOFTCAP;
    precise float capped = SOFTCAP * tanh_of(inner);
    score = capped;
  }
  return score;
}

#include "cache.glsl"
#include "activations.glsl"

layout(constant_id = 0) const uint LANES = 64;  // multiple of COLUMNS
layout(constant_id = 1) const uint HEAD_DIM = 64;
layout(constant_id = 2) const uint GROUP = 4;
layout(constant_id = 5) const uint QUERIES = 4;  // multiple of LANES / COLUMNS
layout(constant_id = 6) const uint OWN = 0;
layout(constant_id = 7) const uint UNIT_CHUNKS = 1;    // 1, or SPAN_CHUNKS
layout(constant_id = 8) const uint MERGED_CHUNKS = 0;  // chunks in an entry of shared keys, if entries are merged here
layout(constant_id = 9) const uint SINKS = 0;          // where entries are merged here: whether heads have sinks
layout(constant_id = 10) const uint VALUE_DIM = 64;    // elements of a value: its first ones where it has more
layout(local_size_x_id = 0) in;

#if CACHE == 2
#define UNIT 16u  // elements of 16 bytes
#define SLICE_UNITS 4u
#elif CACHE == 1
#define UNIT 8u
#define SLICE_UNITS 8u
#else
#define UNIT 4u
#define SLICE_UNITS 8u
#endif

const uint UNITS = HEAD_DIM / UNIT;
const uint HEAD_QUADS = HEAD_DIM / 4u;
const uint VALUE_QUADS = VALUE_DIM / 4u;
// A slice is what is in shared memory of each position at a time: 64 elements, or 32 of f32.
const uint SLICE_QUADS = SLICE_UNITS * UNIT / 4u;
const uint SLICES = (UNITS + SLICE_UNITS - 1u) / SLICE_UNITS;
const uint VALUE_SLICES = (VALUE_QUADS + SLICE_QUADS - 1u) / SLICE_QUADS;
const uint STAGE_STRIDE = SLICE_UNITS + 1u;  // one more, so that neighbouring positions lie in other banks
const uint QUERY_STRIDE = CHUNK / 4u + 1u;   // vec4 of a query

// An invocation has a column and HELD queries: of the scores four positions, of the output four elements of each slice.
const uint COLUMNS = 16u;
const uint POSITIONS = CHUNK / COLUMNS;
const uint QUERY_LANES = LANES / COLUMNS;
const uint HELD = QUERIES / QUERY_LANES;

layout(set = 0, binding = 0) readonly buffer K { uvec4 k_units[]; };  // [slots, kv_heads, UNITS]; q8_0: cache.glsl
layout(set = 0, binding = 1) readonly buffer V { uvec4 v_units[]; };
layout(set = 0, binding = 2) readonly buffer Q { vec4 queries[]; };  // [width, kv_heads * GROUP, HEAD_QUADS]
layout(set = 0, binding = 3) readonly buffer Rows { Row rows_[]; };
layout(set = 0, binding = 4) readonly buffer Ancestors { uint ancestors[]; };
layout(set = 0, binding = 5) coherent buffer Outputs { vec4 part_out[]; };   // [entries, VALUE_QUADS]
layout(set = 0, binding = 6) coherent buffer Sums { vec2 part_sums[]; };     // [entries]: m, l
layout(set = 0, binding = 7) readonly buffer Pages { uint pages[]; };        // by position / CHUNK
layout(set = 0, binding = 8) coherent buffer Counters { uint arrived[]; };   // [rows, kv_heads]; 0 between uses
layout(set = 0, binding = 9) writeonly buffer OutActivations { vec4 out_activations4[]; };  // [width, heads * VALUE_DIM]

layout(set = 0, binding = 10) readonly buffer Sinks { float sinks[]; };  // [heads], where SINKS

layout(push_constant) uniform Push {
  uint first_row;
  uint rows;  // of the dispatch
  uint kv_heads;
  uint units;  // entries of a row's head, its own chunks' not counted
  float scale;
  uint shared_queries;  // QUERIES of the dispatch for shared keys, which has `units` workgroups for each tile of them
  uint own_groups;      // workgroups of the other one for each row
};

shared uint query_first[QUERIES];  // the keys of each query that this dispatch is for: first ... end - 1
shared uint query_end[QUERIES];
shared uint complete[QUERIES];
shared uint slots[CHUNK];
shared uvec4 stage[CHUNK * STAGE_STRIDE];      // a slice of K or V
#if CACHE == 2
shared uint stage_scales[CHUNK];               // of its two blocks
#endif
shared vec4 held[QUERIES * QUERY_STRIDE];      // a slice of the queries, then weights of the chunk's positions
shared vec4 maxima[QUERIES * (COLUMNS / 4u)];  // by column
shared vec4 sums[QUERIES * (COLUMNS / 4u)];

// The scale of a unit of the slice at a position.
float staged_scale(uint position, uint unit) {
#if CACHE == 2
  vec2 both = unpackHalf2x16(stage_scales[position]);
  return unit < KV_BLOCK / UNIT ? both.x : both.y;
#else
  return 1.0;
#endif
}

vec4 decoded(uvec4 unit, uint quad, float scale) {
#if CACHE == 2
  return kv_elements(unit[quad], scale);
#elif CACHE == 1
  return quad == 0u ? vec4(unpackHalf2x16(unit.x), unpackHalf2x16(unit.y))
                    : vec4(unpackHalf2x16(unit.z), unpackHalf2x16(unit.w));
#else
  return uintBitsToFloat(unit);
#endif
}

uint column, first_query;              // of the invocation, among those of the workgroup
vec4 chunk_out[HELD];                  // of the slice that is worked on
vec4 running_out[VALUE_SLICES * HELD];  // with units of several chunks
float running_best[HELD], running_sum[HELD];

// OWN: workgroups along x are pieces of QUERIES query heads, row by row.
uint pieces() { return (GROUP + QUERIES - 1u) / QUERIES; }

// The row and the query head within the group of a query of the workgroup; false where there is none.
bool find_query(uint q, out uint row, out uint g) {
  if (OWN != 0u) {
    row = gl_WorkGroupID.x / pieces();
    g = gl_WorkGroupID.x % pieces() * QUERIES + q;
    return g < GROUP;
  }
  uint n = gl_WorkGroupID.x * QUERIES + q;
  row = n / GROUP;
  g = n % GROUP;
  return row < rows;
}

void find_keys() {
  for (uint q = gl_LocalInvocationID.x; q < QUERIES; q += LANES) {
    uint row_index, g;
    query_first[q] = 0xFFFFFFFFu;
    query_end[q] = 0u;
    if (!find_query(q, row_index, g)) continue;
    Row row = rows_[first_row + row_index];
    uint first = first_key(row), own = own_begin(row);
    uint begin = OWN != 0u ? max(first, own) : first;
    uint end = OWN != 0u ? keys_end(row) : own;
    if (begin >= end) continue;
    query_first[q] = begin;
    query_end[q] = end;
  }
}

// Slots of the chunk's positions; positions outside of low ... high - 1 are read as the nearest inside.
void find_slots(uint base, uint low, uint high) {
  uint page = pages[base / CHUNK];
  for (uint i = gl_LocalInvocationID.x; i < CHUNK; i += LANES) {
    uint position = clamp(base + i, low, high - 1u);
    uint slot = page * CHUNK + position % CHUNK;
    if (OWN != 0u) {
      Row row = rows_[first_row + gl_WorkGroupID.x / pieces()];
      if (position >= row.prefix) slot = ancestors[row.first_ancestor + position - row.prefix];
    }
    slots[i] = slot;
  }
}

// Where the head begins in a slot.
uint first_unit(uint slot) {
#if CACHE == 2
  return slot * (kv_slot_words(kv_heads, HEAD_DIM) / 4u) + gl_WorkGroupID.z * UNITS;
#else
  return (slot * kv_heads + gl_WorkGroupID.z) * UNITS;
#endif
}

void load_slice(bool values, uint slice) {
  for (uint i = gl_LocalInvocationID.x; i < CHUNK * SLICE_UNITS; i += LANES) {
    uint position = i / SLICE_UNITS, unit = i % SLICE_UNITS;
    if (slice * SLICE_UNITS + unit >= UNITS) continue;
    uint from = first_unit(slots[position]) + slice * SLICE_UNITS + unit;
    stage[position * STAGE_STRIDE + unit] = values ? v_units[from] : k_units[from];
  }
#if CACHE == 2
  for (uint i = gl_LocalInvocationID.x; i < CHUNK; i += LANES) {
    uint word = slots[i] * kv_slot_words(kv_heads, HEAD_DIM) + kv_scale_word(kv_heads, HEAD_DIM, gl_WorkGroupID.z, slice);
    stage_scales[i] = values ? v_units[word / 4u][word % 4u] : k_units[word / 4u][word % 4u];
  }
#endif
}

void load_queries(uint slice) {
  for (uint i = gl_LocalInvocationID.x; i < QUERIES * SLICE_QUADS; i += LANES) {
    uint q = i / SLICE_QUADS, quad = slice * SLICE_QUADS + i % SLICE_QUADS;
    uint row, g;
    if (!find_query(q, row, g) || quad >= HEAD_QUADS) continue;
    uint head = gl_WorkGroupID.z * GROUP + g;
    held[q * QUERY_STRIDE + i % SLICE_QUADS] = queries[((first_row + row) * kv_heads * GROUP + head) * HEAD_QUADS + quad];
  }
}

// score[p][t] += q . K of a slice, of position column + p * COLUMNS and query first_query + t.
void add_scores(uint slice, inout float score[POSITIONS][HELD]) {
  const uint units = min(SLICE_UNITS, UNITS - slice * SLICE_UNITS);
  for (uint u = 0u; u < units; ++u) {
    uvec4 k[POSITIONS];
    float k_scale[POSITIONS];
    [[unroll]] for (uint p = 0u; p < POSITIONS; ++p) {
      k[p] = stage[(column + p * COLUMNS) * STAGE_STRIDE + u];
      k_scale[p] = staged_scale(column + p * COLUMNS, u);
    }
    [[unroll]] for (uint quad = 0u; quad < UNIT / 4u; ++quad) {
      vec4 x[POSITIONS];
      [[unroll]] for (uint p = 0u; p < POSITIONS; ++p) x[p] = decoded(k[p], quad, k_scale[p]);
      [[unroll]] for (uint t = 0u; t < HELD; ++t) {
        vec4 q = held[(first_query + t) * QUERY_STRIDE + u * (UNIT / 4u) + quad];
        [[unroll]] for (uint e = 0u; e < 4u; ++e) {
          [[unroll]] for (uint p = 0u; p < POSITIONS; ++p) score[p][t] = fma(x[p][e], q[e], score[p][t]);
        }
      }
    }
  }
}

void find_scores(uint base, out float score[POSITIONS][HELD]) {
  [[unroll]] for (uint p = 0u; p < POSITIONS; ++p) {
    [[unroll]] for (uint t = 0u; t < HELD; ++t) score[p][t] = 0.0;
  }
  for (uint slice = 0u; slice < SLICES; ++slice) {
    load_slice(false, slice);
    load_queries(slice);
    barrier();
    add_scores(slice, score);
    barrier();
  }
  [[unroll]] for (uint t = 0u; t < HELD; ++t) {
    uint first = query_first[first_query + t], end = query_end[first_query + t];
    [[unroll]] for (uint p = 0u; p < POSITIONS; ++p) {
      uint position = base + column + p * COLUMNS;
      float scaled = score_of(score[p][t], scale);
      score[p][t] = position >= first && position < end ? scaled : uintBitsToFloat(0xFF800000u);
    }
  }
}

// Weights of the chunk's positions go to `held`, their sums by column to `sums`; m by query. Maxima are exact in any order.
void find_weights(float score[POSITIONS][HELD], out float m[HELD]) {
  [[unroll]] for (uint t = 0u; t < HELD; ++t) {
    float own = score[0][t];
    [[unroll]] for (uint p = 1u; p < POSITIONS; ++p) own = max(own, score[p][t]);
    maxima[(first_query + t) * (COLUMNS / 4u) + column / 4u][column % 4u] = own;
  }
  barrier();
  [[unroll]] for (uint t = 0u; t < HELD; ++t) {
    vec4 most = maxima[(first_query + t) * (COLUMNS / 4u)];
    [[unroll]] for (uint i = 1u; i < COLUMNS / 4u; ++i) most = max(most, maxima[(first_query + t) * (COLUMNS / 4u) + i]);
    m[t] = max(max(most.x, most.y), max(most.z, most.w));
    precise float own = 0.0;
    [[unroll]] for (uint p = 0u; p < POSITIONS; ++p) {
      precise float e = exp(score[p][t] - m[t]);
      own = own + e;
      uint j = column + p * COLUMNS;
      held[(first_query + t) * QUERY_STRIDE + j / 4u][j % 4u] = e;
    }
    sums[(first_query + t) * (COLUMNS / 4u) + column / 4u][column % 4u] = own;
  }
}

float chunk_sum(uint query) {
  precise float all = 0.0;
  [[unroll]] for (uint i = 0u; i < COLUMNS / 4u; ++i) {
    vec4 four = sums[query * (COLUMNS / 4u) + i];
    [[unroll]] for (uint j = 0u; j < 4u; ++j) all = all + four[j];
  }
  return all;
}

vec4 value_quad(uint j) {
  uint unit = min(column / (UNIT / 4u), SLICE_UNITS - 1u);
  return decoded(stage[j * STAGE_STRIDE + unit], column % (UNIT / 4u), staged_scale(j, unit));
}

// o of a slice. What a query does not see is left out, not multiplied by its weight 0: it may be NaN.
void find_output(uint base) {
  bool whole = true;
  uint low[HELD], high[HELD];
  [[unroll]] for (uint t = 0u; t < HELD; ++t) {
    chunk_out[t] = vec4(0.0);
    low[t] = max(query_first[first_query + t], base) - base;
    high[t] = min(max(query_end[first_query + t], base) - base, CHUNK);
    whole = whole && low[t] == 0u && high[t] == CHUNK;
  }
  for (uint j = 0u; j < CHUNK; j += 4u) {
    vec4 w[HELD];
    [[unroll]] for (uint t = 0u; t < HELD; ++t) w[t] = held[(first_query + t) * QUERY_STRIDE + j / 4u];
    [[unroll]] for (uint i = 0u; i < 4u; ++i) {
      vec4 v = value_quad(j + i);
      if (whole) {
        [[unroll]] for (uint t = 0u; t < HELD; ++t) chunk_out[t] = fma(vec4(w[t][i]), v, chunk_out[t]);
      } else {
        [[unroll]] for (uint t = 0u; t < HELD; ++t) {
          vec4 sum = fma(vec4(w[t][i]), v, chunk_out[t]);
          bool seen = j + i >= low[t] && j + i < high[t];
          chunk_out[t] = mix(chunk_out[t], sum, bvec4(seen));
        }
      }
    }
  }
}

bool has_keys(uint t, uint begin, uint end) {
  return max(query_first[first_query + t], begin) < min(query_end[first_query + t], end);
}

// The entry of a query's unit that starts at position `begin`.
uint entry_of(uint t, uint begin) {
  uint row, g;
  find_query(first_query + t, row, g);
  uint entry = first_entry(row, gl_WorkGroupID.z * GROUP + g, kv_heads * GROUP, units);
  if (OWN != 0u) return entry + units + gl_WorkGroupID.y;
  return entry + begin / (UNIT_CHUNKS * CHUNK) - query_first[first_query + t] / (UNIT_CHUNKS * CHUNK);
}

void write_part(uint t, uint begin, uint slice, vec2 best_and_sum, vec4 o) {
  uint entry = entry_of(t, begin);
  if (slice == 0u && column == 0u) part_sums[entry] = best_and_sum;
  uint quad = slice * SLICE_QUADS + column;
  if (column < SLICE_QUADS && quad < VALUE_QUADS) part_out[entry * VALUE_QUADS + quad] = o;
}

// The output of a slice, which goes to its entry or into the running one. The sum and the factors come with the first.
void attend_slice(uint slice, uint base, float m[HELD], inout float sum[HELD], inout vec2 factors[HELD]) {
  load_slice(true, slice);
  barrier();
  find_output(base);
  [[unroll]] for (uint t = 0u; t < HELD; ++t) {
    if (has_keys(t, base, base + CHUNK)) {
      if (slice == 0u) sum[t] = chunk_sum(first_query + t);
      if (UNIT_CHUNKS == 1u) {
        write_part(t, base, slice, vec2(m[t], sum[t]), chunk_out[t]);
      } else {
        if (slice == 0u) factors[t] = merge_factors(running_best[t], running_sum[t], m[t], sum[t]);
        running_out[slice * HELD + t] = merged(running_out[slice * HELD + t], chunk_out[t], factors[t]);
      }
    }
  }
  barrier();
}

void attend_chunk(uint base, uint low, uint high) {
  find_slots(base, low, high);
  barrier();
  float score[POSITIONS][HELD];
  float m[HELD], sum[HELD];
  vec2 factors[HELD];
  find_scores(base, score);
  find_weights(score, m);
  // Not a loop: compilers leave loops around loops as they are, and running_out would be indexed by a variable.
  attend_slice(0u, base, m, sum, factors);
  if (VALUE_SLICES > 1u) attend_slice(1u, base, m, sum, factors);
  if (VALUE_SLICES > 2u) attend_slice(2u, base, m, sum, factors);
  if (VALUE_SLICES > 3u) attend_slice(3u, base, m, sum, factors);
  if (VALUE_SLICES > 4u) attend_slice(4u, base, m, sum, factors);
  if (VALUE_SLICES > 5u) attend_slice(5u, base, m, sum, factors);
  if (VALUE_SLICES > 6u) attend_slice(6u, base, m, sum, factors);
  if (VALUE_SLICES > 7u) attend_slice(7u, base, m, sum, factors);
#if CACHE == 0
  if (VALUE_SLICES > 8u) attend_slice(8u, base, m, sum, factors);
  if (VALUE_SLICES > 9u) attend_slice(9u, base, m, sum, factors);
  if (VALUE_SLICES > 10u) attend_slice(10u, base, m, sum, factors);
  if (VALUE_SLICES > 11u) attend_slice(11u, base, m, sum, factors);
  if (VALUE_SLICES > 12u) attend_slice(12u, base, m, sum, factors);
  if (VALUE_SLICES > 13u) attend_slice(13u, base, m, sum, factors);
  if (VALUE_SLICES > 14u) attend_slice(14u, base, m, sum, factors);
  if (VALUE_SLICES > 15u) attend_slice(15u, base, m, sum, factors);
#endif
}

void write_unit(uint begin) {
  [[unroll]] for (uint slice = 0u; slice < VALUE_SLICES; ++slice) {
    [[unroll]] for (uint t = 0u; t < HELD; ++t) {
      if (has_keys(t, begin, begin + UNIT_CHUNKS * CHUNK)) {
        write_part(t, begin, slice, vec2(running_best[t], running_sum[t]), running_out[slice * HELD + t]);
      }
    }
  }
}

void attend(uint low, uint high) {
  const uint positions = UNIT_CHUNKS * CHUNK;
  for (uint begin = (low / positions + gl_WorkGroupID.y) * positions; begin < high;
       begin += gl_NumWorkGroups.y * positions) {
    if (UNIT_CHUNKS > 1u) {
      [[unroll]] for (uint t = 0u; t < HELD; ++t) {
        running_best[t] = LOWEST;
        running_sum[t] = 0.0;
        [[unroll]] for (uint slice = 0u; slice < VALUE_SLICES; ++slice) running_out[slice * HELD + t] = vec4(0.0);
      }
    }
    for (uint base = max(begin, low / CHUNK * CHUNK); base < min(begin + positions, high); base += CHUNK) {
      attend_chunk(base, low, high);
    }
    if (UNIT_CHUNKS > 1u) write_unit(begin);
  }
}

// What an invocation merges: two quads of a query.
const uint OWNED = 2u;
const uint HALF_QUADS = (VALUE_QUADS + 1u) / 2u;
const uint MERGE_BATCH = 4u;
uint merged_quad;
uint quad_of(uint o) { return min(merged_quad + o * HALF_QUADS, VALUE_QUADS - 1u); }

#include "merge.glsl"

#define DEVICE_BARRIER()                                                                                    \
  controlBarrier(gl_ScopeWorkgroup, gl_ScopeDevice, gl_StorageSemanticsBuffer | gl_StorageSemanticsShared, \
                 gl_SemanticsAcquireRelease)

// Counts the workgroup for `count` rows from `first` on; complete[i] then tells whether it comes last for one. The barrier
// before the count makes its entries available to the device, the count orders the workgroups, and the barrier behind it
// makes what others wrote visible to all of this one.
void count_rows(uint first, uint count) {
  DEVICE_BARRIER();
  for (uint i = gl_LocalInvocationID.x; i < count; i += LANES) {
    uint row = first + i;
    uint tiles = ((row + 1u) * GROUP - 1u) / shared_queries - row * GROUP / shared_queries + 1u;
    uint counter = row * kv_heads + gl_WorkGroupID.z;
    bool last = atomicAdd(arrived[counter], 1u) + 1u == tiles * units + own_groups;
    if (last) arrived[counter] = 0u;
    complete[i] = last ? 1u : 0u;
  }
  DEVICE_BARRIER();
}

// out = o / l of the quads of a query.
void merge_query(uint row, uint head) {
  Entries e = entries_of(rows_[first_row + row], first_entry(row, head, kv_heads * GROUP, units));
  float all_best = LOWEST, all_sum = 0.0;
  vec4 all_out[OWNED];
  [[unroll]] for (uint o = 0u; o < OWNED; ++o) all_out[o] = vec4(0.0);
  for (uint begin = e.first / SPAN * SPAN; begin < e.end; begin += SPAN) {
    merge_span(e, begin);
    vec2 factors = merge_factors(all_best, all_sum, best, sum_);
    [[unroll]] for (uint o = 0u; o < OWNED; ++o) all_out[o] = merged(all_out[o], out_[o], factors);
  }
  vec2 last = vec2(1.0, 0.0);
  if (SINKS != 0u) last = merge_factors(all_best, all_sum, sinks[head], 1.0);
  uint place = activation_row(first_row + row, kv_heads * GROUP * VALUE_DIM);
  [[unroll]] for (uint o = 0u; o < OWNED; ++o) {
    precise vec4 all = all_out[o];
    if (SINKS != 0u) all = all * last.x;
    precise vec4 y = all / all_sum;
    uint k = head * VALUE_DIM + quad_of(o) * 4u;
    out_activations4[(place + k) / 4u] = e.end > e.first ? y : vec4(0.0);
  }
}

void merge_rows() {
  uint first = OWN != 0u ? gl_WorkGroupID.x / pieces() : gl_WorkGroupID.x * QUERIES / GROUP;
  uint end = OWN != 0u ? first + 1u : min((gl_WorkGroupID.x * QUERIES + QUERIES - 1u) / GROUP + 1u, rows);
  count_rows(first, end - first);
  const uint items = GROUP * HALF_QUADS;  // of a row
  for (uint i = gl_LocalInvocationID.x; i < (end - first) * items; i += LANES) {
    if (complete[i / items] == 0u) continue;
    merged_quad = i % HALF_QUADS;
    merge_query(first + i / items, gl_WorkGroupID.z * GROUP + i / HALF_QUADS % GROUP);
  }
}

void main() {
  column = gl_LocalInvocationID.x % COLUMNS;
  first_query = gl_LocalInvocationID.x / COLUMNS * HELD;
  find_keys();
  barrier();
  uint low = 0xFFFFFFFFu, high = 0u;  // the keys of all queries lie between
  for (uint q = 0u; q < QUERIES; ++q) {
    low = min(low, query_first[q]);
    high = max(high, query_end[q]);
  }
  if (low < high) attend(low, high);
  if (MERGED_CHUNKS != 0u) merge_rows();
}
