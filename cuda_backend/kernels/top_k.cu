// The k largest logits of a row, in order, and the logarithm of the sum of the exponentials of all. Grid: blocks of a
// row, rows. A block finds the k largest of its tokens, sorted, their maximum and the sum of exp(logit - maximum); the
// block that comes last for a row does the same with what all have found. The bits of the k-th largest are found a byte
// at a time by counting; what is larger is collected in any order, what is equal in that of the ids, and the few that
// are left find their places by comparing all with all.

#include "cuda_backend/kernels/logits.h"

namespace canopy::cuda {
namespace {

constexpr uint32_t kTopThreads = 256, kMostTop = 64;

/// Shared memory, in words. The keys of a block's tokens come last.
struct TopShared {
  gpu::Shared<uint32_t> counts{0, 256};           // by the next byte of a key
  gpu::Shared<uint32_t> keys{256 * 4, kMostTop};  // of what is kept
  gpu::Shared<uint32_t> ids{(256 + 64) * 4, kMostTop};
  gpu::Shared<uint32_t> equal{(256 + 128) * 4, 8};      // lanes of each warp whose key is the k-th
  gpu::Shared<uint32_t> state{(256 + 128 + 8) * 4, 8};  // 0: bits found, 1: how many of these are wanted, 2: kept
  gpu::Shared<uint32_t> all{(256 + 128 + 16) * 4, kTopBlock};
};

CANOPY_DEVICE float counted_logit(const TopKParams& p, float logit) {
  const float x = logit * p.multiplier;
  return (p.softcap > 0 ? p.softcap * tanhf(x / p.softcap) : x) + 0.0f;  // one zero
}

/// Keys and ids of a block's own tokens.
struct OwnTokens {
  gpu::Shared<uint32_t> keys;
  uint32_t first, count;
  CANOPY_DEVICE uint32_t key(uint32_t i) const { return keys[i]; }
  CANOPY_DEVICE uint32_t id(uint32_t i) const { return first + i; }
};

/// Those that the blocks of a row have left, each block's in order.
struct FoundTokens {
  Span<const uint64_t> pairs;
  uint32_t count;
  CANOPY_DEVICE uint32_t key(uint32_t i) const { return key_of_rank(pairs[i]); }
  CANOPY_DEVICE uint32_t id(uint32_t i) const { return id_of_rank(pairs[i]); }
};

/// Finds the key of the k-th largest; state[1] is how many of that key are among the k.
template <class Tokens>
CANOPY_DEVICE void find_last(const Tokens& tokens, uint32_t k, const TopShared& s) {
  if (gpu::thread() == 0) {
    s.state[0] = 0;
    s.state[1] = k;
    s.state[2] = 0;
  }
  for (uint32_t shift = 32; shift > 0;) {
    shift -= 8;
    s.counts[gpu::thread()] = 0;
    gpu::sync();
    const uint32_t found = s.state[0];
    for (uint32_t i = gpu::thread(); i < tokens.count; i += kTopThreads) {
      const uint32_t key = tokens.key(i);
      if (shift == 24 || key >> (shift + 8) == found >> (shift + 8)) gpu::atomic_add(&s.counts[key >> shift & 255u], 1);
    }
    gpu::sync();
    if (gpu::thread() == 0) {
      uint32_t wanted = s.state[1], byte = 255;
      while (byte > 0 && s.counts[byte] < wanted) wanted -= s.counts[byte--];
      s.state[0] = found | byte << shift;
      s.state[1] = wanted;
    }
    gpu::sync();
  }
}

CANOPY_DEVICE void keep(const TopShared& s, uint32_t at, uint32_t key, uint32_t id) {
  s.keys[at] = key;
  s.ids[at] = id;
}

/// What is larger than the k-th, and of what equals it the first, which have the lowest ids.
template <class Tokens>
CANOPY_DEVICE void collect(const Tokens& tokens, uint32_t k, const TopShared& s) {
  const uint32_t last = s.state[0], wanted = s.state[1], larger = k - wanted;
  uint32_t before = 0;  // that equal it
  for (uint32_t first = 0; first < tokens.count; first += kTopThreads) {
    const uint32_t i = first + gpu::thread();
    const bool is_one = i < tokens.count;
    const uint32_t key = is_one ? tokens.key(i) : 0;
    if (is_one && key > last) keep(s, gpu::atomic_add(&s.state[2], 1), key, tokens.id(i));
    if (before >= wanted) continue;  // the same for all threads
    const uint32_t same = gpu::ballot(is_one && key == last);
    if (gpu::lane() == 0) s.equal[gpu::warp()] = same;
    gpu::sync();
    uint32_t place = before;
    for (uint32_t w = 0; w < kTopThreads / 32; ++w) {
      if (w < gpu::warp()) place += gpu::ones(s.equal[w]);
      before += gpu::ones(s.equal[w]);
    }
    place += gpu::ones(same & ((1u << gpu::lane()) - 1u));
    if ((same >> gpu::lane() & 1u) != 0 && place < wanted) keep(s, larger + place, key, tokens.id(i));
    gpu::sync();
  }
  gpu::sync();
}

/// The place in order of what this thread keeps, of k.
CANOPY_DEVICE uint32_t place_of_own(uint32_t k, const TopShared& s) {
  const uint32_t key = s.keys[gpu::thread()], id = s.ids[gpu::thread()];
  uint32_t place = 0;
  for (uint32_t i = 0; i < k; ++i) place += s.keys[i] > key || (s.keys[i] == key && s.ids[i] < id) ? 1 : 0;
  return place;
}

CANOPY_DEVICE bool is_infinite(float x) {
  return gpu::bits(x) << 1 == 0xFF000000u;
}

/// The sum over all threads, in an order that depends on nothing.
CANOPY_DEVICE float sum_of_block(float own, const TopShared& s) {
  own = sum_of_warp(own);
  gpu::sync();
  if (gpu::lane() == 0) s.counts[gpu::warp()] = gpu::bits(own);
  gpu::sync();
  float all = 0;
  for (uint32_t w = 0; w < kTopThreads / 32; ++w) all = all + gpu::from_bits(s.counts[w]);
  return all;
}

/// What exp(x - base) of `count` tokens is in sum; base is their largest, or 0 where that is infinite.
CANOPY_DEVICE float sum_of_own(const OwnTokens& tokens, float base, const TopShared& s) {
  float sum = 0;
  for (uint32_t i = gpu::thread(); i < tokens.count; i += kTopThreads) {
    sum = sum + expf(gpu::from_bits(unordered_bits(tokens.key(i))) - base);
  }
  return sum_of_block(sum, s);
}

/// Merges maxima and sums [blocks, 2] of the blocks, each of which is relative to its own.
CANOPY_DEVICE void write_sum(const TopKParams& p, uint32_t row, float best, const Span<const float>& sums,
                             const TopShared& s) {
  float own = 0;
  for (uint32_t b = gpu::thread(); b < gpu::blocks_x(); b += kTopThreads) {
    const float base = sums[2 * b];
    if (!is_infinite(base) && !is_infinite(best)) own = own + sums[2 * b + 1] * expf(base - best);
  }
  const float all = sum_of_block(own, s);
  if (gpu::thread() == 0) Span<float>{p.log_sum_exp}[p.first_out + row] = is_infinite(best) ? best : best + logf(all);
}

}  // namespace

CANOPY_KERNEL(top_k, TopKParams, 256) {
  const TopShared shared;
  const gpu::Shared<uint32_t> flag((256 + 128 + 15) * 4, 1);
  const uint32_t row = gpu::block_y(), blocks = gpu::blocks_x(), first = gpu::block_x() * kTopBlock;
  const OwnTokens own{shared.all, first, p.vocab - first < kTopBlock ? p.vocab - first : kTopBlock};
  for (uint32_t i = gpu::thread(); i < own.count; i += kTopThreads) {
    const float logit = Span<const float>{p.logits}[uint64_t{row} * p.vocab + first + i];
    shared.all[i] = ordered_bits(gpu::bits(counted_logit(p, logit)));
  }
  gpu::sync();
  const uint32_t kept = p.k < own.count ? p.k : own.count;
  find_last(own, kept, shared);
  collect(own, kept, shared);
  const Span<uint64_t> pairs{p.found + uint64_t{row} * blocks * p.k * 8};
  const Span<float> sums{p.sums + uint64_t{row} * blocks * 8};
  uint32_t best = 0;
  for (uint32_t i = 0; i < kept; ++i) best = shared.keys[i] > best ? shared.keys[i] : best;
  const float largest = gpu::from_bits(unordered_bits(best));
  if (gpu::thread() < p.k) {  // pairs of 0 are no tokens, and come after all others
    const bool is_one = gpu::thread() < kept;
    const uint32_t place = is_one ? place_of_own(kept, shared) : gpu::thread();
    pairs[gpu::block_x() * p.k + place] = is_one ? ranked(shared.keys[gpu::thread()], shared.ids[gpu::thread()]) : 0;
  }
  const float sum = sum_of_own(own, is_infinite(largest) ? 0.0f : largest, shared);
  if (gpu::thread() == 0) {
    sums[2 * gpu::block_x()] = largest;
    sums[2 * gpu::block_x() + 1] = sum;
  }
  if (!comes_last(p.counters, row, blocks, flag)) return;

  const FoundTokens found{{pairs.address}, blocks * p.k};
  find_last(found, p.k, shared);
  collect(found, p.k, shared);
  best = 0;
  for (uint32_t i = 0; i < p.k; ++i) best = shared.keys[i] > best ? shared.keys[i] : best;
  if (gpu::thread() < p.k) {
    const uint64_t to = (uint64_t{p.first_out} + row) * p.k + place_of_own(p.k, shared);
    Span<uint32_t>{p.ids}[to] = shared.ids[gpu::thread()];
    Span<float>{p.values}[to] = gpu::from_bits(unordered_bits(shared.keys[gpu::thread()]));
  }
  write_sum(p, row, gpu::from_bits(unordered_bits(best)), {sums.address}, shared);
}

}  // namespace canopy::cuda
