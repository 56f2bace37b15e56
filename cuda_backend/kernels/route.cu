// The experts that rows choose, and which pairs of a row and an expert are computed together.
//
// Logits are in f32 and not on tensor cores, as a choice hangs on them. A warp makes the logit of one expert, its lanes
// every 32nd column, or every 32nd four columns, in order, added as sum_of_warp() does. Grid: blocks of experts, rows.
// The block that comes last for a row chooses: an expert's rank is the number of those before it. The logit of a shared
// expert comes last, and is not chosen among.

#include "cuda_backend/kernels/common.h"

namespace canopy::cuda {
namespace {

constexpr uint32_t kRouteThreads = kRouteExperts * 32;

/// Larger for a larger logit, the same for both zeros, 0 for NaN.
CANOPY_DEVICE uint32_t logit_key(float logit) {
  if (!(logit == logit)) return 0;
  const uint32_t bits = gpu::bits(logit + 0.0f), magnitude = bits & 0x7FFFFFFFu;
  return bits == magnitude ? magnitude + 0x80000000u : 0x80000000u - magnitude;
}

/// The other way; of NaN the least number.
CANOPY_DEVICE float number_of(uint32_t key) {
  if (key == 0) return gpu::from_bits(0xFF800000u);
  return gpu::from_bits(key >= 0x80000000u ? key - 0x80000000u : (0x80000000u - key) | 0x80000000u);
}

CANOPY_DEVICE float logistic(float logit) {
  return 1.0f / (1.0f + expf(-logit));
}

/// Experts of groups that are not taken get the key of NaN. `sums`: a number for each group.
CANOPY_DEVICE void choose_groups(const RouteParams& p, const gpu::Shared<uint32_t>& keys,
                                 const gpu::Shared<uint32_t>& sums) {
  const uint32_t each = p.experts / p.groups;
  for (uint32_t g = gpu::thread(); g < p.groups; g += kRouteThreads) {
    uint32_t first = 0, second = 0;
    for (uint32_t e = g * each; e < (g + 1) * each; ++e) {
      const uint32_t key = keys[e], lower = key < first ? key : first;
      second = second > lower ? second : lower;
      first = first > key ? first : key;
    }
    sums[g] = logit_key(number_of(first) + number_of(second));
  }
  gpu::sync();
  for (uint32_t e = gpu::thread(); e < p.experts; e += kRouteThreads) {
    const uint32_t own = e / each;
    uint32_t rank = 0;
    for (uint32_t other = 0; other < p.groups; ++other) {
      rank += sums[other] > sums[own] || (sums[other] == sums[own] && other < own) ? 1 : 0;
    }
    if (rank >= p.groups_used) keys[e] = 0;
  }
  gpu::sync();
}

/// A lane's part of the product of a router's row and a row of activations.
CANOPY_DEVICE float sum_of_columns(uint64_t router, uint64_t values, uint32_t cols) {
  float sum = 0;
  for (uint32_t k = gpu::lane(); k < cols; k += 32) {
    sum = fmaf(Span<const float>{router}[k], Span<const float>{values}[k], sum);
  }
  return sum;
}

/// Of four columns at a time, which are aligned. Several steps' loads are under way together: a router is a megabyte,
/// which few warps have to bring.
CANOPY_DEVICE float sum_of_quads(uint64_t router, uint64_t values, uint32_t cols) {
  constexpr uint32_t ahead = kRouteAhead;
  const uint32_t quads = cols / 4;
  float sum = 0;
  for (uint32_t begin = gpu::lane(); begin < quads; begin += 32 * ahead) {
    Unit r[ahead], x[ahead];
    CANOPY_UNROLL
    for (uint32_t s = 0; s < ahead; ++s) {
      const uint32_t wanted = begin + 32 * s, at = wanted < quads ? wanted : quads - 1;
      r[s] = Span<const Unit>{router}[at];
      x[s] = Span<const Unit>{values}[at];
    }
    CANOPY_UNROLL
    for (uint32_t s = 0; s < ahead; ++s) {
      const bool is_there = begin + 32 * s < quads;
      CANOPY_UNROLL
      for (uint32_t i = 0; i < 4; ++i) {
        sum =
            fmaf(is_there ? gpu::from_bits(r[s].words[i]) : 0.0f, is_there ? gpu::from_bits(x[s].words[i]) : 0.0f, sum);
      }
    }
  }
  return sum;
}

CANOPY_DEVICE void choose_experts(const RouteParams& p, uint32_t row) {
  const Span<const float> logits{p.logits + uint64_t{row} * (p.experts + p.shared_gates) * 4};
  const gpu::Shared<uint32_t> keys(16, kMostExperts);
  const gpu::Shared<float> best(16 + kMostExperts * 4, kMostUsedExperts);
  const gpu::Shared<float> sums(16 + (kMostExperts + kMostUsedExperts) * 4, kRouteThreads);
  const Span<const uint32_t> chosen{p.chosen + uint64_t{row} * p.used * 4};
  for (uint32_t e = gpu::thread(); e < p.experts; e += kRouteThreads) {
    float by = logits[e];
    if (p.sigmoid != 0) {
      by = logistic(by);
      if (p.choice_bias != 0) by = by + Span<const float>{p.choice_bias}[e];
    }
    keys[e] = logit_key(by);
  }
  gpu::sync();
  // Where sums come later.
  if (p.groups > 1) choose_groups(p, keys, {16 + kMostExperts * 4, kMostUsedExperts + kRouteThreads});
  for (uint32_t e = gpu::thread(); e < p.experts; e += kRouteThreads) {
    const uint32_t own = keys[e];
    uint32_t rank = 0;
    for (uint32_t other = 0; other < p.experts; ++other) {
      rank += keys[other] > own || (keys[other] == own && other < e) ? 1 : 0;
    }
    if (rank >= p.used) continue;
    Span<uint32_t>{p.chosen}[uint64_t{row} * p.used + rank] = e;
    best[rank] = p.sigmoid != 0 ? logistic(logits[e]) : logits[e];
    if (p.touched != 0 && Span<const Row>{p.rows}[row].ancestor_count != 0) {
      gpu::atomic_or(gpu::element<uint32_t>(p.touched, e / 32), 1u << e % 32);
    }
  }
  gpu::sync();
  const float largest = best[0];
  float own = 0;
  if (p.of_chosen != 0) {
    if (gpu::thread() < p.used) own = p.sigmoid != 0 ? best[gpu::thread()] : expf(best[gpu::thread()] - largest);
  } else if (p.sigmoid == 0) {
    for (uint32_t e = gpu::thread(); e < p.experts; e += kRouteThreads) own = own + expf(logits[e] - largest);
  }
  sums[gpu::thread()] = own;
  gpu::sync();
  const Span<float> shares{p.shares + uint64_t{row} * (p.used + p.shared_experts) * 4};
  if (p.shared_experts != 0 && gpu::thread() == 0) {
    shares[p.used] = p.shared_gates != 0 ? logistic(logits[p.experts]) : 1.0f;
  }
  if (gpu::thread() >= p.used) return;
  float sum = 0;
  for (uint32_t i = 0; i < kRouteThreads; ++i) sum = sum + sums[i];
  const float score = p.sigmoid != 0 ? best[gpu::thread()] : expf(best[gpu::thread()] - largest);
  const float over = p.sigmoid == 0 ? sum : p.of_chosen != 0 ? sum + 1e-20f : 1.0f;
  const float share = score / over * p.factor;
  shares[gpu::thread()] = p.scales != 0 ? share * Span<const float>{p.scales}[chosen[gpu::thread()]] : share;
}

/// Two numbers of each expert, or of several together.
struct PairsAndTiles {
  uint32_t pairs = 0, tiles = 0;
};

/// Of what threads have, the sums over those before this one; `all` gets the whole sums. `room`: a number for each
/// warp.
CANOPY_DEVICE PairsAndTiles sums_before(const PairsAndTiles& own, PairsAndTiles& all,
                                        const gpu::Shared<uint64_t>& room) {
  const uint64_t both = uint64_t{own.pairs} << 32 | own.tiles;
  uint64_t sum = both;
  CANOPY_UNROLL
  for (uint32_t step = 1; step < 32; step *= 2) {
    const uint64_t before = gpu::shuffle(sum, gpu::lane() < step ? gpu::lane() : gpu::lane() - step);
    if (gpu::lane() >= step) sum += before;
  }
  if (gpu::lane() == 31) room[gpu::warp()] = sum;
  gpu::sync();
  sum -= both;
  uint64_t total = 0;
  for (uint32_t w = 0; w < gpu::threads() / 32; ++w) {
    if (w < gpu::warp()) sum += room[w];
    total += room[w];
  }
  all = {static_cast<uint32_t>(total >> 32), static_cast<uint32_t>(total)};
  return {static_cast<uint32_t>(sum >> 32), static_cast<uint32_t>(sum)};
}

}  // namespace

CANOPY_KERNEL(route, RouteParams, 256) {
  const uint32_t row = gpu::block_y(), expert = gpu::block_x() * kRouteExperts + gpu::warp();
  if (expert < p.experts + p.shared_gates) {
    const uint32_t cols = p.in.cols;
    const uint64_t values = p.in.values + uint64_t{row} * p.in.stride * 4,
                   router = p.router + uint64_t{expert} * cols * 4;
    const float sum = cols % 4 == 0 ? sum_of_quads(router, values, cols) : sum_of_columns(router, values, cols);
    const float factor = p.norm_eps > 0 ? norm_factor(p.in, row, p.norm_eps) : 1.0f;
    float logit = sum_of_warp(sum) * factor;
    if (p.bias != 0) logit = logit + Span<const float>{p.bias}[expert];
    if (gpu::lane() == 0) Span<float>{p.logits}[uint64_t{row} * (p.experts + p.shared_gates) + expert] = logit;
  }
  const gpu::Shared<uint32_t> flag(0, 1);
  if (comes_last(p.counters, row, gpu::blocks_x(), flag)) choose_experts(p, row);
}

// Within an expert pairs stand as they arrive, which changes no result: each is computed as if it were alone.
CANOPY_KERNEL(expert_groups, ExpertGroupsParams, kGroupThreads) {
  const gpu::Shared<uint32_t> counts(0, kMostExperts), places(kMostExperts * 4, kMostExperts);
  const gpu::Shared<uint64_t> room(kMostExperts * 8, kGroupThreads / 32);
  const Span<const uint32_t> chosen{p.chosen};
  const Span<ExpertTile> tiles{p.tiles};
  for (uint32_t e = gpu::thread(); e < p.experts; e += kGroupThreads) counts[e] = 0;
  gpu::sync();
  for (uint32_t i = gpu::thread(); i < p.pairs; i += kGroupThreads) gpu::atomic_add(&counts[chosen[i]], 1u);
  gpu::sync();
  // Each thread has some experts next to each other.
  const uint32_t each = (p.experts + kGroupThreads - 1) / kGroupThreads, begin = gpu::thread() * each;
  const uint32_t end = begin + each < p.experts ? begin + each : p.experts;
  PairsAndTiles own, all;
  for (uint32_t e = begin; e < end; ++e) {
    own.pairs += counts[e];
    own.tiles += (counts[e] + p.tile_pairs - 1) / p.tile_pairs;
  }
  PairsAndTiles next = sums_before(own, all, room);
  for (uint32_t e = begin; e < end; ++e) {
    places[e] = next.pairs;
    for (uint32_t first = 0; first < counts[e]; first += p.tile_pairs) {
      const uint32_t left = counts[e] - first;
      tiles[next.tiles++] = {e, next.pairs + first, left < p.tile_pairs ? left : p.tile_pairs, 0};
    }
    next.pairs += counts[e];
  }
  for (uint32_t tile = all.tiles + gpu::thread(); tile < p.most_tiles; tile += kGroupThreads) tiles[tile] = {};
  gpu::sync();
  for (uint32_t i = gpu::thread(); i < p.pairs; i += kGroupThreads) {
    Span<uint32_t>{p.order}[gpu::atomic_add(&places[chosen[i]], 1u)] = i;
  }
}

CANOPY_KERNEL(count_experts, CountExpertsParams, 32) {
  uint32_t own = 0;
  if (gpu::lane() < p.words) {
    uint32_t& word = Span<uint32_t>{p.touched}[uint64_t{gpu::block_x()} * p.words + gpu::lane()];
    for (uint32_t rest = word; rest != 0; rest &= rest - 1) ++own;
    word = 0;
  }
  CANOPY_UNROLL
  for (uint32_t mask = 1; mask < 32; mask *= 2) own += gpu::shuffle_xor(own, mask);
  if (gpu::lane() == 0) Span<uint32_t>{p.counts}[gpu::block_x()] = own;
}

}  // namespace canopy::cuda
