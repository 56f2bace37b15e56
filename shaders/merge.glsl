// Merging the partial results of a row's head (attention.glsl), for attention_merge.comp and for whoever comes last in
// attention_part.comp. Behind declarations of VALUE_QUADS, OWNED (quads of an invocation), quad_of() (which they are),
// MERGED_CHUNKS (chunks in an entry of shared keys: 1, or SPAN_CHUNKS), MERGE_BATCH (entries loaded together), `units`,
// `part_out` and `part_sums`.

const uint SPAN = SPAN_CHUNKS * CHUNK;  // positions

// What is merged of a span so far.
float best, sum_;
vec4 out_[OWNED];

void start() {
  best = LOWEST;
  sum_ = 0.0;
  [[unroll]] for (uint o = 0u; o < OWNED; ++o) out_[o] = vec4(0.0);
}

void take_in(vec2 sums, vec4 o[OWNED]) {
  vec2 factors = merge_factors(best, sum_, sums.x, sums.y);
  [[unroll]] for (uint i = 0u; i < OWNED; ++i) out_[i] = merged(out_[i], o[i], factors);
}

void load(uint entry, out vec2 sums, out vec4 o[OWNED]) {
  sums = part_sums[entry];
  [[unroll]] for (uint i = 0u; i < OWNED; ++i) o[i] = part_out[entry * VALUE_QUADS + quad_of(i)];
}

// The entries of the span's shared keys, MERGE_BATCH at a time, whose loads overlap.
void merge_shared(uint entry, uint first, uint end, uint begin) {
  const uint positions = MERGED_CHUNKS * CHUNK;
  if (max(first, begin) >= min(end, begin + SPAN)) return;
  uint low = max(first, begin) / positions;
  uint high = (min(end, begin + SPAN) + positions - 1u) / positions;  // units low ... high - 1
  if (MERGED_CHUNKS == SPAN_CHUNKS) {  // merged on the way: the state itself
    vec2 sums;
    load(entry + low - first / positions, sums, out_);
    best = sums.x;
    sum_ = sums.y;
    return;
  }
  for (uint unit = low; unit < high; unit += MERGE_BATCH) {
    vec2 sums[MERGE_BATCH];
    vec4 o[MERGE_BATCH][OWNED];
    [[unroll]] for (uint i = 0u; i < MERGE_BATCH; ++i) {
      load(entry + min(unit + i, high - 1u) - first / positions, sums[i], o[i]);
    }
    [[unroll]] for (uint i = 0u; i < MERGE_BATCH; ++i) {
      if (unit + i < high) take_in(sums[i], o[i]);
    }
  }
}

// The row's own chunks in the span.
void merge_own(uint entry, uint first_chunk, uint end_chunk, uint begin) {
  [[unroll]] for (uint k = 0u; k < OWN_CHUNKS; ++k) {
    uint chunk = first_chunk + k;
    if (chunk >= end_chunk || chunk / SPAN_CHUNKS != begin / SPAN) continue;
    vec2 sums;
    vec4 o[OWNED];
    load(entry + units + k, sums, o);
    take_in(sums, o);
  }
}

// Where a row's entries of a head lie, and which keys they are of.
struct Entries {
  uint first, own, end;  // shared keys are first ... own - 1, the row's own own ... end - 1
  uint entry;            // of the first shared key
  uint own_chunk, end_chunk;
};

Entries entries_of(Row row, uint entry) {
  uint first = first_key(row), own = own_begin(row), end = keys_end(row);
  uint own_chunk = first_own_chunk(row);
  return Entries(first, own, end, entry, own_chunk, own < end ? (end + CHUNK - 1u) / CHUNK : own_chunk);
}

// The span that starts at position `begin`, into the state.
void merge_span(Entries e, uint begin) {
  start();
  merge_shared(e.entry, e.first, e.own, begin);
  merge_own(e.entry, e.own_chunk, e.end_chunk, begin);
}
