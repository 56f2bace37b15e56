#include "engine/speculation/ddtree.h"

#include <gtest/gtest.h>

#include "tests/base/expect_error.h"

namespace canopy {
namespace {

using Ids = std::vector<uint32_t>;
using test::expect_error;

// 7 -> 1 -> 1 -> 3
//   \    \> 2
//    -> 2 -> 1
DraftTree small_tree() {
  DraftTree tree(7);
  tree.add(0, 1, 0, -0.5, -0.5);
  tree.add(1, 1, 0, -0.5, -1.0);
  tree.add(0, 2, 1, -1.5, -1.5);
  tree.add(1, 2, 1, -1.5, -2.0);
  tree.add(2, 3, 0, -1.5, -2.5);
  tree.add(3, 1, 0, -1.5, -3.0);
  return tree;
}

AcceptedPath walked(const DraftTree& tree, const Ids& choices) {
  AcceptedPath path;
  accept(
      tree, [&](uint32_t node) { return choices[node]; }, path);
  return path;
}

TEST(DraftTree, IsARootAtFirstAndAfterReset) {
  DraftTree tree;
  EXPECT_EQ(tree.width(), 1u);
  tree = small_tree();
  EXPECT_EQ(tree.width(), 7u);
  EXPECT_EQ(tree.drafted(), 6u);
  tree.reset(9);
  EXPECT_EQ(tree.width(), 1u);
  EXPECT_EQ(tree.drafted(), 0u);
  EXPECT_EQ(tree[0].token, 9u);
  EXPECT_EQ(tree[0].parent, TreeNode::none);
  EXPECT_EQ(tree[0].depth, 0u);
  EXPECT_EQ(tree[0].score, 0.0);
}

TEST(DraftTree, KnowsDepthsAndChildren) {
  const DraftTree tree = small_tree();
  Ids depths;
  for (const TreeNode& node : tree.nodes()) depths.push_back(node.depth);
  EXPECT_EQ(depths, (Ids{0, 1, 2, 1, 2, 3, 2}));
  EXPECT_EQ(tree.child(0, 1), 1u);
  EXPECT_EQ(tree.child(0, 2), 3u);
  EXPECT_EQ(tree.child(1, 2), 4u);
  EXPECT_EQ(tree.child(3, 1), 6u) << "not the child 1 of another node";
  EXPECT_EQ(tree.child(0, 3), TreeNode::none) << "a grandchild's token";
  EXPECT_EQ(tree.child(6, 1), TreeNode::none);
}

TEST(DraftTree, AnyFirstPartIsATree) {
  DraftTree tree = small_tree();
  tree.cut(4);
  EXPECT_EQ(tree.width(), 4u);
  EXPECT_EQ(tree.child(0, 2), 3u);
  EXPECT_EQ(tree.child(1, 2), TreeNode::none);
  tree.cut(1);
  EXPECT_EQ(tree.drafted(), 0u);
  expect_error("cannot be cut to width 2; allowed: 1 to 1", [&] { tree.cut(2); });
  expect_error("cannot be cut to width 0", [&] { tree.cut(0); });
  expect_error("no node 1 to add a child to", [&] { tree.add(1, 0, 0, 0, 0); });
  expect_error("no node 4294967295", [&] { tree.add(TreeNode::none, 0, 0, 0, 0); });
}

TEST(Walk, FollowsTheTargetAsFarAsTheTreeGoes) {
  const DraftTree tree = small_tree();
  AcceptedPath path = walked(tree, {1, 2, 0, 0, 5, 0, 0});
  EXPECT_EQ(path.nodes, (Ids{0, 1, 4}));
  EXPECT_EQ(path.bonus, 5u);
  EXPECT_EQ(path.accepted(), 2u);
  EXPECT_EQ(path.emitted(), 3u);
  path = walked(tree, {2, 0, 0, 1, 0, 0, 1});
  EXPECT_EQ(path.nodes, (Ids{0, 3, 6}));
  EXPECT_EQ(path.bonus, 1u) << "at a leaf whatever the target says is the bonus";
}

TEST(Walk, ARootAloneAndAMissAtOnceEmitTheBonusOnly) {
  for (const DraftTree& tree : {DraftTree(7), small_tree()}) {
    const AcceptedPath path = walked(tree, Ids(tree.width(), 3));
    EXPECT_EQ(path.nodes, Ids{0});
    EXPECT_EQ(path.bonus, 3u);
    EXPECT_EQ(path.emitted(), 1u);
  }
}

TEST(Walk, AsksOnceANodeInOrderWithThePathKnown) {
  const DraftTree tree = small_tree();
  AcceptedPath path;
  path.nodes = {0, 5, 5, 5};  // left from the round before
  std::vector<Ids> asked;
  const Ids choices = {1, 1, 3, 0, 0, 4, 0};
  const auto choose = [&](uint32_t node) {
    asked.push_back(path.nodes);
    EXPECT_EQ(path.nodes.back(), node);
    return choices[node];
  };
  accept(tree, choose, path);
  EXPECT_EQ(asked, (std::vector<Ids>{{0}, {0, 1}, {0, 1, 2}, {0, 1, 2, 5}}));
  EXPECT_EQ(path.bonus, 4u);
}

}  // namespace
}  // namespace canopy
