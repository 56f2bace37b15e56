#pragma once
// A draft tree as rows of a pass: the tree knows no device and the rows know no tree.

#include <cstdint>

#include "engine/base/checked.h"
#include "engine/compute/rows.h"
#include "engine/speculation/draft_tree.h"

namespace canopy {

/// Where the K/V of a node goes: the root's to its place in the text, where it stays whatever is accepted.
inline uint32_t slot_of_node(uint32_t node, uint32_t committed, uint32_t first_slot) {
  return node == 0 ? committed : first_slot + node - 1;
}

/// Appends the tree's nodes to the pass, in order: node i becomes row (batch.width() before) + i, at position
/// committed + depth, its K/V in slot_of_node(i), seeing `committed` positions and its path from the root. Throws
/// Error(bad_input) when a slot or position does not fit 32 bits; validate() checks them against the device's limits.
inline void add_tree(const DraftTree& tree, uint32_t committed, uint32_t first_slot, RowBatch& batch) {
  checked_add(first_slot, tree.width(), "last slot of the draft tree");
  checked_add(committed, tree.width(), "last position of the draft tree");
  const uint32_t first_row = batch.width();
  for (uint32_t i = 0; i < tree.width(); ++i) {
    const uint32_t parent = tree[i].parent;
    const int32_t row = parent == TreeNode::none ? -1 : static_cast<int32_t>(first_row + parent);
    batch.add_node(tree[i].token, slot_of_node(i, committed, first_slot), committed, row);
  }
}

}  // namespace canopy
