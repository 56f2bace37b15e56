#pragma once
// Of one row of `sample` with filters: which tokens top-k, top-p and min-p leave, and the one of them that is drawn.
// For one block.
//
// Tokens are ordered by (how far the key lies below the best one's, id), 64 bits, the best first. The last one that a
// filter keeps is found byte by byte: how many of the tokens that agree with it so far have which next byte, and of
// what weight.

#include "cuda_backend/kernels/sample.h"

namespace canopy::cuda {

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
