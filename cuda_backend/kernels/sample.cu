// The op `sample`. Grid of all kernels but sample_adjust: blocks of a row's tokens, rows; each leaves what the next one
// reads, and the block that comes last for a row does what the row as a whole needs.
//
//   sample_adjust          logits of tokens with a bias or a penalty, in place
//   sample_best            the row's token, at temperature 0
//   sample_best_random     each block's largest logit
//   sample_draw            the row's token                                    (without top-k and top-p)
//   sample_best_filtered   each block's largest logit; clears the row's state (with top-k or top-p, from here on)
//   sample_count           how many logits of what weight lie how far below the best, and up to where one can be kept
//   sample_gather          a list of all tokens up to there, and of these the row's token

#include "cuda_backend/kernels/logits.h"

namespace canopy::cuda {
namespace {

// ---- adjustments ----------------------------------------------------------------------------------------------------

CANOPY_DEVICE uint32_t count_on_path(const SampledLogits& logits, uint32_t token) {
  uint32_t count = 0;
  for (SampledRow at = logits.place(logits.p.first_row + logits.row); at.parent != kNoToken;
       at = logits.place(at.parent)) {
    count += at.token == token ? 1 : 0;
  }
  return count;
}

/// The token `place` rows above the row, if it is the last of its kind on the path; else kNoToken.
CANOPY_DEVICE uint32_t token_on_path(const SampledLogits& logits, uint32_t place) {
  SampledRow at = logits.place(logits.p.first_row + logits.row);
  for (uint32_t i = 0; i < place; ++i) {
    if (at.parent == kNoToken) return kNoToken;
    at = logits.place(at.parent);
  }
  if (at.parent == kNoToken) return kNoToken;
  const uint32_t token = at.token;
  at = logits.place(logits.p.first_row + logits.row);
  for (uint32_t i = 0; i < place; ++i, at = logits.place(at.parent)) {
    if (at.token == token) return kNoToken;
  }
  return token;
}

CANOPY_DEVICE bool is_in_table(const SampledLogits& logits, uint32_t token) {
  const Span<const TokenAdjustment> table{logits.p.adjustments};
  const uint32_t count = logits.settings().adjustments;
  uint32_t first = 0, end = count;
  while (first < end) {
    const uint32_t middle = (first + end) / 2;
    if (table[middle].token < token) {
      first = middle + 1;
    } else {
      end = middle;
    }
  }
  return first < count && table[first].token == token;
}

// ---- the largest logit of a block -----------------------------------------------------------------------------------

struct BlockRange {
  uint32_t begin, end;
};
CANOPY_DEVICE BlockRange own_tokens(const SampleParams& p) {
  const uint32_t begin = gpu::block_x() * kSampleBlock;
  return {begin, begin + kSampleBlock < p.vocab ? begin + kSampleBlock : p.vocab};
}

struct SampleRoom {
  gpu::Shared<uint64_t> best{0, kSampleThreads / 32};
  gpu::Shared<uint32_t> flag{kSampleThreads / 32 * 8, 1};
};

/// Leaves key and id of the block's largest logit; a broken logit wins over all. Rows after which nothing is drawn are
/// as good as broken.
CANOPY_DEVICE void leave_best(const SampledLogits& logits, const SampleRoom& room) {
  const bool is_wanted = logits.is_wanted();
  const BlockRange range = own_tokens(logits.p);
  uint64_t own = is_wanted ? 0 : ranked(kKeyBroken, kNoToken);
  for (uint32_t id = range.begin + gpu::thread(); is_wanted && id < range.end; id += kSampleThreads) {
    const uint64_t rank = ranked(logits.key(id), id);
    own = rank > own ? rank : own;
  }
  own = largest_of_block(own, room.best);
  if (gpu::thread() == 0) logits.pairs(logits.p.best)[gpu::block_x()] = own;
}

CANOPY_DEVICE void write_token(const SampledLogits& logits, uint32_t token) {
  if (gpu::thread() == 0) Span<uint32_t>{logits.p.tokens}[logits.p.first_row + logits.row] = token;
}

/// Counts and weights of a block's tokens by bucket, in shared memory.
struct Buckets {
  gpu::Shared<uint64_t> weights{256, SampleState::kBuckets};
  gpu::Shared<uint32_t> counts{256 + SampleState::kBuckets * 8, SampleState::kBuckets};
};

CANOPY_DEVICE void count_block(const SampledLogits& logits, float highest, const Buckets& buckets) {
  const SamplingWords& settings = logits.settings();
  for (uint32_t i = gpu::thread(); i < SampleState::kBuckets; i += kSampleThreads) {
    buckets.weights[i] = 0;
    buckets.counts[i] = 0;
  }
  gpu::sync();
  const bool weighs = settings.top_k == 0;
  const BlockRange range = own_tokens(logits.p);
  for (uint32_t id = range.begin + gpu::thread(); id < range.end; id += kSampleThreads) {
    const uint32_t key = logits.key(id);
    if (!is_number(key)) continue;
    const float logit = logit_of_key(key);
    const uint32_t bucket = bucket_of(highest, logit);
    gpu::atomic_add(&buckets.counts[bucket], 1);
    const uint32_t weight = weighs ? weight_at(distance(highest, logit, settings.inverse_temperature)) : 0;
    if (weight != 0) gpu::atomic_add(&buckets.weights[bucket], uint64_t{weight});
  }
  gpu::sync();
  SampleState& state = logits.state();
  for (uint32_t i = gpu::thread(); i < SampleState::kBuckets; i += kSampleThreads) {
    if (buckets.counts[i] != 0) gpu::atomic_add(&state.counts[i], buckets.counts[i]);
    if (buckets.weights[i] != 0) gpu::atomic_add(&state.weights[i], buckets.weights[i]);
  }
}

/// The bucket in which the count reaches top-k or, without top-k, the weight reaches top-p's share of all.
CANOPY_DEVICE void find_edge(const SampledLogits& logits, const Sums& sums) {
  constexpr uint32_t each = SampleState::kBuckets / kSampleThreads;
  const SamplingWords& settings = logits.settings();
  SampleState& state = logits.state();
  Sum own;
  for (uint32_t i = gpu::thread() * each; i < (gpu::thread() + 1) * each; ++i) {
    own = own + Sum{state.counts[i], state.weights[i]};
  }
  if (gpu::thread() == 0) state.edge = SampleState::kBuckets - 1;
  Sum all;
  Sum sum = sum_before(own, sums, all);
  const uint64_t wanted = share_of(all.weight, settings.top_p);
  gpu::sync();  // the edge is set
  for (uint32_t i = gpu::thread() * each; i < (gpu::thread() + 1) * each; ++i) {
    const Sum next = sum + Sum{state.counts[i], state.weights[i]};
    const bool reaches = settings.top_k != 0 ? sum.count < settings.top_k && next.count >= settings.top_k
                                             : sum.weight < wanted && next.weight >= wanted;
    if (reaches) state.edge = i;  // in one bucket at most
    sum = next;
  }
  if (gpu::thread() == 0) state.wanted = wanted;
}

/// Appends the block's tokens up to the edge to the list, as far as there is room.
CANOPY_DEVICE void gather_block(const SampledLogits& logits, float highest, const gpu::Shared<uint32_t>& words) {
  const gpu::Shared<uint32_t>&found = words, &first = words;  // word 0: tokens found, word 1: their first place
  SampleState& state = logits.state();
  const uint32_t edge = state.edge;
  const BlockRange range = own_tokens(logits.p);
  const auto is_near = [&](uint32_t key) { return is_number(key) && bucket_of(highest, logit_of_key(key)) <= edge; };
  if (gpu::thread() == 0) found[0] = 0;
  gpu::sync();
  uint32_t own = 0;
  for (uint32_t id = range.begin + gpu::thread(); id < range.end; id += kSampleThreads) {
    own += is_near(logits.key(id)) ? 1 : 0;
  }
  uint32_t place = own == 0 ? 0 : gpu::atomic_add(&found[0], own);
  gpu::sync();
  if (gpu::thread() == 0) first[1] = found[0] == 0 ? 0 : gpu::atomic_add(&state.listed, found[0]);
  gpu::sync();
  place += first[1];
  const Span<uint64_t> list{logits.p.list + uint64_t{logits.row} * kSampleList * sizeof(uint64_t)};
  for (uint32_t id = range.begin + gpu::thread(); own != 0 && id < range.end; id += kSampleThreads) {
    const uint32_t key = logits.key(id);
    if (!is_near(key)) continue;
    if (place < kSampleList) list[place] = ranked(key, id);
    ++place;
  }
}

}  // namespace

// One thread for each place of the table, then one for each place of the longest path; each token is adjusted by one of
// them. Grid: places, rows.
CANOPY_KERNEL(sample_adjust, SampleParams, 128) {
  const SampledLogits logits{p, gpu::block_y()};
  const uint32_t place = gpu::block_x() * gpu::threads() + gpu::thread();
  if (!logits.is_wanted()) return;
  const SamplingWords& settings = logits.settings();
  TokenAdjustment adjustment{kNoToken, 0, 0};
  if (place < p.most_adjustments) {
    if (place < settings.adjustments) adjustment = Span<const TokenAdjustment>{p.adjustments}[place];
  } else {
    const uint32_t token = token_on_path(logits, place - p.most_adjustments);
    if (token != kNoToken && !is_in_table(logits, token)) adjustment.token = token;
  }
  if (adjustment.token >= p.vocab) return;
  const uint32_t count = adjustment.count + count_on_path(logits, adjustment.token);
  float& logit = Span<float>{p.logits}[uint64_t{logits.row} * p.vocab + adjustment.token];
  logit = adjusted_logit(logit, adjustment.bias, count, settings);
}

CANOPY_KERNEL(sample_best, SampleParams, 256) {
  const SampledLogits logits{p, gpu::block_y()};
  const SampleRoom room;
  leave_best(logits, room);
  if (!comes_last(p.counters, logits.row, gpu::blocks_x(), room.flag)) return;
  const uint64_t top = logits.best(p.best, room.best);
  write_token(logits, is_number(key_of_rank(top)) ? id_of_rank(top) : kNoToken);
}

CANOPY_KERNEL(sample_best_random, SampleParams, 256) {
  leave_best({p, gpu::block_y()}, SampleRoom());
}

CANOPY_KERNEL(sample_best_filtered, SampleParams, 256) {
  const SampledLogits logits{p, gpu::block_y()};
  leave_best(logits, SampleRoom());
  const uint32_t first = gpu::block_x() * kSampleThreads + gpu::thread();
  const Span<uint32_t> state{p.state + uint64_t{logits.row} * sizeof(SampleState)};
  for (uint32_t i = first; i < sizeof(SampleState) / 4; i += gpu::blocks_x() * kSampleThreads) state[i] = 0;
}

// Of a block's tokens the largest log p + G, or the best token of the row where none has more. Neighbouring tokens
// share random words.
CANOPY_KERNEL(sample_draw, SampleParams, 256) {
  const SampledLogits logits{p, gpu::block_y()};
  const SampleRoom room;
  const uint64_t top = logits.best(p.best, room.best);
  const bool draws = is_number(key_of_rank(top));
  uint64_t own = 0;
  if (draws) {
    const SamplingWords& settings = logits.settings();
    const float highest = logit_of_key(key_of_rank(top));
    const uint32_t position = logits.position();
    own = mark_of(settings, id_of_rank(top), position);
    const BlockRange range = own_tokens(p);
    for (uint32_t pair = range.begin / 2 + gpu::thread(); 2 * pair < range.end; pair += kSampleThreads) {
      const uint32_t even = distance_of(settings, highest, logits.key(2 * pair));
      const uint32_t odd =
          2 * pair + 1 < range.end ? distance_of(settings, highest, logits.key(2 * pair + 1)) : kNoToken;
      if (!can_win(even < odd ? even : odd, 1, own)) continue;
      const RandomWords random = random_words(settings, pair, position);
      own = with_candidate(own, 2 * pair, even, random);
      own = with_candidate(own, 2 * pair + 1, odd, random);
    }
  }
  own = largest_of_block(own, room.best);
  if (gpu::thread() == 0) logits.pairs(p.drawn)[gpu::block_x()] = own;
  if (!comes_last(p.counters, logits.row, gpu::blocks_x(), room.flag)) return;
  const uint64_t winner = logits.best(p.drawn, room.best);
  write_token(logits, draws ? id_of_rank(winner) : kNoToken);
}

CANOPY_KERNEL(sample_count, SampleParams, 256) {
  const SampledLogits logits{p, gpu::block_y()};
  const SampleRoom room;
  const Buckets buckets;
  const uint64_t top = logits.best(p.best, room.best);
  const bool draws = is_number(key_of_rank(top));  // else the row's state stays 0
  if (draws) count_block(logits, logit_of_key(key_of_rank(top)), buckets);
  if (!comes_last(p.counters, logits.row, gpu::blocks_x(), room.flag) || !draws) return;
  find_edge(logits, Sums{{256, kSampleThreads / 32}, {512, kSampleThreads / 32}});
}

CANOPY_KERNEL(sample_gather, SampleParams, 256) {
  const SampledLogits logits{p, gpu::block_y()};
  const SampleRoom room;
  const uint64_t top = logits.best(p.best, room.best);
  const bool draws = is_number(key_of_rank(top));
  if (draws) gather_block(logits, logit_of_key(key_of_rank(top)), {128, 2});
  if (!comes_last(p.counters, logits.row, gpu::blocks_x(), room.flag)) return;
  const uint32_t token = draws ? Selection{logits, top, room.best}.draw() : kNoToken;
  write_token(logits, token);
}

}  // namespace canopy::cuda
