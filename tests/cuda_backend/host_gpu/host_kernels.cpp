#include "tests/cuda_backend/host_gpu/host_kernels.h"

#include <bit>
#include <map>

#include "gpu.h"

namespace canopy::host_gpu {
namespace {

std::map<std::string_view, const KernelEntry*>& all() {
  static std::map<std::string_view, const KernelEntry*> kernels;
  return kernels;
}

}  // namespace

KernelEntry::KernelEntry(const char* entry_name, size_t bytes, uint32_t most_threads, KernelBody code)
    : name(entry_name), params_bytes(bytes), threads(most_threads), body(code) {
  all()[name] = this;
}

const KernelEntry* find_kernel(std::string_view name) {
  const auto found = all().find(name);
  return found == all().end() ? nullptr : found->second;
}

}  // namespace canopy::host_gpu

namespace canopy::gpu {

void multiply(float (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  host_gpu::LaneWords mine;
  for (uint32_t i = 0; i < 4; ++i) mine.words[i] = a[i];
  for (uint32_t i = 0; i < 2; ++i) mine.words[4 + i] = b[i];
  const auto all = host_gpu::exchange(mine);
  const uint32_t g = lane() / 4, q = lane() % 4;
  const auto half_of = [](uint32_t word, uint32_t second) {
    return static_cast<double>(half_value(static_cast<uint16_t>(second != 0 ? word >> 16 : word)));
  };
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t row = g + (i / 2) * 8, column = 2 * q + i % 2;
    double sum = sums[i];
    for (uint32_t k = 0; k < 16; ++k) {
      // The lane and the word that have element (row, k) of a, and (k, column) of b.
      const uint32_t pair = k % 8 / 2, upper = k / 8;
      const uint32_t word_a = all[(row % 8) * 4 + pair].words[upper * 2 + row / 8];
      const uint32_t word_b = all[column * 4 + pair].words[4 + upper];
      sum += half_of(word_a, k % 2) * half_of(word_b, k % 2);
    }
    sums[i] = static_cast<float>(sum);
  }
}

}  // namespace canopy::gpu
