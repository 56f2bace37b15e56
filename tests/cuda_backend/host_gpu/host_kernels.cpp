#include "tests/cuda_backend/host_gpu/host_kernels.h"

#include <bit>
#include <map>

#include "cuda_backend/kernels/params.h"
#include "gpu.h"

namespace canopy::host_gpu {
namespace {

using Kernels = std::map<std::string_view, const KernelEntry*>;

/// Of each architecture that there is code for.
std::map<int, Kernels>& all() {
  static std::map<int, Kernels> kernels;
  return kernels;
}

}  // namespace

KernelEntry::KernelEntry(int architecture, const char* entry_name, size_t bytes, uint32_t most_threads, KernelBody code)
    : name(entry_name), params_bytes(bytes), threads(most_threads), body(code) {
  all()[architecture][name] = this;
}

const KernelEntry* find_kernel(std::string_view name, int capability) {
  const bool is_older = capability < kArchitecture;  // later ones run the code of kArchitecture, too
  for (const int architecture :
       {is_older && cuda::adds_slowly(capability) ? kSlowlyAdding : kArchitecture, kArchitecture}) {
    const Kernels& kernels = all()[architecture];
    const auto found = kernels.find(name);
    if (found != kernels.end()) return found->second;
  }
  return nullptr;
}

}  // namespace canopy::host_gpu

namespace canopy::gpu {

const std::array<float, 65536> half_values = [] {
  std::array<float, 65536> all = {};
  for (uint32_t bits = 0; bits < all.size(); ++bits) all[bits] = f16_to_f32(static_cast<uint16_t>(bits));
  return all;
}();

namespace {

/// Elements of a warp's matrices. gpu.h says which a lane has: of a row, column 2q and the next are in lane
/// (row % 8, q), as are 2q + 8 and the next.
struct Operands {
  double a[16][16], b[16][8];

  /// Words 0 to 3: a; 4, 5: b.
  explicit Operands(std::span<const host_gpu::LaneWords, 32> given) {
    for (uint32_t lane = 0; lane < 32; ++lane) {
      const uint32_t g = lane / 4, q = lane % 4;
      for (uint32_t i = 0; i < 2; ++i) {
        const uint32_t shift = 16 * i, k = 2 * q + i;
        const auto half_of = [&](uint32_t word) {
          return double{half_value(static_cast<uint16_t>(given[lane].words[word] >> shift))};
        };
        a[g][k] = half_of(0);
        a[g + 8][k] = half_of(1);
        a[g][k + 8] = half_of(2);
        a[g + 8][k + 8] = half_of(3);
        b[k][g] = half_of(4);
        b[k + 8][g] = half_of(5);
      }
    }
  }

  /// Products of columns first ... end - 1 of a row of `a` are added to the sums.
  void add(double (&sums)[8], uint32_t row, uint32_t first, uint32_t end) const {
    for (uint32_t k = first; k < end; ++k) {
      for (uint32_t column = 0; column < 8; ++column) sums[column] += a[row][k] * b[k][column];
    }
  }
};

}  // namespace

/// Words 6 to 9: the sums, which the first four words of the results become.
void multiply_warp(std::span<const host_gpu::LaneWords, 32> given, std::span<host_gpu::LaneWords, 32> results) {
  const Operands operands(given);
  for (uint32_t row = 0; row < 16; ++row) {
    const uint32_t first = row % 8 * 4, word = row / 8 * 2;  // lane, word of the results
    double sums[8];
    for (uint32_t column = 0; column < 8; ++column) {
      sums[column] = double{from_bits(given[first + column / 2].words[6 + word + column % 2])};
    }
    operands.add(sums, row, 0, 16);
    for (uint32_t column = 0; column < 8; ++column) {
      results[first + column / 2].words[word + column % 2] = bits(static_cast<float>(sums[column]));
    }
  }
}

namespace {

/// Words 6 and 7: the sums, which the first two words of the results become.
void multiply_warp_to_halves(std::span<const host_gpu::LaneWords, 32> given,
                             std::span<host_gpu::LaneWords, 32> results) {
  const Operands operands(given);
  for (uint32_t row = 0; row < 16; ++row) {
    const uint32_t first = row % 8 * 4, word = row / 8;
    double sums[8];
    for (uint32_t column = 0; column < 8; ++column) {
      const uint32_t pair = given[first + column / 2].words[6 + word];
      sums[column] = double{half_value(static_cast<uint16_t>(pair >> (column % 2 * 16)))};
    }
    for (uint32_t k = 0; k < 16; k += 8) {
      operands.add(sums, row, k, k + 8);
      for (double& sum : sums) sum = double{half_value(f32_to_f16(static_cast<float>(sum)))};
    }
    for (uint32_t q = 0; q < 4; ++q) {
      results[first + q].words[word] =
          pack_halves(static_cast<float>(sums[2 * q]), static_cast<float>(sums[2 * q + 1]));
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

void multiply_to_halves(uint32_t (&sums)[2], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  const host_gpu::LaneWords results =
      host_gpu::together({{a[0], a[1], a[2], a[3], b[0], b[1], sums[0], sums[1]}}, multiply_warp_to_halves);
  for (uint32_t i = 0; i < 2; ++i) sums[i] = results.words[i];
}

}  // namespace canopy::gpu
