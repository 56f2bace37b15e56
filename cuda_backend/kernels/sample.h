#pragma once
// What the kernels of the op `sample` share. Everything that is merged is a maximum or a sum of integers, so no order
// matters; the arithmetic is the host's own (engine/compute/sampling_arithmetic.h).

#include "cuda_backend/kernels/logits.h"
#include "engine/compute/philox.h"
#include "engine/compute/sampling.h"
#include "engine/compute/sampling_arithmetic.h"

namespace canopy::cuda {

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

}  // namespace canopy::cuda
