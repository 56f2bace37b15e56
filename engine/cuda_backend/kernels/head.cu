// argmax over logits. One block per row.

#include "engine/cuda_backend/kernels/common.h"

namespace canopy::cuda {
namespace {

constexpr uint32_t kArgmaxThreads = 256;
constexpr uint32_t kNone = 0xFFFFFFFFu;

struct Candidate {
  uint32_t id = kNone;
  float value = 0;
};

CANOPY_DEVICE bool beats(const Candidate& b, const Candidate& a) {
  if (b.id == kNone) return false;
  return a.id == kNone || b.value > a.value || (b.value == a.value && b.id < a.id);
}

}  // namespace

CANOPY_KERNEL(argmax, ArgmaxParams, 256) {
  const uint32_t row = gpu::block_x();
  const Span<const float> logits{p.logits};
  Candidate best;
  for (uint32_t i = gpu::thread(); i < p.vocab; i += kArgmaxThreads) {
    const float value = logits[uint64_t{row} * p.vocab + i];
    const Candidate other{value == value ? i : kNone, value};
    if (beats(other, best)) best = other;
  }
  const gpu::Shared<Candidate> all(0, kArgmaxThreads);
  all[gpu::thread()] = best;
  gpu::sync();
  if (gpu::thread() != 0) return;
  for (uint32_t t = 1; t < kArgmaxThreads; ++t) {
    if (beats(all[t], best)) best = all[t];
  }
  const Span<uint32_t> out{p.out};
  out[(p.first_out + row) * 2] = best.id;
  out[(p.first_out + row) * 2 + 1] = best.id == kNone ? 0x7FC00000u : gpu::bits(best.value);
}

}  // namespace canopy::cuda
