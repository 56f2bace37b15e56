// The experts that rows choose: logits in f32 and not on tensor cores, as a choice hangs on them. A warp makes the
// logit of one expert, its lanes every 32nd column in order, added as sum_of_warp() does. Grid: blocks of experts,
// rows. The block that comes last for a row chooses: an expert's rank is the number of those before it. The logit of a
// shared expert comes last, and is not chosen among.

#include "engine/cuda_backend/kernels/common.h"

namespace canopy::cuda {
namespace {

constexpr uint32_t kRouteThreads = kRouteExperts * 32;

/// Larger for a larger logit, the same for both zeros, 0 for NaN.
CANOPY_DEVICE uint32_t logit_key(float logit) {
  if (!(logit == logit)) return 0;
  const uint32_t bits = gpu::bits(logit + 0.0f), magnitude = bits & 0x7FFFFFFFu;
  return bits == magnitude ? magnitude + 0x80000000u : 0x80000000u - magnitude;
}

CANOPY_DEVICE void choose_experts(const RouteParams& p, uint32_t row) {
  const Span<const float> logits{p.logits + uint64_t{row} * (p.experts + p.shared_experts) * 4};
  const gpu::Shared<uint32_t> keys(16, kMostExperts);
  const gpu::Shared<float> best(16 + kMostExperts * 4, kMostUsedExperts);
  const gpu::Shared<float> sums(16 + (kMostExperts + kMostUsedExperts) * 4, kRouteThreads);
  for (uint32_t e = gpu::thread(); e < p.experts; e += kRouteThreads) keys[e] = logit_key(logits[e]);
  gpu::sync();
  for (uint32_t e = gpu::thread(); e < p.experts; e += kRouteThreads) {
    const uint32_t own = keys[e];
    uint32_t rank = 0;
    for (uint32_t other = 0; other < p.experts; ++other) {
      rank += keys[other] > own || (keys[other] == own && other < e) ? 1 : 0;
    }
    if (rank >= p.used) continue;
    Span<uint32_t>{p.chosen}[uint64_t{row} * p.used + rank] = e;
    best[rank] = logits[e];
    if (p.touched != 0 && Span<const Row>{p.rows}[row].ancestor_count != 0) {
      gpu::atomic_or(gpu::element<uint32_t>(p.touched, e / 32), 1u << e % 32);
    }
  }
  gpu::sync();
  const float largest = best[0];
  float own = 0;
  if (p.of_chosen != 0) {
    if (gpu::thread() < p.used) own = expf(best[gpu::thread()] - largest);
  } else {
    for (uint32_t e = gpu::thread(); e < p.experts; e += kRouteThreads) own = own + expf(logits[e] - largest);
  }
  sums[gpu::thread()] = own;
  gpu::sync();
  const Span<float> shares{p.shares + uint64_t{row} * (p.used + p.shared_experts) * 4};
  if (p.shared_experts != 0 && gpu::thread() == 0) shares[p.used] = 1.0f / (1.0f + expf(-logits[p.experts]));
  if (gpu::thread() >= p.used) return;
  float sum = 0;
  for (uint32_t i = 0; i < kRouteThreads; ++i) sum = sum + sums[i];
  shares[gpu::thread()] = expf(best[gpu::thread()] - largest) / sum;
}

}  // namespace

CANOPY_KERNEL(route, RouteParams, 256) {
  const uint32_t row = gpu::block_y(), expert = gpu::block_x() * kRouteExperts + gpu::warp();
  if (expert < p.experts + p.shared_experts) {
    const Span<const float> values{p.in.values + uint64_t{row} * p.in.stride * 4};
    const Span<const float> router{p.router + uint64_t{expert} * p.in.cols * 4};
    float sum = 0;
    for (uint32_t k = gpu::lane(); k < p.in.cols; k += 32) sum = fmaf(router[k], values[k], sum);
    const float factor = p.norm_eps > 0 ? norm_factor(p.in, row, p.norm_eps) : 1.0f;
    float logit = sum_of_warp(sum) * factor;
    if (p.bias != 0) logit = logit + Span<const float>{p.bias}[expert];
    if (gpu::lane() == 0) Span<float>{p.logits}[uint64_t{row} * (p.experts + p.shared_experts) + expert] = logit;
  }
  const gpu::Shared<uint32_t> flag(0, 1);
  if (comes_last(p.counters, row, gpu::blocks_x(), flag)) choose_experts(p, row);
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
