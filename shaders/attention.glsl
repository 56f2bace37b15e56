// Attention in two steps: partial results of chunks, then their merge (attention_part.comp, attention_merge.comp).
//
// Behind rows.glsl.

// Which positions of its virtual sequence (rows.h) a row sees: first_key(row) ... keys_end(row) - 1.
layout(constant_id = 3) const uint BLOCK_MASK = 0;  // 1: its whole ancestor list, also what is behind it; 0: up to itself
layout(constant_id = 4) const uint WINDOW = 0;      // positions up to its own that it sees; 0: all

// A row without ancestors stands for nothing and sees nothing.
uint keys_end(Row row) {
  if (row.ancestor_count == 0u) return 0u;
  return BLOCK_MASK != 0u ? row.prefix + row.ancestor_count : row.position + 1u;
}

uint first_key(Row row) {
  if (WINDOW == 0u) return 0u;
  return row.position + 1u > WINDOW ? row.position + 1u - WINDOW : 0u;
}

// The keys of a row fall into two kinds. Those in the slots of their positions are the same for all rows, up to each
// row's last one: rows share them chunk by chunk. From the chunk on in which its first other slot lies, a row's chunks
// are its own; they are at most two, as a row has at most 65 ancestors.
//
// Chunks merge in ascending order into spans of 8, spans in ascending order into the row's result. Who merges the
// chunks of a span, a workgroup of the first step on its way or the second step, changes no bit.
const uint CHUNK = 64u;      // positions
const uint SPAN_CHUNKS = 8u;
const uint OWN_CHUNKS = 2u;
// Where a running maximum starts; not -inf: exp(LOWEST - m) of the first chunk must be 0, not NaN.
const float LOWEST = -3.0e38;

// Where a row's own chunks begin: a multiple of CHUNK, or keys_end(row) where it has none.
uint own_begin(Row row) {
  uint end = keys_end(row);
  uint placed = row.prefix + row.in_place;
  return placed >= end ? end : placed / CHUNK * CHUNK;
}

uint first_own_chunk(Row row) { return max(first_key(row), own_begin(row)) / CHUNK; }

// Partial results of a row's head: entry e < units is of the shared keys of its unit e, counted from the one with its
// first key; the OWN_CHUNKS entries after them are of its own chunks.
uint first_entry(uint row, uint head, uint heads, uint units) { return (row * heads + head) * (units + OWN_CHUNKS); }

// (best, sum) and out, running, take in a chunk's maximum m, sum l and output o. The factors of out are returned: of what
// was there, and of what comes.
vec2 merge_factors(inout float best, inout float sum, float m, float l) {
  float top = max(best, m);
  precise float old_weight = exp(best - top);
  precise float new_weight = exp(m - top);
  precise float kept = sum * old_weight;
  sum = fma(l, new_weight, kept);
  best = top;
  return vec2(old_weight, new_weight);
}

vec4 merged(vec4 out_, vec4 o, vec2 factors) {
  precise vec4 before = out_ * factors.x;
  return fma(o, vec4(factors.y), before);
}
