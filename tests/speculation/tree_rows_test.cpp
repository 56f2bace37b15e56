#include "engine/speculation/ddtree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/base/expect_error.h"

namespace canopy {
namespace {

// A random tree of any shape: the parent of a node is any node before it.
DraftTree random_tree(uint32_t width, unsigned seed) {
  std::mt19937 random(seed);
  DraftTree tree(1000);
  while (tree.width() < width) tree.add(random() % tree.width(), 1000 + tree.width(), 0, 0, 0);
  return tree;
}

/// The likeliest chain: each node the first child of the one before.
std::vector<uint32_t> likeliest_chain(const DraftTree& tree) {
  std::vector<uint32_t> chain = {0};
  for (uint32_t i = 1; i < tree.width(); ++i) {
    if (tree[i].parent == chain.back()) chain.push_back(i);
  }
  return chain;
}

uint32_t slot_of(const DraftTree& tree, uint32_t node, uint32_t committed, uint32_t end, uint32_t first_slot) {
  const uint32_t position = committed + tree[node].depth;
  const bool in_place = std::ranges::count(likeliest_chain(tree), node) > 0 && (node == 0 || position < end);
  return in_place ? position : first_slot + node - 1;
}

// The slots of the path from the root to a node.
std::vector<uint32_t> slots_to(const DraftTree& tree, uint32_t node, uint32_t committed, uint32_t end,
                               uint32_t first_slot) {
  std::vector<uint32_t> slots;
  for (;; node = tree[node].parent) {
    slots.insert(slots.begin(), slot_of(tree, node, committed, end, first_slot));
    if (node == 0) return slots;
  }
}

TEST(TreeRows, ARowANodeWithItsPathAndItsPositionByDepth) {
  constexpr uint32_t committed = 37, first_slot = 5000;
  RowBatch batch;
  for (const uint32_t width : {1u, 2u, 3u, 17u, 65u, 513u, 1025u}) {
    SCOPED_TRACE(width);
    const DraftTree tree = random_tree(width, width);
    const uint32_t end = committed + (width % 2 == 0 ? 2 : width);  // room for all of the chain, or for one node of it
    batch.clear();
    add_tree(tree, committed, end, first_slot, batch);
    ASSERT_EQ(batch.width(), width);
    for (uint32_t i = 0; i < width; ++i) {
      const Row& row = batch.rows[i];
      EXPECT_EQ(row.token, 1000 + i);
      EXPECT_EQ(row.position, committed + tree[i].depth);
      EXPECT_EQ(row.prefix, committed);
      EXPECT_EQ(row.slot, slot_of(tree, i, committed, end, first_slot));
      const auto first = batch.ancestors.begin() + row.first_ancestor;
      ASSERT_EQ(std::vector<uint32_t>(first, first + row.ancestor_count), slots_to(tree, i, committed, end, first_slot))
          << i;
    }
    EXPECT_NO_THROW(validate(batch, 1000 + width, committed + width, first_slot + width - 1));
  }
}

TEST(TreeRows, CanFollowOtherRowsOfThePass) {
  const DraftTree tree = random_tree(9, 1);
  RowBatch batch;
  batch.add_text(5, 0);
  batch.add_text(6, 1);
  add_tree(tree, 2, 20, 100, batch);
  ASSERT_EQ(batch.width(), 11u);
  for (uint32_t i = 0; i < tree.width(); ++i) {
    const Row& row = batch.rows[2 + i];
    const auto first = batch.ancestors.begin() + row.first_ancestor;
    EXPECT_EQ(std::vector<uint32_t>(first, first + row.ancestor_count), slots_to(tree, i, 2, 20, 100)) << i;
  }
  EXPECT_NO_THROW(validate(batch, 1009, 11, 108));
}

TEST(TreeRows, RefusesSlotsAndPositionsBeyond32Bits) {
  const DraftTree tree = random_tree(4, 1);
  RowBatch batch;
  test::expect_error("last slot", [&] { add_tree(tree, 0, 9, 0xFFFFFFFC, batch); });
  test::expect_error("last position", [&] { add_tree(tree, 0xFFFFFFFC, 9, 0, batch); });
  EXPECT_EQ(batch.width(), 0u);
}

}  // namespace
}  // namespace canopy
