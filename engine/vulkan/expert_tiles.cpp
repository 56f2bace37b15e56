#include "engine/vulkan/expert_tiles.h"

namespace canopy::vk {

namespace {

// Rows of a pass from which on pairs are grouped by their expert on the processor.
constexpr uint32_t kGroupedWidth = 8;
constexpr uint32_t kLeastColumns = 16;  // of a matrix

bool are_grouped(const ExpertCounts& experts, uint32_t width, bool software) {
  return software ? width >= kGroupedWidth : experts.read_again(width) >= kEnoughReadAgain;
}

}  // namespace

PairTiles pair_tiles(const ExpertCounts& experts, uint32_t width, bool software) {
  PairTiles tiles{experts, width, 1, are_grouped(experts, width, software)};
  if (tiles.grouped) tiles.columns = !software && tiles.pairs() >= 8 * experts.all ? 8 : 4;
  return tiles;
}

PairTiles matrix_pair_tiles(const ExpertCounts& experts, uint32_t width, bool software) {
  PairTiles tiles{experts, width, 1, are_grouped(experts, width, software)};
  // Of wider tiles half would be empty.
  if (tiles.grouped) tiles.columns = tiles.pairs() >= 24 * experts.all ? 2 * kLeastColumns : kLeastColumns;
  return tiles;
}

MatrixConfig expert_matrix(uint32_t rows, uint32_t cols, const PairTiles& tiles, const MatrixShape& matrix,
                           bool software, const DeviceLimits& limits) {
  const uint32_t columns = std::max(tiles.columns, kLeastColumns);
  return choose_matrix({rows, cols, cols, columns}, matrix, columns, software, limits);
}

}  // namespace canopy::vk
