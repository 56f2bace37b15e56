// The k largest logits of a row, in order, and the logarithm of the sum of the exponentials of all. One block per row:
// the bits of the k-th largest are found a byte at a time by counting, what is larger is collected in any order and
// what is equal in that of the ids, and the few that are left find their places by comparing all with all.

#include "engine/cuda_backend/kernels/common.h"

namespace canopy::cuda {
namespace {

constexpr uint32_t kTopThreads = 256, kMostTop = 64;

/// Shared memory, in words.
struct TopShared {
  gpu::Shared<uint32_t> counts{0, 256};           // by the next byte of a key
  gpu::Shared<uint32_t> keys{256 * 4, kMostTop};  // of what is kept
  gpu::Shared<uint32_t> ids{(256 + 64) * 4, kMostTop};
  gpu::Shared<uint32_t> equal{(256 + 128) * 4, 8};      // lanes of each warp whose key is the k-th
  gpu::Shared<uint32_t> state{(256 + 128 + 8) * 4, 8};  // 0: bits found, 1: how many of these are wanted, 2: kept
};

CANOPY_DEVICE float logit_of(const TopKParams& p, uint32_t row, uint32_t id) {
  const float x = Span<const float>{p.logits}[uint64_t{row} * p.vocab + id] * p.multiplier;
  return (p.softcap > 0 ? p.softcap * tanhf(x / p.softcap) : x) + 0.0f;  // one zero
}

/// Larger for larger numbers.
CANOPY_DEVICE uint32_t key_of(float value) {
  const uint32_t bits = gpu::bits(value);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
CANOPY_DEVICE float value_of(uint32_t key) {
  return gpu::from_bits((key & 0x80000000u) != 0 ? key & 0x7FFFFFFFu : ~key);
}

/// Finds the key of the k-th largest; state[1] is how many of that key are among the k.
CANOPY_DEVICE void find_last(const TopKParams& p, uint32_t row, const TopShared& s) {
  if (gpu::thread() == 0) {
    s.state[0] = 0;
    s.state[1] = p.k;
    s.state[2] = 0;
  }
  for (uint32_t shift = 32; shift > 0;) {
    shift -= 8;
    s.counts[gpu::thread()] = 0;
    gpu::sync();
    const uint32_t found = s.state[0];
    for (uint32_t i = gpu::thread(); i < p.vocab; i += kTopThreads) {
      const uint32_t key = key_of(logit_of(p, row, i));
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

/// What is larger than the k-th, and of what equals it the lowest ids.
CANOPY_DEVICE void collect(const TopKParams& p, uint32_t row, const TopShared& s) {
  const uint32_t last = s.state[0], wanted = s.state[1], larger = p.k - wanted;
  uint32_t before = 0;  // that equal it, with lower ids
  for (uint32_t first = 0; first < p.vocab; first += kTopThreads) {
    const uint32_t id = first + gpu::thread();
    const uint32_t key = id < p.vocab ? key_of(logit_of(p, row, id)) : 0;
    if (id < p.vocab && key > last) keep(s, gpu::atomic_add(&s.state[2], 1), key, id);
    if (before >= wanted) continue;  // the same for all threads
    const uint32_t same = gpu::ballot(id < p.vocab && key == last);
    if (gpu::lane() == 0) s.equal[gpu::warp()] = same;
    gpu::sync();
    uint32_t place = before;
    for (uint32_t w = 0; w < kTopThreads / 32; ++w) {
      if (w < gpu::warp()) place += gpu::ones(s.equal[w]);
      before += gpu::ones(s.equal[w]);
    }
    place += gpu::ones(same & ((1u << gpu::lane()) - 1u));
    if ((same >> gpu::lane() & 1u) != 0 && place < wanted) keep(s, larger + place, key, id);
    gpu::sync();
  }
  gpu::sync();
}

CANOPY_DEVICE void write_sorted(const TopKParams& p, uint32_t row, const TopShared& s) {
  if (gpu::thread() >= p.k) return;
  const uint32_t key = s.keys[gpu::thread()], id = s.ids[gpu::thread()];
  uint32_t place = 0;
  for (uint32_t i = 0; i < p.k; ++i) place += s.keys[i] > key || (s.keys[i] == key && s.ids[i] < id) ? 1 : 0;
  const uint64_t to = uint64_t{p.first_out + row} * p.k + place;
  Span<uint32_t>{p.ids}[to] = id;
  Span<float>{p.values}[to] = value_of(key);
}

/// Each thread's part in order, then the threads' in order.
CANOPY_DEVICE void write_sum(const TopKParams& p, uint32_t row, float best, const TopShared& s) {
  const bool counts = gpu::bits(best) << 1 != 0xFF000000u;  // no infinity
  float sum = 0;
  for (uint32_t i = gpu::thread(); counts && i < p.vocab; i += kTopThreads)
    sum = sum + expf(logit_of(p, row, i) - best);
  s.counts[gpu::thread()] = gpu::bits(sum);
  gpu::sync();
  if (gpu::thread() != 0) return;
  float all = 0;
  for (uint32_t t = 0; t < kTopThreads; ++t) all = all + gpu::from_bits(s.counts[t]);
  Span<float>{p.log_sum_exp}[p.first_out + row] = counts ? best + logf(all) : best;
}

}  // namespace

CANOPY_KERNEL(top_k, TopKParams, 256) {
  const TopShared shared;
  const uint32_t row = gpu::block_x();
  find_last(p, row, shared);
  collect(p, row, shared);
  uint32_t best = 0;
  for (uint32_t i = 0; i < p.k; ++i) best = shared.keys[i] > best ? shared.keys[i] : best;
  write_sorted(p, row, shared);
  write_sum(p, row, value_of(best), shared);
}

}  // namespace canopy::cuda
