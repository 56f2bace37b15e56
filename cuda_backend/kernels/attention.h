#pragma once
// Attention by chunks of a row's keys: what the rows of a block are, a chunk by the lanes of a warp, the blocks, and
// the merge of the chunks.

#include <type_traits>

#include "cuda_backend/kernels/cache.h"

namespace canopy::cuda {

// Which keys a row sees, in chunks of 64 positions, and where it has what comes of them. A row's positions are those of
// its virtual sequence (rows.h), wherever their slots are, so nothing depends on the rows beside it.
//
// A chunk that a row sees whole, in the slots that the page table has for its positions, is shared: a block reads it
// once for all rows of its tile that see it so. The others are the row's own: those that its ancestors lie in, two at
// most, and the one that a window begins in, with what follows of its span.

constexpr uint32_t kChunk = 64;
/// Less than any score, and no infinity: differences of it stay numbers.
constexpr float kLowest = -3.0e38f;

struct RowChunks {
  uint32_t first = 0, end = 0;   // positions that the row sees
  uint32_t start = 0, tail = 0;  // its first chunk, and the first of its own at the end
  uint32_t shared = 0;           // the first chunk that it shares, if any lies before `tail`
  uint32_t tails = 0;            // own chunks from `tail` on

  CANOPY_DEVICE bool shares(uint32_t chunk) const { return chunk >= shared && chunk < tail; }
  CANOPY_DEVICE uint32_t base_span() const { return start / kSpanChunks; }

  // Its results in ascending order: own chunks at the start, spans of shared chunks, own chunks at the end.
  CANOPY_DEVICE uint32_t starts() const { return shared - start; }
  CANOPY_DEVICE uint32_t shared_spans() const {
    return shared < tail ? (tail - 1) / kSpanChunks - shared / kSpanChunks + 1 : 0;
  }
  CANOPY_DEVICE uint32_t results() const { return starts() + shared_spans() + tails; }
  CANOPY_DEVICE uint32_t span_of_result(uint32_t i) const {
    if (i < starts()) return base_span();
    i -= starts();
    return i < shared_spans() ? shared / kSpanChunks + i : (tail + i - shared_spans()) / kSpanChunks;
  }
  /// Among the row's entries.
  CANOPY_DEVICE uint32_t entry_of_result(const AttentionParams& p, uint32_t i) const {
    if (i < starts()) return p.spans + i;
    i -= starts();
    return i < shared_spans() ? shared / kSpanChunks + i - base_span()
                              : p.spans + p.own_chunks - kTailChunks + i - shared_spans();
  }
  /// The chunk that has own entry `i`; none is the chunk behind all.
  CANOPY_DEVICE uint32_t own_chunk(const AttentionParams& p, uint32_t i) const {
    const uint32_t none = 0xFFFFFFFFu, before_tail = p.own_chunks - kTailChunks;
    if (i < before_tail) return i < starts() ? start + i : none;
    return i - before_tail < tails ? tail + i - before_tail : none;
  }
};

CANOPY_DEVICE RowChunks chunks_of(const AttentionParams& p, const Row& row) {
  RowChunks c;
  if (row.ancestor_count == 0) return c;
  c.end = p.block_mask != 0 ? row.prefix + row.ancestor_count : row.position + 1;
  if (p.window > 0 && row.position + 1 > p.window) c.first = row.position + 1 - p.window;
  const uint32_t in_place = row.in_place < row.ancestor_count ? row.in_place : row.ancestor_count;
  const uint32_t in_place_end = row.prefix + in_place < c.end ? row.prefix + in_place : c.end;
  c.start = c.first / kChunk;
  c.tail = in_place_end / kChunk > c.start ? in_place_end / kChunk : c.start;
  c.tails = (c.end + kChunk - 1) / kChunk - c.tail;
  c.shared = c.start;
  if (c.first % kChunk != 0) {
    const uint32_t span_end = (c.base_span() + 1) * kSpanChunks;
    c.shared = span_end < c.tail ? span_end : c.tail;
  }
  return c;
}

CANOPY_DEVICE uint32_t slot_at(const AttentionParams& p, const Row& row, uint32_t position) {
  if (position >= row.prefix) return Span<const uint32_t>{p.ancestors}[row.first_ancestor + position - row.prefix];
  return Span<const uint32_t>{p.pages}[position / kPagePositions] * kPagePositions + position % kPagePositions;
}

/// The queries of an item: item_heads query heads of each of some rows, which share a K/V head.
struct Item {
  uint32_t kv_head, first_row, rows, piece;

  CANOPY_DEVICE uint32_t row(const AttentionParams& p, uint32_t n) const { return first_row + n / p.item_heads; }
  CANOPY_DEVICE uint32_t head(const AttentionParams& p, uint32_t n) const {
    return kv_head * p.group() + piece * p.item_heads + n % p.item_heads;
  }
  CANOPY_DEVICE bool has(const AttentionParams& p, uint32_t n) const {
    return n / p.item_heads < rows && piece * p.item_heads + n % p.item_heads < p.group();
  }
};

/// The place of a result among those of all rows of the launch.
CANOPY_DEVICE uint64_t entry_at(const AttentionParams& p, uint32_t row, uint32_t head, uint32_t entry) {
  return (uint64_t{row} * p.heads + head) * p.entries() + entry;
}

// ---- merging --------------------------------------------------------------------------------------------------------

/// The largest score of some positions and the sum of exp(score - largest).
struct alignas(8) Part {
  float best = kLowest, sum = 0;
};
/// What the results of two parts are multiplied by when they are added.
struct PartFactors {
  float keep, add;
};
CANOPY_DEVICE PartFactors merge_into(Part& part, const Part& more) {
  const float top = fmaxf(part.best, more.best);
  const PartFactors factors{expf(part.best - top), expf(more.best - top)};
  part.sum = part.sum * factors.keep + more.sum * factors.add;
  part.best = top;
  return factors;
}
/// That of an entry: each slice of a head has its own, as nobody waits for the others.
CANOPY_DEVICE Part& part_at(const AttentionParams& p, uint64_t entry, uint32_t slice) {
  return Span<Part>{p.part_sums}[entry * p.value_slices + slice];
}
CANOPY_DEVICE float merged(float out, float more, const PartFactors& factors) {
  return out * factors.keep + more * factors.add;
}

// A chunk of keys and values with eight queries, on tensor cores, by one warp: the largest score m, the sum l of
// exp(score - m), and o = the sum of exp(score - m) V.
//
// Queries and weights are cut into two halves each, the second of what the first leaves, so that together they have 22
// bits; so are keys and values where the cache has more than halves. Positions and elements of a head are the rows of
// the instructions' results, queries their columns, so a query's result has nothing to do with those beside it.

/// A stage has some positions' keys or values of a slice, each position's 16 units of 8 halves in an order that lets
/// eight positions be read at a time. Of caches with more than halves the rest of each number is behind.
template <uint32_t TYPE>
constexpr bool kHasRest = TYPE != kCacheF16;
template <uint32_t TYPE>
constexpr uint32_t kStagePositions = kHasRest<TYPE> ? 16 : 32;
template <uint32_t TYPE>
constexpr uint32_t kChunkStages = kChunk / kStagePositions<TYPE>;
constexpr uint32_t kRestAt = kAttentionStageBytes / 2, kUnits = kSliceDims / 8;

CANOPY_DEVICE uint32_t unit_at(uint32_t position, uint32_t unit) {
  return position * (kSliceDims * 2) + (unit ^ (position & 7u)) * 16;
}

struct alignas(8) FloatPair {
  float first, second;
};

/// Two numbers as halves, and what those leave of them.
struct SplitPair {
  uint32_t halves, rest;
};
CANOPY_DEVICE SplitPair split(float a, float b) {
  const uint32_t halves = gpu::pack_halves(a, b);
  return {halves, gpu::pack_halves(a - gpu::half_value(static_cast<uint16_t>(halves)),
                                   b - gpu::half_value(static_cast<uint16_t>(halves >> 16)))};
}

// ---- bringing stages ------------------------------------------------------------------------------------------------

/// Eight neighbouring elements of a head as they lie in the cache; zeros where there are none. Heads of halves are here
/// whole units, those of blocks always are, and those of floats have an even number of elements.
template <uint32_t TYPE>
struct Eight {
  Unit halves = {};
  CANOPY_DEVICE void load(const CacheParams& c, uint64_t address, uint32_t slot, uint32_t head, uint32_t d) {
    halves = Span<const Unit>{address}[(uint64_t{slot} * c.slot_words * 2 + head * c.head_dim + d) / 8];
  }
};
template <>
struct Eight<kCacheF32> {
  FloatPair pairs[4] = {};
  CANOPY_DEVICE void load(const CacheParams& c, uint64_t address, uint32_t slot, uint32_t head, uint32_t d) {
    const uint64_t first = (uint64_t{slot} * c.slot_words + head * c.head_dim + d) / 2;
    CANOPY_UNROLL
    for (uint32_t i = 0; i < 4; ++i) {
      if (d + i * 2 < c.head_dim) pairs[i] = Span<const FloatPair>{address}[first + i];
    }
  }
  CANOPY_DEVICE FloatPair pair(uint32_t i) const { return pairs[i]; }
};
template <>
struct Eight<kCacheQ80> {
  WordPair codes = {};
  uint16_t scale = 0;
  CANOPY_DEVICE void load(const CacheParams& c, uint64_t address, uint32_t slot, uint32_t head, uint32_t d) {
    codes = Span<const WordPair>{address}[(uint64_t{slot} * c.slot_words * 4 + head * c.head_dim + d) / 8];
    scale = Span<const uint16_t>{address}[scale_half(c, slot, head, d / kKvBlockSize)];
  }
  CANOPY_DEVICE float value(uint32_t e) const {
    const uint32_t code = (e < 4 ? codes.first : codes.second) >> (e % 4 * 8) & 255u;
    return static_cast<float>(static_cast<int>(code) - 128) * gpu::half_value(scale);
  }
  CANOPY_DEVICE FloatPair pair(uint32_t i) const { return {value(i * 2), value(i * 2 + 1)}; }
};

template <uint32_t TYPE>
CANOPY_DEVICE void store_eight(const Eight<TYPE>& eight, uint32_t to) {
  if constexpr (kHasRest<TYPE>) {
    Unit halves, rest;
    CANOPY_UNROLL
    for (uint32_t i = 0; i < 4; ++i) {
      const FloatPair values = eight.pair(i);
      const SplitPair both = split(values.first, values.second);
      halves.words[i] = both.halves;
      rest.words[i] = both.rest;
    }
    gpu::Shared<Unit>(to, 1)[0] = halves;
    gpu::Shared<Unit>(to + kRestAt, 1)[0] = rest;
  } else {
    gpu::Shared<Unit>(to, 1)[0] = eight.halves;
  }
}

/// Eight halves of a head that is no whole number of units, two after the other: kept small, as few heads are so.
CANOPY_DEVICE void bring_pairs(const CacheParams& c, uint64_t address, uint32_t slot, uint32_t head, uint32_t d,
                               uint32_t to) {
  const uint64_t first = uint64_t{slot} * c.slot_words + (head * c.head_dim + d) / 2;  // head_dim is even
  CANOPY_NO_UNROLL
  for (uint32_t i = 0; i < 4; ++i) {
    const bool is_there = slot != kNoSlot && d + i * 2 < c.head_dim;
    gpu::Shared<uint32_t>(to + i * 4, 1)[0] = is_there ? Span<const uint32_t>{address}[first + i] : 0;
  }
}

/// Begins to bring a stage; `member` of `members` threads, whole warps, does its part. slot_of(i) gives the slot of
/// position i of the stage, kNoSlot for zeros; it may be an operation of the warp. BATCH: units that a thread asks for
/// together, where they are not copied aside.
template <uint32_t TYPE, uint32_t BATCH, class SlotOf>
CANOPY_DEVICE void bring_stage(const CacheParams& c, uint64_t address, uint32_t to, uint32_t head, uint32_t slice,
                               uint32_t member, uint32_t members, const SlotOf& slot_of) {
  constexpr uint32_t all = kStagePositions<TYPE> * kUnits;
  if constexpr (TYPE == kCacheF16) {
    if (c.head_dim % 8 != 0) {
      CANOPY_NO_UNROLL
      for (uint32_t i = member; i < all; i += members) {
        const uint32_t position = i / kUnits, unit = i % kUnits;
        bring_pairs(c, address, slot_of(position), head, slice * kSliceDims + unit * 8, to + unit_at(position, unit));
      }
      return;
    }
  }
  if constexpr (TYPE == kCacheF16 && gpu::kCopiesAside) {
    CANOPY_NO_UNROLL
    for (uint32_t i = member; i < all; i += members) {
      const uint32_t position = i / kUnits, unit = i % kUnits, d = slice * kSliceDims + unit * 8;
      const uint32_t slot = slot_of(position);
      const bool is_there = slot != kNoSlot && d < c.head_dim;
      const uint64_t offset = (uint64_t{slot} * c.slot_words * 2 + head * c.head_dim + d) * 2;
      gpu::copy_async_or_zero(to + unit_at(position, unit), address + (is_there ? offset : 0), is_there);
    }
  } else {
    CANOPY_NO_UNROLL
    for (uint32_t first = member; first < all; first += members * BATCH) {
      Eight<TYPE> eights[BATCH];
      CANOPY_UNROLL
      for (uint32_t b = 0; b < BATCH; ++b) {  // asked for together
        const uint32_t i = first + b * members, d = slice * kSliceDims + i % kUnits * 8;
        if (i >= all) break;
        const uint32_t slot = slot_of(i / kUnits);
        if (slot != kNoSlot && d < c.head_dim) eights[b].load(c, address, slot, head, d);
      }
      CANOPY_UNROLL
      for (uint32_t b = 0; b < BATCH; ++b) {
        const uint32_t i = first + b * members;
        if (i < all) store_eight<TYPE>(eights[b], to + unit_at(i / kUnits, i % kUnits));
      }
    }
  }
}

// ---- queries --------------------------------------------------------------------------------------------------------

/// A query beyond the range of halves is scaled by a power of two, which its scores are multiplied by again.
constexpr float kMostHalf = 65504.0f;
/// More than any score; scores beyond it become it, as differences of infinities are no numbers.
constexpr float kHighest = 3.0e38f;

/// The power of two by which a query is divided whose largest element is `largest`: 1 where that is no number.
CANOPY_DEVICE float query_factor(float largest) {
  constexpr uint32_t infinite = 255, kept = 14;  // exponents
  const uint32_t exponent = gpu::bits(largest) >> 23;
  return exponent >= infinite ? 1.0f : gpu::from_bits((exponent - kept) << 23);
}

/// The eight queries of an item in shared memory, as halves and what those leave, and a factor behind each.
struct Queries {
  uint32_t begin, dims;  // dims: head_dim up to whole 16

  CANOPY_DEVICE Queries(const AttentionParams& p, uint32_t number)
      : begin(p.queries_at + number * query_bytes(p.cache.head_dim)), dims(query_dims(p.cache.head_dim)) {}
  CANOPY_DEVICE uint32_t at(uint32_t n, uint32_t d) const { return begin + (n * (dims + 8) + d) * 2; }
  CANOPY_DEVICE uint32_t rest() const { return kItemQueries * (dims + 8) * 2; }
  CANOPY_DEVICE float& factor(uint32_t n) const { return gpu::Shared<float>(at(n, dims), 1)[0]; }

  /// COUNT queries, `first` and every `step`-th from there, by this warp, asked for together. Warps wait for each other
  /// behind it.
  template <uint32_t COUNT>
  CANOPY_DEVICE void bring(const AttentionParams& p, const Item& item, uint32_t first, uint32_t step) const {
    constexpr uint32_t each = 2, apart = 64;  // pairs of a lane of each query, and elements between them
    float largest[COUNT] = {};
    CANOPY_NO_UNROLL
    for (uint32_t d = gpu::lane() * 2; d < dims; d += each * apart) {
      FloatPair values[COUNT * each];
      CANOPY_UNROLL
      for (uint32_t i = 0; i < COUNT * each; ++i) {
        values[i] = pair_of(p, item, first + i / each * step, d + i % each * apart);
      }
      CANOPY_UNROLL
      for (uint32_t i = 0; i < COUNT * each; ++i) {
        largest[i / each] = fmaxf(largest[i / each], largest_of(values[i]));
        store(first + i / each * step, d + i % each * apart, values[i], 1.0f);
      }
    }
    uint32_t beyond = 0;  // the range of halves
    CANOPY_UNROLL
    for (uint32_t i = 0; i < COUNT; ++i) {
      if (gpu::ballot(largest[i] > kMostHalf) != 0) beyond |= 1u << i;
      if (gpu::lane() == 0) factor(first + i * step) = 1;
    }
    CANOPY_NO_UNROLL
    for (uint32_t i = 0; beyond >> i != 0; ++i) {
      if ((beyond >> i & 1u) != 0) bring_scaled(p, item, first + i * step);
    }
  }
  /// Query n again, divided by a power of two.
  CANOPY_DEVICE void bring_scaled(const AttentionParams& p, const Item& item, uint32_t n) const {
    float largest = 0;
    CANOPY_NO_UNROLL
    for (uint32_t d = gpu::lane() * 2; d < dims; d += 64) largest = fmaxf(largest, largest_of(pair_of(p, item, n, d)));
    const float power = query_factor(gpu::from_bits(gpu::largest(gpu::bits(largest))));
    CANOPY_NO_UNROLL
    for (uint32_t d = gpu::lane() * 2; d < dims; d += 64) store(n, d, pair_of(p, item, n, d), 1.0f / power);
    if (gpu::lane() == 0) factor(n) = power;
  }
  /// Elements d and d + 1 of query n; zeros where there are none.
  CANOPY_DEVICE FloatPair pair_of(const AttentionParams& p, const Item& item, uint32_t n, uint32_t d) const {
    if (!item.has(p, n) || d >= p.cache.head_dim) return {0, 0};
    const uint64_t from = (uint64_t{p.first_row + item.row(p, n)} * p.heads + item.head(p, n)) * p.cache.head_dim;
    return Span<const FloatPair>{p.q}[(from + d) / 2];
  }
  CANOPY_DEVICE static float largest_of(const FloatPair& pair) { return fmaxf(fabsf(pair.first), fabsf(pair.second)); }
  CANOPY_DEVICE void store(uint32_t n, uint32_t d, const FloatPair& values, float by) const {
    if (d >= dims) return;
    const SplitPair pair = split(values.first * by, values.second * by);
    gpu::Shared<uint32_t>(at(n, d), 1)[0] = pair.halves;
    gpu::Shared<uint32_t>(at(n, d) + rest(), 1)[0] = pair.rest;
  }
  /// What an instruction takes of elements d ... d + 15.
  CANOPY_DEVICE void load(uint32_t d, uint32_t (&halves)[2], uint32_t (&left)[2]) const {
    const uint32_t from = at(gpu::lane() / 4, d + gpu::lane() % 4 * 2);
    CANOPY_UNROLL
    for (uint32_t i = 0; i < 2; ++i) {
      halves[i] = gpu::Shared<uint32_t>(from + 16 * i, 1)[0];
      left[i] = gpu::Shared<uint32_t>(from + 16 * i + rest(), 1)[0];
    }
  }
};

// ---- computing ------------------------------------------------------------------------------------------------------

/// A score that is no infinity; what is no number stays so.
CANOPY_DEVICE float within_range(float score) {
  const float high = score > kHighest ? kHighest : score;
  return high < kLowest ? kLowest : high;
}

/// softcap * tanh(score / softcap), where there is a softcap: near 0 with the digits that a softmax needs, in fewer
/// registers than tanhf.
CANOPY_DEVICE float capped(const AttentionParams& p, float score) {
  if (!(p.softcap > 0)) return score;
  return p.softcap * (1.0f - 2.0f / (expf(2.0f * score / p.softcap) + 1.0f));
}

/// Elements of slice `slice` of a value.
CANOPY_DEVICE uint32_t slice_elements(const AttentionParams& p, uint32_t slice) {
  const uint32_t left = p.value_dim - slice * kSliceDims;
  return left < kSliceDims ? left : kSliceDims;
}

/// Of positions or elements 16 t + g and + 8 (g: lane / 4), queries 2 (lane % 4) and the next.
using TileOf16 = float[4];

/// Calls act(n) for the one n below COUNT that `number` is, as a constant, so that what it chooses is a register.
template <uint32_t COUNT, class Act>
CANOPY_DEVICE void with_constant(uint32_t number, const Act& act) {
  if constexpr (COUNT > 1) {
    if (number < COUNT - 1) return with_constant<COUNT - 1>(number, act);
  }
  act(std::integral_constant<uint32_t, COUNT - 1>());
}

template <uint32_t TYPE>
struct ChunkOfQueries {
  static constexpr uint32_t kTiles = kStagePositions<TYPE> / 16;  // of positions, in a stage
  TileOf16 scores[4] = {};                                        // of 64 positions, later their weights
  TileOf16 out[8] = {};                                           // of a slice's 128 elements
  Part parts[2];                                                  // of the lane's two queries

  /// scores += K q of the chunk's stage STAGE of keys.
  template <uint32_t STAGE>
  CANOPY_DEVICE void add_scores(uint32_t stage, uint32_t slice, const Queries& queries) {
    const uint32_t row = gpu::lane() / 8 % 2 * 8 + gpu::lane() % 8, unit = gpu::lane() / 16;
    CANOPY_NO_UNROLL
    for (uint32_t k = 0; k < kSliceDims / 16; ++k) {
      const uint32_t d = slice * kSliceDims + k * 16;
      if (d >= queries.dims) break;
      uint32_t q[2], q_rest[2];
      queries.load(d, q, q_rest);
      CANOPY_UNROLL
      for (uint32_t t = 0; t < kTiles; ++t) {
        uint32_t keys[4];
        const uint32_t at = stage + unit_at(t * 16 + row, k * 2 + unit);
        gpu::load_matrices<false>(at, keys);
        TileOf16& sums = scores[STAGE * kTiles + t];
        gpu::multiply(sums, keys, q);
        gpu::multiply(sums, keys, q_rest);
        if constexpr (kHasRest<TYPE>) {
          gpu::load_matrices<false>(at + kRestAt, keys);
          gpu::multiply(sums, keys, q);
        }
      }
    }
  }

  /// Scores become weights; positions low ... high - 1 of the chunk count.
  CANOPY_DEVICE void weigh(const AttentionParams& p, const Queries& queries, uint32_t low, uint32_t high) {
    const auto counts = [&](uint32_t t, uint32_t i) {
      const uint32_t position = t * 16 + gpu::lane() / 4 + i / 2 * 8;
      return position >= low && position < high;
    };
    CANOPY_UNROLL
    for (uint32_t j = 0; j < 2; ++j) {
      const float factor = queries.factor(gpu::lane() % 4 * 2 + j);
      float best = kLowest;
      CANOPY_UNROLL
      for (uint32_t t = 0; t < 4; ++t) {
        CANOPY_UNROLL
        for (uint32_t i = j; i < 4; i += 2) {
          const float score = scores[t][i] * p.scale * factor;
          scores[t][i] = counts(t, i) ? within_range(capped(p, score)) : kLowest;
          best = fmaxf(best, scores[t][i]);
        }
      }
      CANOPY_UNROLL
      for (uint32_t mask = 4; mask < 32; mask *= 2) best = fmaxf(best, gpu::shuffle_xor(best, mask));
      float sum = 0;
      CANOPY_UNROLL
      for (uint32_t t = 0; t < 4; ++t) {
        CANOPY_UNROLL
        for (uint32_t i = j; i < 4; i += 2) {
          scores[t][i] = counts(t, i) ? expf(scores[t][i] - best) : 0.0f;
          sum = sum + scores[t][i];
        }
      }
      CANOPY_UNROLL
      for (uint32_t mask = 4; mask < 32; mask *= 2) sum = sum + gpu::shuffle_xor(sum, mask);
      parts[j] = {best, sum};
    }
  }

  /// out += V weights of the chunk's stage STAGE of values, `elements` of the slice.
  template <uint32_t STAGE>
  CANOPY_DEVICE void add_values(uint32_t stage, uint32_t elements) {
    const uint32_t row = gpu::lane() / 16 * 8 + gpu::lane() % 8, unit = gpu::lane() / 8 % 2;
    CANOPY_UNROLL
    for (uint32_t k = 0; k < kTiles; ++k) {
      const TileOf16& weights = scores[STAGE * kTiles + k];
      uint32_t w[2], w_rest[2];
      CANOPY_UNROLL
      for (uint32_t i = 0; i < 2; ++i) {
        const SplitPair pair = split(weights[2 * i], weights[2 * i + 1]);
        w[i] = gpu::transpose(pair.halves);
        w_rest[i] = gpu::transpose(pair.rest);
      }
      CANOPY_UNROLL
      for (uint32_t d = 0; d < 8; ++d) {
        if (d * 16 >= elements) break;
        uint32_t values[4];
        const uint32_t at = stage + unit_at(k * 16 + row, d * 2 + unit);
        gpu::load_matrices<true>(at, values);
        gpu::multiply(out[d], values, w);
        gpu::multiply(out[d], values, w_rest);
        if constexpr (kHasRest<TYPE>) {
          gpu::load_matrices<true>(at + kRestAt, values);
          gpu::multiply(out[d], values, w);
        }
      }
    }
  }

  /// A stage of the chunk's keys, or of its values: number `part`.
  CANOPY_DEVICE void add_stage(const AttentionParams& p, bool is_values, uint32_t part, uint32_t stage, uint32_t slice,
                               const Queries& queries) {
    with_constant<kChunkStages<TYPE>>(part, [&](auto number) {
      if (is_values) {
        add_values<decltype(number)::value>(stage, slice_elements(p, slice));
      } else {
        add_scores<decltype(number)::value>(stage, slice, queries);
      }
    });
  }
};

// What a block of attention works on, and what all of them do with a chunk and with rows' own chunks.

/// What a block works on.
struct AttentionPlace {
  uint32_t slice, work, tile, kv_head;  // work: a span, or behind all spans a block for own chunks

  CANOPY_DEVICE explicit AttentionPlace(const AttentionParams& p) {
    uint32_t rest = gpu::block_x();
    slice = rest % p.value_slices;
    rest /= p.value_slices;
    work = rest % (p.span_blocks + p.own_blocks);
    rest /= p.span_blocks + p.own_blocks;
    tile = rest % p.tiles;
    kv_head = rest / p.tiles;
  }
  // Tiles of the same rows have their pieces in turn.
  CANOPY_DEVICE uint32_t tiles_of_rows(const AttentionParams& p) const {
    return (p.pieces + p.tile_pieces - 1) / p.tile_pieces;
  }
  CANOPY_DEVICE uint32_t first_row(const AttentionParams& p) const { return tile / tiles_of_rows(p) * p.tile_rows; }
  CANOPY_DEVICE uint32_t first_piece(const AttentionParams& p) const { return tile % tiles_of_rows(p) * p.tile_pieces; }
  CANOPY_DEVICE uint32_t rows(const AttentionParams& p) const {
    const uint32_t left = p.row_count - first_row(p);
    return left < p.tile_rows ? left : p.tile_rows;
  }
  /// Item `i` of the tile; one without rows where there is none.
  CANOPY_DEVICE Item item(const AttentionParams& p, uint32_t i) const {
    const uint32_t row = i / p.tile_pieces * p.item_rows, piece = first_piece(p) + i % p.tile_pieces;
    const uint32_t left = row < rows(p) && piece < p.pieces ? rows(p) - row : 0;
    return {kv_head, first_row(p) + row, left < p.item_rows ? left : p.item_rows, piece};
  }
};

CANOPY_DEVICE Row row_of(const AttentionParams& p, uint32_t row) {
  return Span<const Row>{p.rows}[p.first_row + row];
}

// Shared memory: a flag, a small table, then rings, of the block or of each warp, and queries.
constexpr uint32_t kAttentionFlag = 0, kAttentionTable = 64;

/// Leaves the results of a lane's two queries at an entry of their rows, or nowhere.
template <class EntryOf>
CANOPY_DEVICE void leave(const AttentionParams& p, const Item& item, uint32_t slice, const TileOf16 (&out)[8],
                         const Part (&parts)[2], const EntryOf& entry_of) {
  const uint32_t g = gpu::lane() / 4, elements = slice_elements(p, slice);
  CANOPY_UNROLL
  for (uint32_t j = 0; j < 2; ++j) {
    const uint32_t n = gpu::lane() % 4 * 2 + j, entry = item.has(p, n) ? entry_of(n) : kNoSlot;
    if (entry == kNoSlot) continue;
    const uint64_t at = entry_at(p, item.row(p, n), item.head(p, n), entry);
    if (g == 0) part_at(p, at, slice) = parts[j];
    CANOPY_UNROLL
    for (uint32_t d = 0; d < 8; ++d) {
      CANOPY_UNROLL
      for (uint32_t i = 0; i < 2; ++i) {
        const uint32_t element = d * 16 + g + i * 8;
        if (element < elements) {
          Span<float>{p.part_out}[at * p.value_dim + slice * kSliceDims + element] = out[d][i * 2 + j];
        }
      }
    }
  }
}

/// One chunk, by one warp with a ring of its own. slot_of: of positions of the chunk; low, high: those that count.
template <uint32_t TYPE, class SlotOf>
CANOPY_DEVICE void attend_chunk(const AttentionParams& p, uint32_t kv_head, uint32_t slice, const Queries& queries,
                                const SlotOf& slot_of, uint32_t low, uint32_t high, ChunkOfQueries<TYPE>& chunk) {
  constexpr uint32_t each = kStagePositions<TYPE>, batch = TYPE == kCacheF32 ? 2 : 4;
  const uint32_t ring = kAttentionHead + gpu::warp() * p.warp_stages * kAttentionStageBytes;
  // Stages without a position that counts are left out.
  const uint32_t first = low / each, parts = (high + each - 1) / each - first, key_stages = parts * p.slices;
  const auto bring = [&](uint32_t i) {
    if (i < key_stages + parts) {
      const bool keys = i < key_stages;
      const uint32_t part = first + i % parts;
      bring_stage<TYPE, batch>(p.cache, keys ? p.cache.keys : p.cache.values,
                               ring + i % p.warp_stages * kAttentionStageBytes, kv_head, keys ? i / parts : slice,
                               gpu::lane(), 32, [&](uint32_t position) { return slot_of(part * each + position); });
    }
    gpu::end_copy_group();
  };
  CANOPY_NO_UNROLL
  for (uint32_t i = 0; i < p.warp_stages; ++i) bring(i);
  CANOPY_NO_UNROLL
  for (uint32_t i = 0; i < key_stages + parts; ++i) {
    wait_for_stage(p.warp_stages);
    const uint32_t stage = ring + i % p.warp_stages * kAttentionStageBytes;
    if (i == key_stages) chunk.weigh(p, queries, low, high);
    chunk.add_stage(p, i >= key_stages, first + i % parts, stage, i < key_stages ? i / parts : slice, queries);
    gpu::sync_warp();
    bring(i + p.warp_stages);
  }
}

/// The slot of a position of a chunk, from lanes that have those of two positions each.
struct SlotsOfLanes {
  uint32_t first = kNoSlot, second = kNoSlot;  // of positions lane and lane + 32
  CANOPY_DEVICE uint32_t operator()(uint32_t position) const {
    return gpu::shuffle(position < 32 ? first : second, position % 32);
  }
};

/// Own chunk `own` of row `row`, by a warp: of the row's queries in an item whose queries are in shared memory.
template <uint32_t TYPE>
CANOPY_DEVICE void attend_own(const AttentionParams& p, const AttentionPlace& place, const Item& item, uint32_t row,
                              const Row& pass_row, uint32_t own, const Queries& queries) {
  const RowChunks chunks = chunks_of(p, pass_row);
  const uint32_t number = chunks.own_chunk(p, own);
  if (number == kNoSlot) return;
  const uint32_t begin = number * kChunk;
  const uint32_t low = chunks.first > begin ? chunks.first - begin : 0;
  const uint32_t high = chunks.end - begin < kChunk ? chunks.end - begin : kChunk;
  SlotsOfLanes slots;
  if (gpu::lane() >= low && gpu::lane() < high) slots.first = slot_at(p, pass_row, begin + gpu::lane());
  if (gpu::lane() + 32 >= low && gpu::lane() + 32 < high) {
    slots.second = slot_at(p, pass_row, begin + gpu::lane() + 32);
  }
  ChunkOfQueries<TYPE> chunk;
  attend_chunk<TYPE>(p, item.kv_head, place.slice, queries, slots, low, high, chunk);
  leave(p, item, place.slice, chunk.out, chunk.parts,
        [&](uint32_t n) { return item.row(p, n) == row ? p.spans + own : kNoSlot; });
}

// The merge of a tile's results, by the block that comes last for it: a head's chunks of a span in ascending order,
// then its spans. A warp has up to eight heads. Their results, head behind head, come in batches of eight, so that
// heads with few results do not wait for memory one after the other.

constexpr uint32_t kWarpHeads = kItemQueries, kMergeBatch = 8, kLaneDims = kSliceDims / 32;

/// The heads that a warp merges: lane k has the k-th of them.
struct WarpHeads {
  uint32_t row = 0, head = 0;   // row: of the launch
  uint32_t slots = 0, end = 0;  // its results, of which one without any has a place, too; end: with those before it
  RowChunks chunks;

  CANOPY_DEVICE WarpHeads(const AttentionParams& p, const AttentionPlace& place) {
    const uint32_t heads = p.tile_pieces * p.item_heads, number = gpu::warp() + gpu::lane() * (gpu::threads() / 32);
    const uint32_t of_group = place.first_piece(p) * p.item_heads + number % heads;
    row = place.first_row(p) + number / heads;
    head = place.kv_head * p.group() + of_group;
    if (gpu::lane() >= kWarpHeads || number / heads >= place.rows(p) || of_group >= p.group()) return;
    chunks = chunks_of(p, row_of(p, row));
    slots = chunks.results() > 0 ? chunks.results() : 1;
  }
  CANOPY_DEVICE void count() {
    CANOPY_UNROLL
    for (uint32_t k = 0; k < kWarpHeads; ++k) {
      const uint32_t more = gpu::shuffle(slots, k);
      if (k <= gpu::lane()) end += more;
    }
  }
  CANOPY_DEVICE uint32_t all_slots() const { return gpu::shuffle(end, kWarpHeads - 1); }
};

/// What lane i knows of the i-th result of a batch.
struct MergeSlot {
  uint32_t there = 0, ends_span = 0, ends_head = 0;  // bits of all of them
  Part part;
  uint32_t row = 0, column = 0;  // where its head goes
  float sink = 0;

  /// Where the head goes that the i-th result ends, and its sink, for all lanes.
  CANOPY_DEVICE MergeSlot of(uint32_t i) const {
    MergeSlot slot;
    slot.row = gpu::shuffle(row, i);
    slot.column = gpu::shuffle(column, i);
    slot.sink = gpu::shuffle(sink, i);
    return slot;
  }
  /// Fills it; the entry of the result among all of the launch.
  CANOPY_DEVICE uint32_t find(const AttentionParams& p, const WarpHeads& heads, uint32_t slice, uint32_t slot) {
    uint32_t k = 0;  // which of the heads
    CANOPY_UNROLL
    for (uint32_t i = 0; i + 1 < kWarpHeads; ++i) k += gpu::shuffle(heads.end, i) <= slot ? 1u : 0u;
    const uint32_t end = gpu::shuffle(heads.end, k), result = slot - (end - gpu::shuffle(heads.slots, k));
    row = gpu::shuffle(heads.row, k);
    const uint32_t head = gpu::shuffle(heads.head, k);
    column = head * p.value_dim + slice * kSliceDims;
    RowChunks chunks;
    chunks.start = gpu::shuffle(heads.chunks.start, k);
    chunks.tail = gpu::shuffle(heads.chunks.tail, k);
    chunks.shared = gpu::shuffle(heads.chunks.shared, k);
    chunks.tails = gpu::shuffle(heads.chunks.tails, k);
    const bool is_slot = gpu::lane() < kMergeBatch && slot < end, is_there = is_slot && result < chunks.results();
    const bool is_last = is_slot && slot + 1 == end;
    there = gpu::ballot(is_there);
    ends_head = gpu::ballot(is_last);
    ends_span =
        gpu::ballot(is_last || (is_there && chunks.span_of_result(result + 1) != chunks.span_of_result(result)));
    const uint32_t at = static_cast<uint32_t>(entry_at(p, row, head, chunks.entry_of_result(p, result)));
    if (is_there) part = part_at(p, at, slice);
    if (is_last && p.sinks != 0) sink = Span<const float>{p.sinks}[head];
    return at;
  }
};

/// Eight results, asked for together: what a lane has of their outputs.
struct MergeBatch {
  MergeSlot slot;
  float out[kMergeBatch][kLaneDims] = {};

  CANOPY_DEVICE void ask(const AttentionParams& p, const WarpHeads& heads, uint32_t slice, uint32_t first) {
    const uint32_t at = slot.find(p, heads, slice, first + gpu::lane()), elements = slice_elements(p, slice);
    CANOPY_UNROLL
    for (uint32_t i = 0; i < kMergeBatch; ++i) {
      const uint64_t from = uint64_t{gpu::shuffle(at, i)} * p.value_dim + slice * kSliceDims;
      if ((slot.there >> i & 1u) == 0) continue;
      CANOPY_UNROLL
      for (uint32_t e = 0; e < kLaneDims; ++e) {
        const uint32_t element = e * 32 + gpu::lane();
        if (element < elements) out[i][e] = Span<const float>{p.part_out}[from + element];
      }
    }
  }
};

/// What the i-th result of a batch, in lane i, and the span that it ends are multiplied by. Only the largest scores go
/// from result to result; the exponentials of all of them are taken together.
struct MergeFactors {
  PartFactors of_chunk, of_span;
  float best = kLowest;  // of the head, up to the result
};
struct LargestScores {
  float all = kLowest, span = kLowest;  // so far

  CANOPY_DEVICE MergeFactors factors(const MergeSlot& slots) {
    float span_before = kLowest, span_now = kLowest, all_before = kLowest, all_now = kLowest;
    CANOPY_UNROLL
    for (uint32_t i = 0; i < kMergeBatch; ++i) {
      const float before = span, best = gpu::shuffle(slots.part.best, i), head_before = all;
      if ((slots.there >> i & 1u) != 0) span = fmaxf(span, best);
      const float now = span;
      if ((slots.ends_span >> i & 1u) != 0) {
        all = fmaxf(all, span);
        span = kLowest;
      }
      if (gpu::lane() == i) {
        span_before = before;
        span_now = now;
        all_before = head_before;
        all_now = all;
      }
      if ((slots.ends_head >> i & 1u) != 0) all = kLowest;
    }
    return {{expf(span_before - span_now), expf(slots.part.best - span_now)},
            {expf(all_before - all_now), expf(span_now - all_now)},
            all_now};
  }
};

/// A head as far as it is merged: its spans, and the chunks of one.
struct MergedHead {
  float sum = 0, span_sum = 0;
  float out[kLaneDims] = {}, span_out[kLaneDims] = {};

  CANOPY_DEVICE void add(float more_sum, const PartFactors& factors, const gpu::Shared<float>& more, uint32_t first) {
    span_sum = merged(span_sum, more_sum, factors);
    CANOPY_UNROLL
    for (uint32_t e = 0; e < kLaneDims; ++e) {
      span_out[e] = merged(span_out[e], more[first + e * 32 + gpu::lane()], factors);
    }
  }
  CANOPY_DEVICE void end_span(const PartFactors& factors) {
    sum = merged(sum, span_sum, factors);
    span_sum = 0;
    CANOPY_UNROLL
    for (uint32_t e = 0; e < kLaneDims; ++e) {
      out[e] = merged(out[e], span_out[e], factors);
      span_out[e] = 0;
    }
  }
  /// Writes the head, of which there is something or nothing; the next begins.
  CANOPY_DEVICE void end(const AttentionParams& p, const MergeSlot& slot, float best, uint32_t elements,
                         bool is_there) {
    Part all{best, sum};
    if (p.sinks != 0) {  // scores without values
      const PartFactors factors = merge_into(all, Part{slot.sink, 1.0f});
      CANOPY_UNROLL
      for (uint32_t e = 0; e < kLaneDims; ++e) out[e] = out[e] * factors.keep;
    }
    CANOPY_UNROLL
    for (uint32_t e = 0; e < kLaneDims; ++e) {
      const uint32_t element = e * 32 + gpu::lane();
      if (element >= elements) continue;
      const float value = is_there ? out[e] / all.sum : 0.0f;
      store_activation(p.out, uint64_t{p.first_row} + slot.row, slot.column + element, value, 1);
    }
    *this = {};
  }
};

CANOPY_DEVICE PartFactors factors_of(const PartFactors& factors, uint32_t lane) {
  return {gpu::shuffle(factors.keep, lane), gpu::shuffle(factors.add, lane)};
}

/// Merges the heads of a warp. The next batch is on its way while one is merged, from shared memory: a loop over
/// registers would have to be unrolled, with all that ends a head in it.
CANOPY_DEVICE void merge_heads(const AttentionParams& p, const WarpHeads& heads, uint32_t slice) {
  const gpu::Shared<float> outs(kAttentionHead + gpu::warp() * kWarpOutputs, kMergeBatch * kSliceDims);
  static_assert(kMergeBatch * kSliceDims * 4 == kWarpOutputs && kWarpOutputs <= kAttentionStageBytes);
  const uint32_t all = heads.all_slots(), elements = slice_elements(p, slice);
  MergedHead merging;
  LargestScores scores;
  MergeBatch batch;
  uint32_t count = 0;
  CANOPY_NO_UNROLL
  for (uint32_t next = 0; next < all + kMergeBatch; next += kMergeBatch) {
    const MergeSlot slots = batch.slot;
    CANOPY_UNROLL
    for (uint32_t i = 0; i < kMergeBatch * kLaneDims; ++i) {  // a lane reads what it has written alone
      outs[i * 32 + gpu::lane()] = batch.out[i / kLaneDims][i % kLaneDims];
    }
    if (next < all) batch.ask(p, heads, slice, next);
    const MergeFactors factors = scores.factors(slots);
    CANOPY_NO_UNROLL
    for (uint32_t i = 0; i < count; ++i) {
      const bool is_there = (slots.there >> i & 1u) != 0;
      if (is_there) {
        merging.add(gpu::shuffle(slots.part.sum, i), factors_of(factors.of_chunk, i), outs, i * kSliceDims);
      }
      if ((slots.ends_span >> i & 1u) != 0) merging.end_span(factors_of(factors.of_span, i));
      if ((slots.ends_head >> i & 1u) != 0) {
        merging.end(p, slots.of(i), gpu::shuffle(factors.best, i), elements, is_there);
      }
    }
    count = all - next < kMergeBatch ? all - next : kMergeBatch;
  }
}

/// Merges the tile where this block is the last of it.
CANOPY_CALLED void finish_attention(const AttentionParams& p) {
  const AttentionPlace place(p);
  const gpu::Shared<uint32_t> flag(kAttentionFlag, 1);
  const uint32_t counter = (place.kv_head * p.tiles + place.tile) * p.value_slices + place.slice;
  WarpHeads heads(p, place);  // before it is known who is last: nobody waits for rows then
  if (!comes_last(p.counters, counter, p.span_blocks + p.own_blocks, flag)) return;
  heads.count();
  merge_heads(p, heads, place.slice);
}

}  // namespace canopy::cuda
