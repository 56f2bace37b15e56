#pragma once
// A chunk of keys and values with eight queries, on tensor cores, by one warp: the largest score m, the sum l of
// exp(score - m), and o = the sum of exp(score - m) V.
//
// Queries and weights are cut into two halves each, the second of what the first leaves, so that together they have 22
// bits; so are keys and values where the cache has more than halves. Positions and elements of a head are the rows of
// the instructions' results, queries their columns, so a query's result has nothing to do with those beside it.

#include <type_traits>

#include "cuda_backend/kernels/attention_rows.h"

namespace canopy::cuda {

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

/// Elements of slice `slice` of a head.
CANOPY_DEVICE uint32_t slice_elements(const AttentionParams& p, uint32_t slice) {
  const uint32_t left = p.cache.head_dim - slice * kSliceDims;
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

}  // namespace canopy::cuda
