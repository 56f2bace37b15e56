#pragma once
// A draft tree as rows of a pass: the tree knows no device and the rows know no tree.

#include <cstdint>
#include <span>

#include "engine/base/checked.h"
#include "engine/compute/rows.h"
#include "engine/speculation/draft_tree.h"

namespace canopy {

/// Where the K/V of a tree's nodes goes, asked for node by node in order. The root and the likeliest chain below it,
/// each node the first child of the one before, go where the text goes on: what of them is accepted need not be moved.
/// Other nodes go to slots of trees.
class TreeSlots {
 public:
  /// Behind `committed` positions of a text that has places for `end`; node i to first_slot + i - 1.
  TreeSlots(const DraftTree& tree, std::span<const uint32_t> pages, uint32_t committed, uint32_t end,
            uint32_t first_slot)
      : tree_(tree), pages_(pages), committed_(committed), end_(end), first_slot_(first_slot) {}

  uint32_t of(uint32_t node) {
    const uint32_t position = committed_ + tree_[node].depth;
    const bool continues = node == 0 || tree_[node].parent == chain_end_;
    if (node > 0 && (!continues || position >= end_)) return first_slot_ + node - 1;
    chain_end_ = node;
    return slot_of(pages_, position);
  }

 private:
  const DraftTree& tree_;
  std::span<const uint32_t> pages_;  // the page table
  uint32_t committed_, end_, first_slot_;
  uint32_t chain_end_ = 0;
};

/// Appends the tree's nodes to the pass, in order: node i becomes row (batch.width() before) + i, at position
/// committed + depth, its K/V where TreeSlots says, seeing `committed` positions and its path from the root. Throws
/// Error(bad_input) when a slot or position does not fit 32 bits; validate() checks them against the device's limits.
inline void add_tree(const DraftTree& tree, uint32_t committed, uint32_t end, uint32_t first_slot, RowBatch& batch) {
  checked_add(first_slot, tree.width(), "last slot of the draft tree");
  checked_add(committed, tree.width(), "last position of the draft tree");
  const uint32_t first_row = batch.width();
  size_t ancestors = 0;
  for (const TreeNode& node : tree.nodes()) ancestors += node.depth + 1;
  batch.rows.reserve(batch.rows.size() + tree.width());
  batch.ancestors.reserve(batch.ancestors.size() + ancestors);
  TreeSlots slots(tree, batch.pages, committed, end, first_slot);
  for (uint32_t i = 0; i < tree.width(); ++i) {
    const uint32_t parent = tree[i].parent;
    const int32_t row = parent == TreeNode::none ? -1 : static_cast<int32_t>(first_row + parent);
    batch.add_node(tree[i].token, slots.of(i), committed, row);
  }
}

}  // namespace canopy
