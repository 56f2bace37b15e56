#include "engine/speculation/acceptance.h"

#include <gtest/gtest.h>

#include "engine/speculation/tree_builder.h"
#include "tests/base/expect_error.h"
#include "tests/speculation/draft_candidates.h"

namespace canopy {
namespace {

using test::expect_error;

constexpr uint32_t ledger_vocab = 40;
constexpr uint32_t depths = 5;

/// Tokens that a round would accept of `tree` if the text after the root were `truth`.
uint32_t walked(const DraftTree& tree, const std::vector<uint32_t>& truth) {
  AcceptedPath path;
  accept(
      tree, [&](uint32_t node) { return tree[node].depth < truth.size() ? truth[tree[node].depth] : ledger_vocab; },
      path);
  return path.accepted();
}

/// A text that agrees with the drafter more often than not.
std::vector<uint32_t> text_like(const test::Candidates& candidates, std::mt19937& random) {
  std::vector<uint32_t> truth;
  for (uint32_t depth = 1; depth <= depths; ++depth) {
    const auto ranks = candidates.at(depth).tokens;
    truth.push_back(ranks[std::geometric_distribution<uint32_t>(0.5)(random) % ranks.size()]);
  }
  return truth;
}

TEST(AcceptanceLedger, SaysOfEveryWidthWhatTheWalkWouldHaveAccepted) {
  std::mt19937 random(1);
  uint32_t deepest = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    const test::Candidates candidates(test::random_rows(size_t{ledger_vocab} * depths, seed, 2.5f), ledger_vocab,
                                      ledger_vocab);
    TreeBuilder builder;
    builder.begin(1, candidates.all(), ledger_vocab);
    builder.build(60);
    const DraftTree whole = builder.tree();
    const auto truth = text_like(candidates, random);

    AcceptanceLedger ledger;
    ledger.add(whole, candidates.all(), {});
    std::vector<DraftOutcome> settled;
    ledger.follow(truth, [&](const DraftOutcome& outcome) { settled.push_back(outcome); });
    ASSERT_EQ(settled.size(), 1u);
    for (uint32_t width = 1; width <= whole.width(); ++width) {
      DraftTree cut = whole;
      cut.cut(width);
      EXPECT_EQ(settled[0].accepted(width), walked(cut, truth)) << "seed " << seed << ", width " << width;
      deepest = std::max(deepest, settled[0].accepted(width));
    }
    for (uint32_t length = 1; length <= depths; ++length) {
      builder.build_chain(length);
      EXPECT_EQ(settled[0].chain_accepted(length), walked(builder.tree(), truth)) << "seed " << seed;
    }
    for (uint32_t depth = 1; depth <= depths; ++depth) {
      EXPECT_EQ(candidates.at(depth).tokens[settled[0].ranks[depth - 1]], truth[depth - 1]);
    }
  }
  EXPECT_GE(deepest, 3u) << "nothing was accepted, so nothing was compared";
}

TEST(AcceptanceLedger, PromisesAreTheSumsOfPathProbabilities) {
  const test::Candidates candidates(test::random_rows(size_t{ledger_vocab} * 2, 3, 2.0f), ledger_vocab, 10);
  const std::vector<DepthCalibration> calibration = {{0.5, -0.1}, {0.8, 0}};
  TreeBuilder builder;
  builder.begin(1, candidates.all(), 10, calibration);
  builder.build(6);
  AcceptanceLedger ledger;
  ledger.add(builder.tree(), candidates.all(), calibration);
  const DraftOutcome& promised = ledger.newest();
  ASSERT_EQ(promised.built(), 7u);
  ASSERT_EQ(promised.depths(), 2u);
  double by_score = 0, by_drafter = 0;
  for (uint32_t i = 1; i < 7; ++i) {
    const TreeNode& node = builder.tree()[i];
    by_score += std::exp(node.score);
    by_drafter += std::exp(node.log_q + (node.depth == 2 ? builder.tree()[node.parent].log_q : 0));
    EXPECT_DOUBLE_EQ(promised.predicted[i], by_score);
    EXPECT_DOUBLE_EQ(promised.raw[i], by_drafter);
  }
  builder.build_chain(2);
  EXPECT_DOUBLE_EQ(promised.chain_predicted[0], std::exp(builder.tree()[1].score));
  EXPECT_DOUBLE_EQ(promised.chain_predicted[1], std::exp(builder.tree()[1].score) + std::exp(builder.tree()[2].score));
  EXPECT_EQ(promised.listed, 8u);
}

TEST(AcceptanceLedger, SettlesDraftsInOrderOnceAllTheirDepthsAreKnown) {
  const test::Candidates candidates(test::random_rows(size_t{ledger_vocab} * 3, 4, 2.0f), ledger_vocab, 8);
  AcceptanceLedger ledger;
  TreeBuilder builder;
  std::vector<uint32_t> built;
  const auto add = [&](uint32_t budget) {
    builder.begin(1, candidates.all(), 8);
    builder.build(budget);
    ledger.add(builder.tree(), candidates.all(), {});
  };
  const auto follow = [&](std::vector<uint32_t> tokens) {
    ledger.follow(tokens, [&](const DraftOutcome& outcome) { built.push_back(outcome.built()); });
  };
  add(4);
  follow({99, 99});  // wrong from the first token on, and yet it must wait for the rest
  EXPECT_TRUE(built.empty());
  add(5);
  follow({99});
  EXPECT_EQ(built, (std::vector<uint32_t>{5}));
  add(6);
  EXPECT_EQ(ledger.waiting(), 2u);
  follow({99, 99, 99, 99});
  EXPECT_EQ(built, (std::vector<uint32_t>{5, 6, 7}));
  add(3);
  ledger.clear();
  follow({99, 99, 99});
  EXPECT_EQ(built.size(), 3u);
}

TEST(AcceptanceLedger, KnowsTokensThatWereNoCandidates) {
  const test::Candidates candidates(test::random_rows(size_t{ledger_vocab} * 2, 5, 2.0f), ledger_vocab, 4);
  TreeBuilder builder;
  builder.begin(1, candidates.all(), 4);
  builder.build(4);
  AcceptanceLedger ledger;
  ledger.add(builder.tree(), candidates.all(), {});
  const std::vector<uint32_t> truth = {candidates.at(1).tokens[0], 1000};
  ledger.follow(truth, [](const DraftOutcome& outcome) {
    EXPECT_EQ(outcome.ranks, (std::vector<uint32_t>{0, DraftOutcome::no_rank}));
    EXPECT_EQ(outcome.chain, 1u);
    EXPECT_EQ(outcome.listed, 4u);
  });
  EXPECT_EQ(ledger.waiting(), 0u);
}

/// Behind a path that a draft made token by token went on with, its own candidates are judged.
TEST(AcceptanceLedger, FollowsTheTruePathThroughTheListsOfADraftMadeTokenByToken) {
  const test::Candidates candidates(test::random_rows(size_t{ledger_vocab} * 4, 8, 2.0f), ledger_vocab, 4);
  // Behind the root, its likeliest token, its second, and that one's third.
  const std::vector<uint32_t> behind = {BlockDraft::none, 0, 1, 2 * 4 + 2};
  const std::vector<DepthCandidates> lists = candidates.all();
  const std::vector<DepthCalibration> calibration(3);
  DraftTree tree(9);
  tree.add(0, lists[0].tokens[1], 1, std::log(0.3), std::log(0.3), kFromDraft);
  AcceptanceLedger ledger;
  ledger.add(tree, lists, calibration, behind);
  EXPECT_EQ(ledger.newest().depths(), 2u) << "the likeliest path has two lists";
  const std::vector<uint32_t> truth = {lists[0].tokens[1], lists[2].tokens[2], lists[3].tokens[0]};
  size_t settled = 0;
  ledger.follow(truth, [&](const DraftOutcome& outcome) {
    ++settled;
    EXPECT_EQ(outcome.ranks, (std::vector<uint32_t>{1, 2, 0}));
    EXPECT_EQ(outcome.chain, 0u);
    ASSERT_EQ(outcome.log_q.size(), 12u);
    EXPECT_FLOAT_EQ(outcome.log_q[4], static_cast<float>(lists[2].logits[0] - lists[2].log_sum_exp));
    EXPECT_FLOAT_EQ(outcome.log_q[11], static_cast<float>(lists[3].logits[3] - lists[3].log_sum_exp));
    EXPECT_EQ(outcome.accepted(2), 1u);
    DepthCalibrator calibrator(3);
    calibrator.learn(outcome);
    EXPECT_FALSE(calibrator.reliability(3).empty());
  });
  EXPECT_EQ(settled, 1u);
  ledger.add(tree, lists, calibration, behind);
  ledger.follow(std::vector<uint32_t>{lists[0].tokens[0], 1000, 7}, [&](const DraftOutcome& outcome) {
    EXPECT_EQ(outcome.ranks, (std::vector<uint32_t>{0, DraftOutcome::no_rank})) << "and nothing is known behind that";
    EXPECT_EQ(outcome.chain, 1u);
  });
  const std::vector<DepthCalibration> two(2);
  expect_error("calibrations for 2 depths", [&] { ledger.add(tree, lists, two, behind); });
}

TEST(AcceptanceLedger, RefusesWhatDoesNotFitTogether) {
  const test::Candidates candidates(test::random_rows(size_t{ledger_vocab} * 2, 6, 2.0f), ledger_vocab, 4);
  TreeBuilder builder;
  builder.begin(1, candidates.all(), 4);
  builder.build_chain(2);
  AcceptanceLedger ledger;
  const std::vector<DepthCandidates> one = {candidates.at(1)};
  expect_error("only 1 depths are drafted", [&] { ledger.add(builder.tree(), one, {}); });
  const std::vector<DepthCalibration> three(3);
  expect_error("calibrations for 3 depths", [&] { ledger.add(builder.tree(), candidates.all(), three); });
  EXPECT_EQ(ledger.waiting(), 0u);
}

}  // namespace
}  // namespace canopy
