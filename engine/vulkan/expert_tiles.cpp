#include "engine/vulkan/expert_tiles.h"

#include <algorithm>

namespace canopy::vk {

namespace {

// Rows of a pass from which on pairs are grouped by their expert on the processor.
constexpr uint32_t kGroupedWidth = 8;
constexpr uint32_t kLeastMatrixColumns = 16, kLeastColumns = 4;

bool are_grouped(const ExpertShape& shape) {
  if (shape.software) return shape.width >= kGroupedWidth;
  return shape.experts.read_again(shape.width) >= kEnoughReadAgain;
}

/// Of a tile that is grouped: of wider ones half would be empty.
uint32_t columns_by_rule(const ExpertShape& shape) {
  const uint32_t pairs = shape.width * shape.experts.used;
  if (shape.matrix != nullptr) {
    return pairs >= 24 * shape.experts.all ? 2 * kLeastMatrixColumns : kLeastMatrixColumns;
  }
  return !shape.software && pairs >= 8 * shape.experts.all ? 2 * kLeastColumns : kLeastColumns;
}

/// The experts [rows, cols] are one chunk.
ProductShape product_of(const ExpertShape& shape, uint32_t columns) {
  return {shape.rows, shape.cols, shape.cols, std::max(columns, kLeastMatrixColumns)};
}

}  // namespace

std::string ExpertVariant::text() const {
  const std::string pairs = std::to_string(tiles.columns) + (tiles.columns == 1 ? " pair" : " pairs");
  return matrix ? pairs + ", " + matrix->variant().text : pairs;
}

std::vector<uint32_t> ExpertVariant::numbers() const {
  std::vector<uint32_t> numbers = {tiles.grouped ? 1u : 0u, tiles.columns};
  if (!matrix) return numbers;
  const ProductVariant variant = matrix->variant();
  numbers.push_back(variant.options.subgroup_size);
  for (const SpecConstant& constant : variant.options.spec) numbers.push_back(constant.value);
  return numbers;
}

ExpertVariant experts_in_tiles(const ExpertShape& shape, uint32_t columns, bool grouped, const DeviceLimits& limits) {
  ExpertVariant variant{{shape.experts, shape.width, grouped ? columns : 1, grouped}, std::nullopt};
  if (shape.matrix != nullptr) {
    const ProductShape product = product_of(shape, variant.tiles.columns);
    variant.matrix = choose_matrix(product, *shape.matrix, product.width, shape.software, limits);
  }
  return variant;
}

ExpertVariant choose_experts_by_rule(const ExpertShape& shape, const DeviceLimits& limits) {
  return experts_in_tiles(shape, columns_by_rule(shape), are_grouped(shape), limits);
}

std::vector<ExpertVariant> expert_candidates(const ExpertShape& shape, const DeviceLimits& limits) {
  const ExpertVariant by_rule = choose_experts_by_rule(shape, limits);
  std::vector<ExpertVariant> candidates = {by_rule};
  if (shape.width > 1) {
    candidates.push_back(experts_in_tiles(shape, columns_by_rule(shape), !by_rule.tiles.grouped, limits));
  }
  if (shape.matrix == nullptr) return candidates;
  const ProductShape product = product_of(shape, by_rule.tiles.columns);
  for (const MatrixConfig& config : matrix_candidates(product, *shape.matrix, product.width, shape.software, limits)) {
    if (!config.same_as(*by_rule.matrix)) candidates.push_back({by_rule.tiles, config});
  }
  return candidates;
}

}  // namespace canopy::vk
