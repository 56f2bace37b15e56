#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// variants: f32 WEIGHT=0; f16 WEIGHT=1; bf16 WEIGHT=2; q8_0 WEIGHT=3; q4_1 WEIGHT=4; q5_1 WEIGHT=5; q2_k WEIGHT=6; q3_k WEIGHT=7; q4_k WEIGHT=8; q5_k WEIGHT=9; q6_k WEIGHT=10; iq4_nl WEIGHT=11; iq4_xs WEIGHT=12; mxfp4 WEIGHT=13
// variants: - MATRIX=0; matrix MATRIX=1; matrix_i8 MATRIX=2
// without: f32_matrix_i8 f16_matrix_i8 bf16_matrix_i8
// needs: cooperative_matrix
// The heads of q, k and v, whose rows are those of the weight, and at once what rope_store.comp does with them: norm,
// rotation and K/V store, to the same bits. A weight has whole heads.
//
// A head may lie in several tiles. All chunks of them leave their sums in memory, and the workgroup that comes last for a
// head, as a counter for each head and tile of columns tells, finishes it; nobody waits.
#define FINISHES_TILES 0
#define LEAST_POOL HEAD_FLOATS
#include "product.glsl"
#include "rows.glsl"
#include "cache.glsl"

layout(constant_id = 10) const uint HEAD_DIM = 64;  // a multiple of 4
layout(constant_id = 11) const uint INTERLEAVED = 0;
layout(constant_id = 12) const uint HAS_Q_NORM = 0;
layout(constant_id = 13) const uint HAS_K_NORM = 0;
layout(constant_id = 14) const int CACHE = 1;  // cache.glsl

layout(set = 0, binding = 6) readonly buffer Rows { Row rows_[]; };          // [width]
layout(set = 0, binding = 7) readonly buffer Rotation { vec2 rotation[]; };  // [context, HEAD_DIM / 2]: cos, sin
layout(set = 0, binding = 8) readonly buffer QNorm { float q_norm[]; };      // [HEAD_DIM]
layout(set = 0, binding = 9) readonly buffer KNorm { float k_norm[]; };      // [HEAD_DIM]
layout(set = 0, binding = 10) writeonly buffer Q { float q_[]; };            // [width, heads * HEAD_DIM]
layout(set = 0, binding = 11) writeonly buffer K { uint k_[]; };             // [slots, kv_heads, HEAD_DIM] of the cache's type
layout(set = 0, binding = 12) writeonly buffer V { uint v_[]; };

layout(push_constant) uniform Push {
  PRODUCT_PUSH
  uint first_head;  // of the weight, among those of q, then k, then v
  uint heads;       // of q
  uint kv_heads;
  float head_norm_eps;
  uint query_offset;  // of the rotations of queries, in positions
};

#include "heads.glsl"

// A head of a column in the pool: its elements, then sums of their squares.
const uint HEAD_FLOATS = HEAD_DIM + NORM_LANES;

#if MATRIX == 2
#include "product_i8.glsl"
#elif MATRIX == 1
#include "product_matrix.glsl"
#else
#include "product_fma.glsl"
#endif

const uint MOST_HEADS = TILE_ROWS / HEAD_DIM + 2u;  // in which a tile has rows
const uint TOGETHER = 4u * POOL_UNITS / HEAD_FLOATS;

shared uvec4 places[TILE_COLUMNS];                 // position and slot of the tile's columns
shared uvec4 complete[(MOST_HEADS + 3u) / 4u];     // by head of the tile: 1 if this workgroup finishes it

void begin_tile(uint first_column) {
  for (uint c = gl_LocalInvocationIndex; c < TILE_COLUMNS; c += INVOCATIONS) {
    Row row = rows_[min(first_column + c, width - 1u)];
    places[c] = uvec4(row.position, row.slot, 0u, 0u);
  }
}

// Heads of the weight in which a tile has rows.
struct HeadRange {
  uint first, count;
};

HeadRange heads_of_tile(uint first_row) {
  uint low = row_offset + first_row, high = row_offset + min(first_row + TILE_ROWS, rows);
  uint first = low / HEAD_DIM;
  return HeadRange(first, (high - 1u) / HEAD_DIM - first + 1u);
}

// Counts the tile's chunk for each of its heads. False if this workgroup comes last for none. The barriers are those of
// comes_last() in product_tile.glsl.
bool count_heads(HeadRange range) {
  DEVICE_BARRIER();
  for (uint i = gl_LocalInvocationIndex; i < range.count; i += INVOCATIONS) {
    uint head = range.first + i;
    uint tiles = ((head + 1u) * HEAD_DIM - 1u) / TILE_ROWS - head * HEAD_DIM / TILE_ROWS + 1u;
    uint counter = counter_base + head * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    bool last = atomicAdd(arrived[counter], 1u) + 1u == tiles * chunks();
    if (last) arrived[counter] = 0u;
    complete[i / 4u][i % 4u] = last ? 1u : 0u;
  }
  DEVICE_BARRIER();
  uint any = 0u;
  for (uint i = 0u; i < range.count; ++i) any |= complete[i / 4u][i % 4u];
  return any != 0u;
}

// A head of a column, by its place among those that are worked on together.
struct Place {
  bool asked;
  uint column, head;  // of the tile; of q, k and v
  bool is_q, is_v;
};

Place place_of(HeadRange range, uint columns, uint i) {
  uint head = i / columns;
  Place place;
  place.asked = head < range.count && complete[head / 4u][head % 4u] != 0u;
  place.column = i % columns;
  place.head = first_head + range.first + head;
  place.is_q = place.head < heads;
  place.is_v = place.head >= heads + kv_heads;
  return place;
}

bool has_norm(Place place) { return place.is_q ? HAS_Q_NORM != 0u : !place.is_v && HAS_K_NORM != 0u; }

vec4 at_quad(uint base, uint t) {
  uvec4 i = quad(t);
  return vec4(pooled(base + i.x), pooled(base + i.y), pooled(base + i.z), pooled(base + i.w));
}

void put_at_quad(uint base, uint t, vec4 x) {
  uvec4 i = quad(t);
  [[unroll]] for (uint e = 0u; e < 4u; ++e) put_pooled(base + i[e], x[e]);
}

// Sums of squares by lane, behind the head's elements: elements lane, lane + NORM_LANES, ... in order.
void sum_squares(HeadRange range, uint columns, uint first, uint count) {
  for (uint i = gl_LocalInvocationIndex; i < count * NORM_LANES; i += INVOCATIONS) {
    uint base = i / NORM_LANES * HEAD_FLOATS;
    precise float sum = 0.0;
    for (uint e = i % NORM_LANES; e < HEAD_DIM; e += NORM_LANES) {
      float x = pooled(base + e);
      sum = fma(x, x, sum);
    }
    put_pooled(base + HEAD_DIM + i % NORM_LANES, sum);
  }
}

float head_scale(uint base) {
  precise float all = 0.0;
  for (uint l = 0u; l < NORM_LANES; ++l) all = all + pooled(base + HEAD_DIM + l);
  return scale_of_squares(all, head_norm_eps);
}

// What turns a quad of a head: loaded before the head's sums are there, as it takes as long.
struct Turn {
  vec4 pairs;
  vec4 norm;
};

Turn load_turn(Place place, uint t) {
  Turn turn = Turn(vec4(0.0), vec4(0.0));
  if (!place.asked || place.is_v) return turn;
  uint pair = (places[place.column].x + (place.is_q ? query_offset : 0u)) * (HEAD_DIM / 2u) + 2u * t;
  turn.pairs = vec4(rotation[pair], rotation[pair + 1u]);
  if (has_norm(place)) {
    uvec4 i = quad(t);
    turn.norm = place.is_q ? vec4(q_norm[i.x], q_norm[i.y], q_norm[i.z], q_norm[i.w])
                           : vec4(k_norm[i.x], k_norm[i.y], k_norm[i.z], k_norm[i.w]);
  }
  return turn;
}

// Quad t of a head: normed, turned and stored. Of a K/V head for a cache in q8_0 it stays in the pool.
void store_quad(Place place, uint first_column, uint base, uint t, Turn turn) {
  vec4 x = at_quad(base, t);
  if (!place.is_v) {
    if (has_norm(place)) x = head_normed(x, head_scale(base), turn.norm);
    x = rotated(x, turn.pairs);
  }
  if (place.is_q) {
    uvec4 i = quad(t);
    uint to = ((first_column + place.column) * heads + place.head) * HEAD_DIM;
    [[unroll]] for (uint e = 0u; e < 4u; ++e) q_[to + i[e]] = x[e];
    return;
  }
  uint slot = places[place.column].y;
  uint kv_head = place.is_v ? place.head - heads - kv_heads : place.head - heads;
  if (CACHE == 2) {
    put_at_quad(base, t, x);
  } else if (slot != NO_SLOT) {
    store_pairs(place.is_v, (slot * kv_heads + kv_head) * HEAD_DIM, t, x);
  }
}

uint block_scale(uint base, uint block) {
  uint largest = 0u;
  [[unroll]] for (uint q = 0u; q < KV_BLOCK / 4u; ++q) {
    largest = max(largest, largest_magnitude(pooled_quad(base / 4u + block * (KV_BLOCK / 4u) + q)));
  }
  return kv_scale(largest);
}

// Codes of the K/V heads that wait in the pool.
void store_blocks(HeadRange range, uint columns, uint first, uint count) {
  for (uint i = gl_LocalInvocationIndex; i < count * QUADS; i += INVOCATIONS) {
    Place place = place_of(range, columns, first + i / QUADS);
    uint slot = places[place.column].y, base = i / QUADS * HEAD_FLOATS, q = i % QUADS;
    if (!place.asked || place.is_q || slot == NO_SLOT) continue;
    uint kv_head = place.is_v ? place.head - heads - kv_heads : place.head - heads;
    uint block = q / (KV_BLOCK / 4u), scale = block_scale(base, block);
    store_codes(place.is_v, slot, kv_head, q, pooled_quad(base / 4u + q), scale);
    if (q % (KV_BLOCK / 2u) != 0u) continue;
    uint next = block + 1u < HEAD_DIM / KV_BLOCK ? block_scale(base, block + 1u) : 0u;
    store_scales(place.is_v, slot, kv_head, block / 2u, scale, next);
  }
}

// Heads of columns number first ... first + count - 1, which the pool has room for.
void finish_heads(HeadRange range, uint first_column, uint columns, uint first, uint count) {
  Turn turn = load_turn(place_of(range, columns, first + gl_LocalInvocationIndex / QUADS), gl_LocalInvocationIndex % QUADS);
  barrier();  // what was in the pool is no longer needed
  for (uint i = gl_LocalInvocationIndex; i < count * QUADS; i += INVOCATIONS) {
    Place place = place_of(range, columns, first + i / QUADS);
    if (!place.asked) continue;
    uint row = (place.head - first_head) * HEAD_DIM + 4u * (i % QUADS);
    vec4 sum = shared_sum(first_column + place.column, row);
    [[unroll]] for (uint e = 0u; e < 4u; ++e) put_pooled(i / QUADS * HEAD_FLOATS + 4u * (i % QUADS) + e, sum[e]);
  }
  barrier();
  if (HAS_Q_NORM != 0u || HAS_K_NORM != 0u) {
    sum_squares(range, columns, first, count);
    barrier();
  }
  for (uint i = gl_LocalInvocationIndex; i < count * QUADS; i += INVOCATIONS) {
    Place place = place_of(range, columns, first + i / QUADS);
    if (i >= INVOCATIONS) turn = load_turn(place, i % QUADS);
    if (place.asked) store_quad(place, first_column, i / QUADS * HEAD_FLOATS, i % QUADS, turn);
  }
  if (CACHE == 2) {
    barrier();
    store_blocks(range, columns, first, count);
  }
}

void finish(uint first_column, uint first_row) {
  HeadRange range = heads_of_tile(first_row);
  if (!count_heads(range)) return;
  uint columns = min(TILE_COLUMNS, width - first_column);
  uint all = range.count * columns;
  for (uint first = 0u; first < all; first += TOGETHER) {
    finish_heads(range, first_column, columns, first, min(TOGETHER, all - first));
  }
}
