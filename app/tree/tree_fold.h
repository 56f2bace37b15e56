#pragma once
// A tree too large to draw node by node: its path, and what was rejected beside it folded into wedges.

#include <cstdint>
#include <vector>

#include "app/tree/tree_model.h"

namespace canopy::app {

/// Rejected children of one node of the path with everything below them, either those that the drafter held likelier
/// than the accepted child or those behind it.
struct TreeWedge {
  uint32_t parent = 0;             // on the path
  bool likelier = true;            // before the accepted rank: drawn above the path
  uint32_t nodes = 0;              // folded, all depths
  double q = 0;                    // sum of the drafter's probabilities of the rejected children: at most 1
  std::vector<uint32_t> children;  // the rejected ones, by rank
};

/// Wedges by depth, the likelier ones first. Their nodes are exactly those that were not taken. Behind the last drafted
/// node of the path all are likelier: the bonus was not drafted.
std::vector<TreeWedge> fold_rejected(const TreeModel& tree);

}  // namespace canopy::app
