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

const std::array<float, 65536> half_values = [] {
  std::array<float, 65536> all = {};
  for (uint32_t bits = 0; bits < all.size(); ++bits) all[bits] = f16_to_f32(static_cast<uint16_t>(bits));
  return all;
}();

namespace {

/// Words 0 to 3: a; 4, 5: b; 6 to 9: the sums, which the first four words of the results become. gpu.h says which
/// elements they have: of a row, column 2q and the next are in lane (row % 8, q), as are 2q + 8 and the next.
void multiply_warp(std::span<const host_gpu::LaneWords, 32> given, std::span<host_gpu::LaneWords, 32> results) {
  double a[16][16], b[16][8];
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const uint32_t g = lane / 4, q = lane % 4;
    const auto& words = given[lane].words;
    for (uint32_t i = 0; i < 2; ++i) {
      const uint32_t shift = 16 * i, k = 2 * q + i;
      const auto half_of = [&](uint32_t word) {
        return double{half_value(static_cast<uint16_t>(words[word] >> shift))};
      };
      a[g][k] = half_of(0);
      a[g + 8][k] = half_of(1);
      a[g][k + 8] = half_of(2);
      a[g + 8][k + 8] = half_of(3);
      b[k][g] = half_of(4);
      b[k + 8][g] = half_of(5);
    }
  }
  for (uint32_t row = 0; row < 16; ++row) {
    double sums[8];
    for (uint32_t column = 0; column < 8; ++column) {
      const uint32_t lane = row % 8 * 4 + column / 2;
      sums[column] = double{from_bits(given[lane].words[6 + row / 8 * 2 + column % 2])};
    }
    for (uint32_t k = 0; k < 16; ++k) {
      for (uint32_t column = 0; column < 8; ++column) sums[column] += a[row][k] * b[k][column];
    }
    for (uint32_t column = 0; column < 8; ++column) {
      const uint32_t lane = row % 8 * 4 + column / 2;
      results[lane].words[row / 8 * 2 + column % 2] = bits(static_cast<float>(sums[column]));
    }
  }
}

}  // namespace

void multiply(float (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  const host_gpu::LaneWords results = host_gpu::together(
      {{a[0], a[1], a[2], a[3], b[0], b[1], bits(sums[0]), bits(sums[1]), bits(sums[2]), bits(sums[3])}},
      multiply_warp);
  for (uint32_t i = 0; i < 4; ++i) sums[i] = from_bits(results.words[i]);
}

}  // namespace canopy::gpu
