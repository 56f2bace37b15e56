// Slow motion and transitions: what is visible at each moment.

#include "app/tree/tree_look.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/app/tree/tree_samples.h"

namespace canopy::test {
namespace {

using app::Phase;
using app::TreeModel;
using app::TreeReveal;

constexpr Phase kAll[] = {Phase::fill, Phase::insert, Phase::verify, Phase::walk, Phase::bonus, Phase::commit};

TreeModel some_tree(uint32_t width = 120) {
  std::mt19937 random(21);
  return app::tree_model(random_round(random, width, 0.5));
}

// gui.md, criterion 14: the drafter's pass fills all positions together, never one depth before another
TEST(SlowMotion, AllDraftPositionsFillTogether) {
  const TreeModel tree = some_tree();
  EXPECT_EQ(app::draft_positions(tree).size(), app::draft_positions(tree).size());
  float before = -1;
  for (float t = 0; t <= 1; t += 0.05f) {
    const TreeReveal r = app::reveal(tree, Phase::fill, t);
    EXPECT_TRUE(r.draft_shown);
    EXPECT_GE(r.filled, before);  // one number for all depths
    before = r.filled;
    for (uint32_t i = 1; i < tree.size(); ++i) ASSERT_EQ(r.nodes[i].shown, 0) << "a node before the tree is built";
  }
  for (const auto& position : app::draft_positions(tree)) {
    ASSERT_FALSE(position.empty());
    EXPECT_EQ(tree.nodes[position.front()].rank, 0u);
  }
}

// gui.md, criterion 14: nodes come in the order of the record, which is best first
TEST(SlowMotion, NodesComeInInTheOrderOfInsertion) {
  const TreeModel tree = some_tree();
  std::set<uint32_t> there;
  for (float t = 0; t <= 1.0001f; t += 0.01f) {
    const TreeReveal r = app::reveal(tree, Phase::insert, t);
    for (uint32_t i = 2; i < tree.size() - 1; ++i) ASSERT_LE(r.nodes[i].shown, r.nodes[i - 1].shown) << i;
    for (uint32_t i = 1; i < tree.size(); ++i) {
      if (there.contains(i)) {
        ASSERT_GT(r.nodes[i].shown, 0) << "it was there before";
      }
      if (r.nodes[i].shown > 0) there.insert(i);
      ASSERT_FALSE(r.nodes[i].judged) << "nothing is known before the pass";
    }
  }
  EXPECT_EQ(there.size(), tree.size() - 2) << "all but the root and the bonus";
}

TEST(SlowMotion, TheWholeTreeIsVerifiedAtOnce) {
  const TreeModel tree = some_tree();
  for (float t = 0; t <= 1; t += 0.1f) {
    const TreeReveal r = app::reveal(tree, Phase::verify, t);
    EXPECT_FLOAT_EQ(r.verified, t);  // one number for all nodes
    for (uint32_t i = 1; i < tree.size() - 1; ++i) ASSERT_EQ(r.nodes[i].shown, 1);
  }
}

TEST(SlowMotion, TheWalkJudgesFromTheRootOn) {
  const TreeModel tree = app::tree_model(small_round());
  const TreeReveal start = app::reveal(tree, Phase::walk, 0);
  EXPECT_EQ(start.walker, 0u);
  for (uint32_t i = 1; i < 8; ++i) EXPECT_FALSE(start.nodes[i].judged) << i;
  const TreeReveal first = app::reveal(tree, Phase::walk, 0.32f);
  EXPECT_EQ(first.walker, 0u);
  EXPECT_NEAR(first.nodes[3].lit, 0.96f, 1e-3f);
  EXPECT_LT(first.nodes[1].width, 0.6f) << "what was decided against withers";
  EXPECT_FLOAT_EQ(first.nodes[2].width, first.nodes[1].width) << "with all that hangs on it";
  for (const uint32_t known : {1u, 2u, 3u, 7u}) EXPECT_TRUE(first.nodes[known].judged) << known;
  for (const uint32_t unknown : {4u, 5u, 6u}) EXPECT_FALSE(first.nodes[unknown].judged) << unknown;
  const TreeReveal end = app::reveal(tree, Phase::walk, 1);
  EXPECT_EQ(end.walker, 6u);
  for (uint32_t i = 1; i < 8; ++i) EXPECT_TRUE(end.nodes[i].judged) << i;
  EXPECT_EQ(end.nodes[8].shown, 0) << "the bonus comes after the walk";
}

TEST(SlowMotion, EndsWithTheWholeSight) {
  const TreeModel tree = some_tree();
  EXPECT_TRUE(app::reveal(tree, Phase::commit, 1).whole);
  for (const app::NodeReveal& node : app::reveal(tree, Phase::commit, 1).nodes) {
    EXPECT_EQ(node.shown, 1);
    EXPECT_EQ(node.strength, 1);
    EXPECT_TRUE(node.judged);
  }
  EXPECT_FLOAT_EQ(app::reveal(tree, Phase::bonus, 0.5f).nodes[*tree.bonus].shown, 0.5f);
}

TEST(SlowMotion, WhatIsShownOnlyGrowsFromPhaseToPhase) {
  const TreeModel tree = some_tree();
  size_t shown = 0, judged = 0;
  for (const Phase phase : kAll) {
    const TreeReveal r = app::reveal(tree, phase, 1);
    const auto is_shown = [](const app::NodeReveal& n) { return n.shown > 0; };
    const auto is_judged = [](const app::NodeReveal& n) { return n.judged; };
    const size_t now_shown = static_cast<size_t>(std::count_if(r.nodes.begin(), r.nodes.end(), is_shown));
    const size_t now_judged = static_cast<size_t>(std::count_if(r.nodes.begin(), r.nodes.end(), is_judged));
    EXPECT_GE(now_shown, shown);
    EXPECT_GE(now_judged, judged);
    shown = now_shown;
    judged = now_judged;
  }
  EXPECT_EQ(shown, tree.size());
  EXPECT_EQ(judged, tree.size());
}

TEST(SlowMotion, GoesThroughPlainRoundsToo) {
  RoundRecord plain;
  plain.emitted = {4};
  const TreeModel tree = app::tree_model(plain, 3);
  for (const Phase phase : kAll)
    for (const float t : {0.0f, 0.5f, 1.0f}) EXPECT_EQ(app::reveal(tree, phase, t).nodes.size(), 2u);
}

TEST(SlowMotion, TheDraftPhaseHasOnlyWhatTheDrafterGuessed) {
  const TreeModel tree = app::tree_model(found_round());
  const auto positions = app::draft_positions(tree);
  ASSERT_EQ(positions.size(), 3u);
  EXPECT_EQ(positions[0], (std::vector<uint32_t>{1, 3, 7}));
  EXPECT_EQ(positions[1], (std::vector<uint32_t>{2}));
  EXPECT_EQ(positions[2], (std::vector<uint32_t>{5}));
  EXPECT_TRUE(app::draft_positions(app::tree_model(text_round())).empty());
}

TEST(SlowMotion, SaysWhereTheGuessesComeFrom) {
  const TreeModel drafted = app::tree_model(small_round()), both = app::tree_model(found_round()),
                  text = app::tree_model(text_round());
  for (const Phase phase : kAll) EXPECT_EQ(app::phase_sentence(phase, 3, drafted), app::phase_sentence(phase, 3));
  EXPECT_NE(app::phase_sentence(Phase::fill, 3, both).find("The text adds"), std::string::npos);
  EXPECT_EQ(app::phase_sentence(Phase::insert, 3, both), app::phase_sentence(Phase::insert, 3));
  EXPECT_EQ(app::phase_sentence(Phase::insert, 3, text),
            "The last 14 tokens of the text were written before: what followed then is guessed again, the likeliest "
            "first. No drafter is asked.");
  for (const Phase phase : kAll)
    EXPECT_EQ(app::phase_sentence(phase, 3, text).find("drafter guesses"), std::string::npos);
}

TEST(PillShape, TellsWhoProposedAWord) {
  const TreeModel tree = app::tree_model(found_round());
  const auto round = [&](uint32_t node) { return app::pill_round(tree.nodes[node], 20); };
  EXPECT_GT(round(1), 0) << "the drafter";
  EXPECT_FALSE(app::is_found(tree.nodes[1]));
  EXPECT_GT(round(3), 0) << "both";
  EXPECT_TRUE(app::is_found(tree.nodes[3]));
  EXPECT_EQ(round(4), 0) << "the text alone";
  EXPECT_TRUE(app::is_found(tree.nodes[4]));
  EXPECT_GT(round(0), 0) << "nobody";
  EXPECT_FALSE(app::is_found(tree.nodes[*tree.bonus]));
  // It stays within the margin right of the word.
  for (const float height : {12.0f, 18.0f, 23.0f, 46.0f})
    EXPECT_LE(app::found_corner(height, height / 23), app::tree_design::pad_right * height / 23);
  EXPECT_LE(app::found_corner(13.5f, 1), app::tree_design::pad_right);
}

// ---- from round to round --------------------------------------------------------------------------------------------

TEST(TreeTransition, TheBonusBecomesTheNextRoot) {
  const TreeModel before = app::tree_model(small_round());
  RoundRecord next = sample_round({{0, 50, 0, .6}, {0, 51, 1, .3}}, {50, 7});
  next.nodes[0].node.token = 99;
  next.context = 503;
  const TreeModel now = app::tree_model(next);
  const auto match = app::match_nodes(before, app::node_keys(before, 500), now, app::node_keys(now, next.context));
  EXPECT_EQ(match[0], *before.bonus);
  EXPECT_EQ(match[1], TreeNode::none);
}

TEST(TreeTransition, ATreeMatchesItselfNodeByNode) {
  const TreeModel tree = some_tree();
  const auto keys = app::node_keys(tree, 500);
  const auto match = app::match_nodes(tree, keys, tree, keys);
  std::set<uint32_t> taken(match.begin(), match.end());
  EXPECT_EQ(taken.size(), tree.size()) << "no node is taken twice";
  for (const uint32_t node : tree.path) EXPECT_EQ(match[node], node);
}

TEST(TreeTransition, MovesFromThereToHere) {
  const std::vector<app::NodeBox> before = {{10, 20}};
  for (const auto& [t, x] : {std::pair(0.0f, 10.0f), std::pair(0.5f, 60.0f), std::pair(1.0f, 110.0f)}) {
    std::vector<app::NodeBox> now = {{110, 20}, {5, 5}};
    app::blend(before, {0, TreeNode::none}, t, now);
    EXPECT_NEAR(now[0].x, x, 1e-3);
    EXPECT_EQ(now[1].x, 5) << "what is new does not move";
  }
}

}  // namespace
}  // namespace canopy::test
