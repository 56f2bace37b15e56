#include "engine/speculation/ddtree.h"

#include <gtest/gtest.h>

#include <cmath>

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

TEST(GivenRates, AreReadAndWrittenAndRefused) {
  EXPECT_EQ(parse_accept_rates("0.8,0.7,0.6"), (std::vector<double>{0.8, 0.7, 0.6}));
  EXPECT_EQ(parse_accept_rates("1"), std::vector<double>{1});
  EXPECT_EQ(list_of(parse_accept_rates("0.25,1,0")), "0.25,1,0");
  for (const char* list : {"", "0.5,", "1.5", "-0.1", "nan", "inf", "0.5 0.5", "high", "0x1"}) {
    SCOPED_TRACE(list);
    expect_error("is no rate of acceptance; allowed: numbers from 0 to 1", [&] { parse_accept_rates(list); });
  }
  expect_error("'1.5' is no rate", [&] { parse_accept_rates("0.5,1.5"); });
  std::string many = "0.5";
  for (size_t i = 1; i < kMostAcceptRates; ++i) many += ",0.5";
  EXPECT_EQ(parse_accept_rates(many).size(), kMostAcceptRates);
  expect_error("There are 65 rates", [&] { parse_accept_rates(many + ",0.5"); });
}

TEST(GivenRates, DrawsAreThoseOfThePlaceAndEven) {
  EXPECT_EQ(accept_draw(3, 1, 20), accept_draw(3, 1, 20));
  EXPECT_NE(accept_draw(3, 1, 20), accept_draw(4, 1, 20));
  EXPECT_NE(accept_draw(3, 1, 20), accept_draw(3, 2, 20));
  constexpr int draws = 20'000;
  int below = 0;
  for (int place = 0; place < draws; ++place) {
    const double draw = accept_draw(1, 0, static_cast<uint64_t>(place));
    EXPECT_TRUE(draw >= 0 && draw < 1);
    below += draw < 0.3 ? 1 : 0;
  }
  EXPECT_NEAR(below, 0.3 * draws, 5 * std::sqrt(0.3 * 0.7 * draws));
}

AcceptedPath walked_by_rates(const DraftTree& tree, const Ids& own, std::span<const double> rates, double draw) {
  AcceptedPath path;
  accept(
      tree, [&](uint32_t node) { return token_by_rates(tree, node, own[node], rates, draw, 10, Ids{8}); }, path);
  return path;
}

TEST(GivenRates, TheWalkTakesFirstChildrenAndNoOthers) {
  const DraftTree tree = small_tree();
  const Ids own = {2, 9, 9, 9, 9, 9, 9};
  AcceptedPath path = walked_by_rates(tree, own, std::vector<double>{1}, 0.5);
  EXPECT_EQ(path.nodes, (Ids{0, 1, 2, 5})) << "whatever the target says";
  EXPECT_EQ(path.bonus, 9u) << "a leaf emits the target's own token";
  path = walked_by_rates(tree, own, std::vector<double>{1, 0.4}, 0.5);
  EXPECT_EQ(path.nodes, (Ids{0, 1})) << "the last rate is that of deeper depths";
  EXPECT_EQ(path.bonus, 9u);
  path = walked_by_rates(tree, own, std::vector<double>{0}, 0);
  EXPECT_EQ(path.nodes, Ids{0}) << "the target's own token is a child's: it is not followed";
  EXPECT_EQ(path.bonus, 3u);
}

TEST(GivenRates, ATokenInPlaceOfTheTargetsOwnEndsNoReply) {
  DraftTree tree(1);
  tree.add(0, 7, 0, -0.5, -0.5);
  const std::vector<double> never = {0};
  EXPECT_EQ(token_by_rates(tree, 0, 7, never, 0.5, 10, Ids{8}), 9u) << "8 is a stop";
  EXPECT_EQ(token_by_rates(tree, 0, 7, never, 0.5, 8, Ids{0}), 1u) << "behind the last id comes the first";
  EXPECT_EQ(token_by_rates(tree, 0, 8, never, 0.5, 10, Ids{8}), 8u) << "the target's own end stands";
  EXPECT_EQ(token_by_rates(tree, 1, 7, never, 0.5, 10, Ids{8}), 7u) << "no child of it carries 7";
}

}  // namespace
}  // namespace canopy
