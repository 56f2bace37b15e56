#pragma once
// A chunk of keys and values with eight queries, on tensor cores, by one warp: the largest score m, the sum l of
// exp(score - m), and o = the sum of exp(score - m) V.
//
// Queries and weights are cut into two halves each, the second of what the first leaves, so that together they have 22
// bits; so are keys and values where the cache has more than halves. Positions and elements of a head are the rows of
// the instructions' results, queries their columns, so a query's result has nothing to do with those beside it.

#include <type_traits>

#include "engine/cuda_backend/kernels/attention_rows.h"

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

/// Eight neighbouring elements of a head as they lie in the cache; zeros where there are none.
template <uint32_t TYPE>
struct Eight {
  Unit halves = {};
  CANOPY_DEVICE void load(const CacheParams& c, uint64_t address, uint32_t slot, uint32_t head, uint32_t d) {
    halves = Span<const Unit>{address}[(uint64_t{slot} * c.slot_words * 2 + head * c.head_dim + d) / 8];
  }
};
template <>
struct Eight<kCacheF32> {
  Unit units[2] = {};
  CANOPY_DEVICE void load(const CacheParams& c, uint64_t address, uint32_t slot, uint32_t head, uint32_t d) {
    const uint64_t first = (uint64_t{slot} * c.slot_words + head * c.head_dim + d) / 4;
    units[0] = Span<const Unit>{address}[first];
    units[1] = Span<const Unit>{address}[first + 1];
  }
  CANOPY_DEVICE float value(uint32_t e) const { return gpu::from_bits(units[e / 4].words[e % 4]); }
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
};

template <uint32_t TYPE>
CANOPY_DEVICE void store_eight(const Eight<TYPE>& eight, uint32_t to) {
  if constexpr (kHasRest<TYPE>) {
    Unit halves, rest;
    CANOPY_UNROLL
    for (uint32_t e = 0; e < 8; e += 2) {
      const SplitPair pair = split(eight.value(e), eight.value(e + 1));
      halves.words[e / 2] = pair.halves;
      rest.words[e / 2] = pair.rest;
    }
    gpu::Shared<Unit>(to, 1)[0] = halves;
    gpu::Shared<Unit>(to + kRestAt, 1)[0] = rest;
  } else {
    gpu::Shared<Unit>(to, 1)[0] = eight.halves;
  }
}

/// The same of heads that are no whole number of units, one element after the other.
template <uint32_t TYPE>
CANOPY_DEVICE void bring_elements(const CacheParams& c, uint64_t address, uint32_t slot, uint32_t head, uint32_t d,
                                  uint32_t to) {
  Unit halves, rest;
  CANOPY_UNROLL
  for (uint32_t e = 0; e < 8; e += 2) {
    const bool is_there = slot != kNoSlot && d + e < c.head_dim;  // head_dim is even
    const SplitPair pair = split(is_there ? cached(c, address, slot, head, d + e) : 0.0f,
                                 is_there ? cached(c, address, slot, head, d + e + 1) : 0.0f);
    halves.words[e / 2] = pair.halves;
    rest.words[e / 2] = pair.rest;
  }
  gpu::Shared<Unit>(to, 1)[0] = halves;
  if constexpr (kHasRest<TYPE>) gpu::Shared<Unit>(to + kRestAt, 1)[0] = rest;
}

/// Begins to bring a stage; `member` of `members` threads, whole warps, does its part. slot_of(i) gives the slot of
/// position i of the stage, kNoSlot for zeros; it may be an operation of the warp. BATCH: units that a thread asks for
/// together, where they are not copied aside.
template <uint32_t TYPE, uint32_t BATCH, class SlotOf>
CANOPY_DEVICE void bring_stage(const CacheParams& c, uint64_t address, uint32_t to, uint32_t head, uint32_t slice,
                               uint32_t member, uint32_t members, const SlotOf& slot_of) {
  constexpr uint32_t all = kStagePositions<TYPE> * kUnits;
  const bool whole = c.head_dim % 8 == 0;
  if (TYPE == kCacheF16 && gpu::kCopiesAside && whole) {
    CANOPY_NO_UNROLL
    for (uint32_t i = member; i < all; i += members) {
      const uint32_t position = i / kUnits, unit = i % kUnits, d = slice * kSliceDims + unit * 8;
      const uint32_t slot = slot_of(position);
      const bool is_there = slot != kNoSlot && d < c.head_dim;
      const uint64_t offset = (uint64_t{slot} * c.slot_words * 2 + head * c.head_dim + d) * 2;
      gpu::copy_async_or_zero(to + unit_at(position, unit), address + (is_there ? offset : 0), is_there);
    }
    return;
  }
  CANOPY_NO_UNROLL
  for (uint32_t first = member; first < all; first += members * BATCH) {
    Eight<TYPE> eights[BATCH];
    CANOPY_UNROLL
    for (uint32_t b = 0; b < BATCH; ++b) {  // asked for together
      const uint32_t i = first + b * members, d = slice * kSliceDims + i % kUnits * 8;
      if (!whole || i >= all) break;
      const uint32_t slot = slot_of(i / kUnits);
      if (slot != kNoSlot && d < c.head_dim) eights[b].load(c, address, slot, head, d);
    }
    CANOPY_UNROLL
    for (uint32_t b = 0; b < BATCH; ++b) {
      const uint32_t i = first + b * members, unit = i % kUnits, at = to + unit_at(i / kUnits, unit);
      if (i >= all) break;
      if (whole) {
        store_eight<TYPE>(eights[b], at);
      } else {
        bring_elements<TYPE>(c, address, slot_of(i / kUnits), head, slice * kSliceDims + unit * 8, at);
      }
    }
  }
}

// ---- queries --------------------------------------------------------------------------------------------------------

struct alignas(8) FloatPair {
  float first, second;
};

/// The eight queries of an item in shared memory, as halves and what those leave.
struct Queries {
  uint32_t begin, dims;  // dims: head_dim up to whole 16

  CANOPY_DEVICE Queries(const AttentionParams& p, uint32_t number)
      : begin(p.queries_at + number * query_bytes(p.cache.head_dim)), dims(query_dims(p.cache.head_dim)) {}
  CANOPY_DEVICE uint32_t at(uint32_t n, uint32_t d) const { return begin + (n * (dims + 8) + d) * 2; }
  CANOPY_DEVICE uint32_t rest() const { return kItemQueries * (dims + 8) * 2; }

  /// For `members` threads, who wait for each other behind it.
  CANOPY_DEVICE void bring(const AttentionParams& p, const Item& item, uint32_t member, uint32_t members) const {
    const uint32_t pairs = dims / 2;
    for (uint32_t i = member; i < kItemQueries * pairs; i += members) {
      const uint32_t n = i / pairs, d = i % pairs * 2;
      SplitPair pair{0, 0};
      if (item.has(p, n) && d < p.cache.head_dim) {
        const uint64_t from =
            (uint64_t{p.first_row + item.row(p, n)} * p.heads + item.head(p, n)) * p.cache.head_dim + d;
        const FloatPair values = Span<const FloatPair>{p.q}[from / 2];
        pair = split(values.first, values.second);
      }
      gpu::Shared<uint32_t>(at(n, d), 1)[0] = pair.halves;
      gpu::Shared<uint32_t>(at(n, d) + rest(), 1)[0] = pair.rest;
    }
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
  CANOPY_DEVICE void weigh(float scale, uint32_t low, uint32_t high) {
    const auto counts = [&](uint32_t t, uint32_t i) {
      const uint32_t position = t * 16 + gpu::lane() / 4 + i / 2 * 8;
      return position >= low && position < high;
    };
    CANOPY_UNROLL
    for (uint32_t j = 0; j < 2; ++j) {
      float best = kLowest;
      CANOPY_UNROLL
      for (uint32_t t = 0; t < 4; ++t) {
        CANOPY_UNROLL
        for (uint32_t i = j; i < 4; i += 2) {
          scores[t][i] = counts(t, i) ? scores[t][i] * scale : kLowest;
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
