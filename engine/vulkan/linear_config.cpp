#include "engine/vulkan/linear_config.h"

#include "engine/vulkan/weight_layout.h"
#include "engine/vulkan/word_layout.h"

namespace canopy::vk {

KernelOptions linear_options(const LinearConfig& config, WeightType type, uint32_t n, bool ragged, bool quads) {
  uint32_t unroll = 1;
  const uint32_t quads_per_unit = word_format(type) != nullptr ? 1 : columns_per_unit(type) / 4;
  if (word_format(type) != nullptr && 32 * n * config.rows <= config.body) unroll = 4;  // quads of both halves
  for (const uint32_t quads : {quads_per_unit, 4u}) {
    if (quads <= quads_per_unit && unroll == 1 && 4 * quads * n * config.rows <= config.body) unroll = quads;
  }
  return {{{0, n}, {1, config.rows}, {2, config.lanes}, {4, unroll}, {6, ragged ? 1u : 0u}, {7, quads ? 1u : 0u}}, 0};
}

std::vector<LinearConfig> linear_candidates(uint32_t columns) {
  // Measured on llvmpipe: more than 16 sums do not stay in its registers and its first 4 KiB of stack.
  if (columns > 2) return {{4, 8}};
  return {{8, 8}, {4, 8}};
}

}  // namespace canopy::vk
