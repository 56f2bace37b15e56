#include "engine/vulkan/product_config.h"

#include <algorithm>
#include <bit>

namespace canopy::vk {

namespace {

constexpr uint32_t kSlice = 256;        // columns of a weight; shaders/product_fma.glsl
constexpr uint32_t kStageBytes = 8192;  // of staged activations, so that several workgroups fit a compute unit

}  // namespace

const char* to_string(KernelFamily family) {
  switch (family) {
    case KernelFamily::texel: return "texel";
    case KernelFamily::fma: return "fma";
    case KernelFamily::matrix: return "matrix";
  }
  return "unknown";
}

std::optional<KernelFamily> kernel_family(std::string_view name) {
  for (const KernelFamily family : {KernelFamily::texel, KernelFamily::fma, KernelFamily::matrix}) {
    if (name == to_string(family)) return family;
  }
  return std::nullopt;
}

uint64_t FmaConfig::shared_bytes() const {
  const uint64_t staged = uint64_t{slices} * columns * stage * 32;
  const uint64_t sums = uint64_t{slices} * columns * tile_rows();
  const uint64_t factors = uint64_t{columns} * 33 + 1;
  const uint64_t finishing = uint64_t{columns} * (tile_rows() + tile_rows() / 8);
  return 4 * (std::max(staged, sums) + factors + finishing);
}

KernelOptions FmaConfig::options() const {
  return {{{0, columns}, {1, lanes}, {2, slices}, {3, rows}, {4, stage}}, 0};
}

FmaConfig choose_fma(uint32_t width, uint32_t chunk_columns, uint32_t max_columns, bool software,
                     const DeviceLimits& limits) {
  FmaConfig config;
  config.columns = std::bit_floor(std::min({std::bit_ceil(width), max_columns, kMostFmaColumns}));
  const uint32_t slices = (chunk_columns + kSlice - 1) / kSlice;
  config.slices = software ? 1 : std::bit_floor(std::min({slices, 4u, limits.max_invocations / config.lanes}));
  while (config.slices > 1 && !config.fits(limits)) config.slices /= 2;
  config.stage = std::clamp(kStageBytes / (config.slices * config.columns * 128), 1u, 8u);
  config.stage = std::bit_floor(config.stage);
  return config;
}

}  // namespace canopy::vk
