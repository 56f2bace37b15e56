#pragma once
// How the products of a mixture's experts are cut into tiles: rules alone, which change no bit of a result. What predicts
// times goes by them, too.

#include <algorithm>
#include <cstdint>

#include "engine/compute/experts.h"
#include "engine/vulkan/product_config.h"

namespace canopy::vk {

/// Pairs of a row and one of its experts, and how a product's workgroups take them: one by one, or up to `columns` of
/// one expert.
struct PairTiles {
  ExpertCounts experts;
  uint32_t width = 0;  // rows of the pass
  uint32_t columns = 1;
  bool grouped = false;

  uint32_t pairs() const { return width * experts.used; }
  /// Tiles that there are room for: at most so many experts have a last one that is not full.
  uint32_t most() const { return grouped ? std::min(pairs(), experts.all) + pairs() / columns : pairs(); }
};

/// By multiply-adds, whose tiles have a few pairs. `software`: on the processor.
PairTiles pair_tiles(const ExpertCounts& experts, uint32_t width, bool software);
/// On matrix cores, whose tiles have 16 pairs or 32, or one of them.
PairTiles matrix_pair_tiles(const ExpertCounts& experts, uint32_t width, bool software);
/// The kernel of such tiles for experts [rows, cols], which are one chunk.
MatrixConfig expert_matrix(uint32_t rows, uint32_t cols, const PairTiles& tiles, const MatrixShape& matrix,
                           bool software, const DeviceLimits& limits);

}  // namespace canopy::vk
