// argmax over logits. Grid: blocks of a row, rows. The block that comes last for a row compares what all have found.

#include "cuda_backend/kernels/logits.h"

namespace canopy::cuda {
namespace {

constexpr uint32_t kArgmaxThreads = 256;

/// 0 for NaN, which never wins; both zeros are equal.
CANOPY_DEVICE uint64_t argmax_rank(float logit, uint32_t id) {
  return logit == logit ? ranked(ordered_bits(gpu::bits(logit + 0.0f)), id) : 0;
}

}  // namespace

CANOPY_KERNEL(argmax, ArgmaxParams, 256) {
  const uint32_t row = gpu::block_y(), first = gpu::block_x() * kArgmaxBlock;
  const uint32_t end = first + kArgmaxBlock < p.vocab ? first + kArgmaxBlock : p.vocab;
  const Span<const float> logits{p.logits + uint64_t{row} * p.vocab * 4};
  const gpu::Shared<uint64_t> room(0, kArgmaxThreads / 32);
  const gpu::Shared<uint32_t> flag(kArgmaxThreads / 32 * 8, 1);
  uint64_t best = 0;
  for (uint32_t id = first + gpu::thread(); id < end; id += kArgmaxThreads) {
    const uint64_t rank = argmax_rank(logits[id], id);
    best = rank > best ? rank : best;
  }
  best = largest_of_block(best, room);
  const uint32_t blocks = gpu::blocks_x();
  const Span<uint64_t> found{p.found + uint64_t{row} * blocks * 8};
  if (gpu::thread() == 0) found[gpu::block_x()] = best;
  if (!comes_last(p.counters, row, blocks, flag)) return;
  best = 0;
  for (uint32_t b = gpu::thread(); b < blocks; b += kArgmaxThreads) best = found[b] > best ? found[b] : best;
  best = largest_of_block(best, room);
  if (gpu::thread() != 0) return;
  const Span<uint32_t> out{p.out + (uint64_t{p.first_out} + row) * 8};
  out[0] = best == 0 ? 0xFFFFFFFFu : id_of_rank(best);
  out[1] = best == 0 ? 0x7FC00000u : gpu::bits(logits[id_of_rank(best)]);
}

}  // namespace canopy::cuda
