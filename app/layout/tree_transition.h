#pragma once
// The transition from one tree to the next: a node with the same token at the same position moves, all others fade in.

#include <cstdint>
#include <vector>

#include "app/layout/tree_geometry.h"

namespace canopy::app {

inline constexpr double kTransitionSeconds = 0.2;

/// Two nodes of different rounds with the same key are the same guess: the same token at the same position of the text.
struct NodeKey {
  uint64_t position = 0;
  uint32_t token = 0;
  auto operator<=>(const NodeKey&) const = default;
};

std::vector<NodeKey> node_keys(const TreeModel& tree, uint32_t context);

/// For each node of the new tree the old node with the same key, or TreeNode::none. No old node is used twice; of
/// several with the same key those on the path come first, then those of lower index.
std::vector<uint32_t> match_nodes(const TreeModel& before, const std::vector<NodeKey>& before_keys,
                                  const TreeModel& now, const std::vector<NodeKey>& now_keys);

/// Moves the boxes of `now` towards their old places `before`; t: share of the transition that has passed, in [0, 1].
void blend(const std::vector<NodeBox>& before, const std::vector<uint32_t>& match, float t, std::vector<NodeBox>& now);

/// Cubic easing from 0 to 1, slow at both ends.
float ease_in_out(float t);
/// Cubic easing from 0 to 1, slow at the end.
float ease_out(float t);

}  // namespace canopy::app
