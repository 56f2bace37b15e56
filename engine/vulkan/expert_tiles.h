#pragma once
// How the products of a mixture's experts are cut into tiles. None of it changes a bit of a result. What predicts times
// goes by the rules here, too.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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
  /// Tiles that there is room for.
  uint32_t most() const { return grouped ? experts.most_tiles(pairs(), columns) : pairs(); }
};

/// What a product with experts is computed by: by multiply-adds, whose tiles have a few pairs, or on matrix cores,
/// whose tiles have 16 pairs or 32, or one of them.
struct ExpertVariant {
  PairTiles tiles;
  std::optional<MatrixConfig> matrix;  // nothing: multiply-adds

  /// "16 pairs, 4 subgroups, ...", "1 pair"
  std::string text() const;
  std::vector<uint32_t> numbers() const;
};

/// What variants are chosen for.
struct ExpertShape {
  ExpertCounts experts;
  uint32_t rows = 0;  // of an expert's weight
  uint32_t cols = 0;
  uint32_t width = 0;                   // rows of the pass
  const MatrixShape* matrix = nullptr;  // null: multiply-adds
  bool software = false;                // on the processor
};

/// The variant without a measurement.
ExpertVariant choose_experts_by_rule(const ExpertShape& shape, const DeviceLimits& limits);
/// With tiles that are given, or were made for another op.
ExpertVariant experts_in_tiles(const ExpertShape& shape, uint32_t columns, bool grouped, const DeviceLimits& limits);
/// The variants among which timing chooses: the one by rule first, then the other way to take pairs, and on matrix
/// cores other kernels for the tiles by rule.
std::vector<ExpertVariant> expert_candidates(const ExpertShape& shape, const DeviceLimits& limits);

}  // namespace canopy::vk
