#pragma once
// From one tree to the next: the same guess at the same position moves, everything else fades in.

#include <cstdint>
#include <vector>

#include "app/tree/tree_geometry.h"

namespace canopy::app {

inline constexpr double kTransitionSeconds = 0.2;

/// What makes two nodes of different rounds the same: the position in the text and the token.
struct NodeKey {
  uint64_t position = 0;
  uint32_t token = 0;
  auto operator<=>(const NodeKey&) const = default;
};

std::vector<NodeKey> node_keys(const TreeModel& tree, uint32_t context);

/// For each node of the new tree the old one that it was, or TreeNode::none. No old node is taken twice; of several
/// with the same key the path's come first, then those of lower index.
std::vector<uint32_t> match_nodes(const TreeModel& before, const std::vector<NodeKey>& before_keys,
                                  const TreeModel& now, const std::vector<NodeKey>& now_keys);

/// Moves the boxes of `now` back towards where they were; t in [0, 1] of the time.
void blend(const std::vector<NodeBox>& before, const std::vector<uint32_t>& match, float t, std::vector<NodeBox>& now);

/// Cubic, slow at both ends.
float ease_in_out(float t);
/// Cubic, slow at the end.
float ease_out(float t);

}  // namespace canopy::app
