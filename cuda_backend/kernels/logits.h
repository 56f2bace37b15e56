#pragma once
// Logits as integers in their order, and how a token is drawn from them by blocks of a row.

#include "cuda_backend/kernels/common.h"
#include "engine/compute/sampling.h"

namespace canopy::cuda {

// Logits as integers in their order, for the kernels that look for the largest ones. A row is cut into blocks of
// tokens; what the blocks leave is merged by the block that comes last for the row.

/// Larger for larger numbers.
CANOPY_DEVICE uint32_t ordered_bits(uint32_t bits) {
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
CANOPY_DEVICE uint32_t unordered_bits(uint32_t key) {
  return (key & 0x80000000u) != 0 ? key & 0x7FFFFFFFu : ~key;
}

/// A key and a token's id as one number: larger for a larger key, of equal ones for the lower id.
CANOPY_DEVICE uint64_t ranked(uint32_t key, uint32_t id) {
  return uint64_t{key} << 32 | (0xFFFFFFFFu - id);
}
CANOPY_DEVICE uint32_t key_of_rank(uint64_t rank) {
  return static_cast<uint32_t>(rank >> 32);
}
CANOPY_DEVICE uint32_t id_of_rank(uint64_t rank) {
  return 0xFFFFFFFFu - static_cast<uint32_t>(rank);
}

// What the kernels of the op `sample` share. Everything that is merged is a maximum or a sum of integers, so no order
// matters; the arithmetic is the host's own (engine/compute/sampling.h).

constexpr uint32_t kSampleThreads = 256;

// Keys of logits that are no numbers.
constexpr uint32_t kKeyNone = 0, kKeyBanned = 0x007FFFFFu, kKeyBroken = 0xFF800000u;  // none, -inf, +inf and NaN

CANOPY_DEVICE uint32_t sample_key(uint32_t bits) {
  if (!is_finite(bits)) return bits == 0xFF800000u ? kKeyBanned : kKeyBroken;
  return ordered_bits(settled(bits));
}
CANOPY_DEVICE float logit_of_key(uint32_t key) {
  return gpu::from_bits(unordered_bits(key));
}
CANOPY_DEVICE bool is_number(uint32_t key) {
  return key > kKeyBanned && key < kKeyBroken;
}

/// Finer near the best: 64 buckets for each doubling of the distance from 2^-6 to 2^10.
CANOPY_DEVICE uint32_t bucket_of(float best, float logit) {
  constexpr uint32_t first = 7744;  // 2^-6
  const uint32_t bucket = gpu::bits(best - logit) >> 17;
  if (bucket < first) return 0;
  return bucket - first < SampleState::kBuckets ? bucket - first : SampleState::kBuckets - 1;
}

/// A row of the op.
struct SampledLogits {
  const SampleParams& p;
  uint32_t row;

  CANOPY_DEVICE uint32_t key(uint32_t id) const {
    return sample_key(Span<const uint32_t>{p.logits}[uint64_t{row} * p.vocab + id]);
  }
  CANOPY_DEVICE const SamplingWords& settings() const { return Span<const SamplingWords>{p.settings}[0]; }
  CANOPY_DEVICE SampledRow place(uint32_t at) const { return Span<const SampledRow>{p.rows}[at]; }
  CANOPY_DEVICE bool is_wanted() const { return place(p.first_row + row).token != kNoToken; }
  CANOPY_DEVICE Span<uint64_t> pairs(uint64_t of) const {
    return {of + uint64_t{row} * gpu::blocks_x() * sizeof(uint64_t)};
  }
  CANOPY_DEVICE SampleState& state() const { return Span<SampleState>{p.state}[row]; }

  /// The largest of what the blocks of the row have left in `of`.
  CANOPY_DEVICE uint64_t best(uint64_t of, const gpu::Shared<uint64_t>& room) const {
    uint64_t own = 0;
    for (uint32_t b = gpu::thread(); b < gpu::blocks_x(); b += kSampleThreads) {
      const uint64_t other = Span<const uint64_t>{pairs(of).address}[b];
      own = other > own ? other : own;
    }
    return largest_of_block(own, room);
  }

  /// Of the token that is drawn after the row: its place in the reply.
  CANOPY_DEVICE uint32_t position() const {
    uint32_t position = settings().position;
    for (SampledRow at = place(p.first_row + row); at.parent != kNoToken; at = place(at.parent)) ++position;
    return position;
  }
};

// ---- drawing: pairs of log p + G and an id, as ranks ----------------------------------------------------------------

CANOPY_DEVICE uint64_t drawn_rank(int32_t value, uint32_t id) {
  return ranked(static_cast<uint32_t>(value) ^ 0x80000000u, id);
}
CANOPY_DEVICE int32_t drawn_value(uint64_t rank) {
  return static_cast<int32_t>(key_of_rank(rank) ^ 0x80000000u);
}

struct RandomWords {
  uint32_t words[4];
  /// The number of a token, of whose pair these are.
  CANOPY_DEVICE Uniform of(uint32_t id) const {
    return (id & 1u) == 0 ? uniform_of(words[0], words[1]) : uniform_of(words[2], words[3]);
  }
};

/// Of the tokens 2 * pair and 2 * pair + 1.
CANOPY_DEVICE RandomWords random_words(const SamplingWords& s, uint32_t pair, uint32_t position) {
  RandomWords random{{pair, position, s.turn[0], s.turn[1]}};
  uint32_t key[2] = {s.seed[0], s.seed[1]};
  philox4x32_words(random.words, key);
  return random;
}

/// kNoToken for one that cannot be drawn.
CANOPY_DEVICE uint32_t distance_of(const SamplingWords& s, float highest, uint32_t key) {
  if (!is_number(key)) return kNoToken;
  const uint32_t far = distance(highest, logit_of_key(key), s.inverse_temperature);
  return far > s.farthest ? kNoToken : far;
}

/// Whether a token whose random number has so many bits may beat a rank.
CANOPY_DEVICE bool can_win(uint32_t far, uint32_t bits, uint64_t rank) {
  return far != kNoToken && noise_at_most(bits) - static_cast<int32_t>(far) >= drawn_value(rank);
}

CANOPY_DEVICE uint64_t with_candidate(uint64_t own, uint32_t id, uint32_t far, const RandomWords& random) {
  const Uniform u = random.of(id);
  if (!can_win(far, bit_count(u), own)) return own;
  const uint64_t rank = drawn_rank(gumbel_noise(u) - static_cast<int32_t>(far), id);
  return rank > own ? rank : own;
}

/// The rank of the best token, which few others can reach.
CANOPY_DEVICE uint64_t mark_of(const SamplingWords& s, uint32_t id, uint32_t position) {
  return drawn_rank(gumbel_noise(random_words(s, id / 2, position).of(id)), id);
}

// Of one row of `sample` with filters: which tokens top-k, top-p and min-p leave, and the one of them that is drawn.
// For one block.
//
// Tokens are ordered by (how far the key lies below the best one's, id), 64 bits, the best first. The last one that a
// filter keeps is found byte by byte: how many of the tokens that agree with it so far have which next byte, and of
// what weight.

struct Sum {
  uint32_t count = 0;
  uint64_t weight = 0;
};
CANOPY_DEVICE Sum operator+(const Sum& a, const Sum& b) {
  return {a.count + b.count, a.weight + b.weight};
}

/// Shared memory for running sums, one for each warp.
struct Sums {
  gpu::Shared<uint64_t> weights;
  gpu::Shared<uint32_t> counts;
};

/// What the threads before this one have together; `all` is the sum of all.
CANOPY_DEVICE Sum sum_before(const Sum& own, const Sums& sums, Sum& all) {
  Sum running = own;
  for (uint32_t step = 1; step < 32; step *= 2) {
    const Sum other{gpu::shuffle(running.count, gpu::lane() - step), gpu::shuffle(running.weight, gpu::lane() - step)};
    if (gpu::lane() >= step) running = running + other;
  }
  if (gpu::lane() == 31) {
    sums.counts[gpu::warp()] = running.count;
    sums.weights[gpu::warp()] = running.weight;
  }
  gpu::sync();
  Sum before{running.count - own.count, running.weight - own.weight};
  all = {};
  for (uint32_t w = 0; w < kSampleThreads / 32; ++w) {
    const Sum of_warp{sums.counts[w], sums.weights[w]};
    if (w < gpu::warp()) before = before + of_warp;
    all = all + of_warp;
  }
  gpu::sync();
  return before;
}

struct Selection {
  const SampledLogits& logits;
  uint64_t top;  // the best token
  const gpu::Shared<uint64_t>& room;

  static constexpr uint32_t kBytes = kSampleThreads;
  static_assert(kBytes == 256, "a thread for each value of a byte");
  gpu::Shared<uint64_t> weights{256, kBytes};
  gpu::Shared<uint32_t> counts{256 + kBytes * 8, kBytes};
  gpu::Shared<uint64_t> reached_weight{256 + kBytes * 12, 1};
  gpu::Shared<uint32_t> reached{256 + kBytes * 12 + 8, 3};  // the byte, its count, and the count before it
  Sums sums{{256 + kBytes * 12 + 64, kSampleThreads / 32}, {256 + kBytes * 12 + 128, kSampleThreads / 32}};
  /// Bytes of shared memory up to here.
  static constexpr uint32_t kSharedBytes = 256 + kBytes * 12 + 128 + kSampleThreads / 32 * 4;

  float highest = logit_of_key(key_of_rank(top));
  uint32_t listed = logits.state().listed;
  bool in_list = listed <= kSampleList;
  uint32_t places = in_list ? listed : logits.p.vocab;  // to look at

  /// A token as its rank; of those that are not in a list too many may be given.
  CANOPY_DEVICE uint64_t token_at(uint32_t place) const {
    if (!in_list) return ranked(logits.key(place), place);
    return Span<const uint64_t>{logits.p.list}[uint64_t{logits.row} * kSampleList + place];
  }
  CANOPY_DEVICE uint64_t order_of(uint64_t rank) const {
    return uint64_t{key_of_rank(top) - key_of_rank(rank)} << 32 | id_of_rank(rank);
  }
  CANOPY_DEVICE uint32_t weight_of(uint64_t rank) const {
    return weight_at(distance(highest, logit_of_key(key_of_rank(rank)), logits.settings().inverse_temperature));
  }

  /// Counts and weights by byte `i`, the most significant first, of the tokens whose orders begin as `prefix` and are
  /// not behind `last`.
  CANOPY_DEVICE void count_bytes(uint32_t i, uint64_t prefix, uint64_t last, bool weighs) const {
    weights[gpu::thread()] = 0;
    counts[gpu::thread()] = 0;
    gpu::sync();
    for (uint32_t place = gpu::thread(); place < places; place += kSampleThreads) {
      const uint64_t rank = token_at(place), order = order_of(rank);
      if (!is_number(key_of_rank(rank)) || order > last) continue;
      if (i > 0 && order >> (64 - 8 * i) != prefix >> (64 - 8 * i)) continue;
      const auto byte = static_cast<uint32_t>(order >> (56 - 8 * i)) & 255u;
      gpu::atomic_add(&counts[byte], 1);
      const uint32_t weight = weighs ? weight_of(rank) : 0;
      if (weight != 0) gpu::atomic_add(&weights[byte], uint64_t{weight});
    }
    gpu::sync();
  }

  /// The order of the first token with which the count reaches wanted.count or, where it `weighs`, the weight
  /// wanted.weight; `last` where none does. Tokens behind `last` do not count.
  CANOPY_DEVICE uint64_t find_last(const Sum& wanted, bool weighs, uint64_t last) const {
    uint64_t prefix = 0;
    Sum before;
    for (uint32_t i = 0; i < 8; ++i) {
      count_bytes(i, prefix, last, weighs);
      const Sum own{counts[gpu::thread()], weights[gpu::thread()]};
      if (gpu::thread() == 0) reached[1] = 0;
      Sum all;
      const Sum sum = before + sum_before(own, sums, all), next = sum + own;
      const bool reaches = weighs ? sum.weight < wanted.weight && next.weight >= wanted.weight
                                  : sum.count < wanted.count && next.count >= wanted.count;
      if (reaches) {  // with one byte at most
        reached[0] = gpu::thread();
        reached[1] = own.count;
        reached[2] = sum.count;
        reached_weight[0] = sum.weight;
      }
      gpu::sync();
      const uint32_t byte = reached[0], count = reached[1];
      before = {reached[2], reached_weight[0]};
      gpu::sync();
      if (count == 0) return last;  // all of them are too few
      const uint32_t shift = 56 - 8 * i;
      prefix |= uint64_t{byte} << shift;
      // Alone: whatever its other bytes are, no other that agrees comes before `last`.
      if (count == 1) {
        const uint64_t end = prefix | ((uint64_t{1} << shift) - 1);
        return end > last ? last : end;
      }
    }
    return prefix;
  }

  /// The sum of the weights of all tokens up to `last`.
  CANOPY_DEVICE uint64_t weight_up_to(uint64_t last) const {
    Sum own;
    for (uint32_t place = gpu::thread(); place < places; place += kSampleThreads) {
      const uint64_t rank = token_at(place);
      if (is_number(key_of_rank(rank)) && order_of(rank) <= last) own.weight += weight_of(rank);
    }
    Sum all;
    sum_before(own, sums, all);
    return all.weight;
  }

  CANOPY_DEVICE uint32_t draw() const {
    const SamplingWords& settings = logits.settings();
    uint64_t last = ~uint64_t{0}, wanted = logits.state().wanted;
    if (settings.top_k != 0) {
      last = find_last({settings.top_k, 0}, false, last);
      if (settings.top_p != 0) wanted = share_of(weight_up_to(last), settings.top_p);
    }
    if (settings.top_p != 0) last = find_last({0, wanted}, true, last);
    const uint32_t position = logits.position();
    uint64_t own = mark_of(settings, id_of_rank(top), position);
    for (uint32_t place = gpu::thread(); place < places; place += kSampleThreads) {
      const uint64_t rank = token_at(place);
      if (!is_number(key_of_rank(rank)) || order_of(rank) > last) continue;
      const uint32_t id = id_of_rank(rank), far = distance_of(settings, highest, key_of_rank(rank));
      if (can_win(far, 1, own)) own = with_candidate(own, id, far, random_words(settings, id / 2, position));
    }
    return id_of_rank(largest_of_block(own, room));
  }
};

}  // namespace canopy::cuda
