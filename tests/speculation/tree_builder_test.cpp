#include "engine/speculation/tree_builder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "tests/base/expect_error.h"
#include "tests/speculation/draft_candidates.h"

namespace canopy {
namespace {

using test::Candidates;
using test::expect_error;
using Ids = std::vector<uint32_t>;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// A path given by its ranks, with its tokens and score.
struct Path {
  Ids ranks, tokens;
  double score = 0;
};

bool operator==(const Path& a, const Path& b) {
  return a.ranks == b.ranks && a.tokens == b.tokens && a.score == b.score;
}

void PrintTo(const Path& path, std::ostream* out) {
  *out << testing::PrintToString(path.ranks) << " " << path.score;
}

// All possible paths by the definition: the most probable first, equal ones by their ranks.
std::vector<Path> all_paths(const Candidates& candidates, const std::vector<DepthCalibration>& calibration = {}) {
  std::vector<Path> paths;
  const std::function<void(const Path&)> grow = [&](const Path& path) {
    const auto depth = static_cast<uint32_t>(path.ranks.size() + 1);
    if (depth > candidates.depths()) return;
    const DepthCandidates at = candidates.at(depth);
    const DepthCalibration fit = calibration.empty() ? DepthCalibration{} : calibration[depth - 1];
    for (uint32_t rank = 0; rank < at.tokens.size(); ++rank) {
      const double log_q = std::min(0.0, at.logits[rank] - at.log_sum_exp);
      Path next = path;
      next.ranks.push_back(rank);
      next.tokens.push_back(at.tokens[rank]);
      next.score += std::min(0.0, fit.scale * log_q + fit.shift);
      paths.push_back(next);
      grow(next);
    }
  };
  grow({});
  std::sort(paths.begin(), paths.end(),
            [](const Path& a, const Path& b) { return a.score != b.score ? a.score > b.score : a.ranks < b.ranks; });
  return paths;
}

// The paths of a tree in its order, each read from the node upwards. Checks that parents come first.
std::vector<Path> paths_of(const DraftTree& tree) {
  std::vector<Path> paths;
  for (uint32_t i = 1; i < tree.width(); ++i) {
    Path path;
    path.score = tree[i].score;
    for (uint32_t node = i; node != 0; node = tree[node].parent) {
      path.ranks.insert(path.ranks.begin(), tree[node].rank);
      path.tokens.insert(path.tokens.begin(), tree[node].token);
      EXPECT_LT(tree[node].parent, node) << "a parent comes before its children";
      EXPECT_EQ(tree[node].depth, tree[tree[node].parent].depth + 1);
    }
    paths.push_back(path);
  }
  return paths;
}

std::vector<Path> first(const std::vector<Path>& paths, size_t count) {
  return {paths.begin(), paths.begin() + static_cast<ptrdiff_t>(std::min(count, paths.size()))};
}

// Logits with few different values, so that many paths are equally probable.
std::vector<float> stepped_rows(size_t count, unsigned seed, int steps) {
  std::mt19937 random(seed);
  std::vector<float> logits(count);
  for (float& logit : logits) logit = static_cast<float>(random() % static_cast<unsigned>(steps)) * 0.5f;
  return logits;
}

// ---- the best paths, and no others ----

TEST(TreeBuilder, IsTheFirstOfAllPathsByProbabilityAndRanks) {
  TreeBuilder builder;
  for (unsigned seed = 0; seed < 300; ++seed) {
    const uint32_t vocab = 1 + seed % 6, depths = 1 + seed / 6 % 4;
    const size_t count = size_t{vocab} * depths;
    const auto logits = seed % 3 == 0   ? test::random_rows(count, seed, 2.0f)
                        : seed % 3 == 1 ? stepped_rows(count, seed, 3)
                                        : std::vector<float>(count, 1.0f);
    const Candidates candidates(logits, vocab, vocab);
    const std::vector<Path> expected = all_paths(candidates);
    for (const uint32_t budget : {0u, 1u, 2u, 3u, 5u, 8u, 13u, 40u, 5000u}) {
      builder.begin(0, candidates.all(), vocab);
      const bool enough = budget <= expected.size();
      ASSERT_EQ(builder.build(budget), enough ? TreeStep::added : TreeStep::complete);
      ASSERT_EQ(paths_of(builder.tree()), first(expected, budget)) << "seed " << seed << ", budget " << budget;
    }
  }
}

TEST(TreeBuilder, EqualPathsComeByTheirRanks) {
  // Two tokens of equal probability at depth 1, and one certain token at depths 2 and 3: a path has the probability of
  // its continuations.
  const Candidates candidates(std::vector<float>{0, 0, 90, 0, 90, 0}, 2, 2);
  TreeBuilder builder;
  builder.begin(0, candidates.all(), 2);
  builder.build(6);
  const std::vector<Path> paths = paths_of(builder.tree());
  std::vector<Ids> ranks;
  for (const Path& path : paths) ranks.push_back(path.ranks);
  EXPECT_EQ(ranks, (std::vector<Ids>{{0}, {0, 0}, {0, 0, 0}, {1}, {1, 0}, {1, 0, 0}}));
  EXPECT_EQ(paths.front().score, paths.back().score);
}

TEST(TreeBuilder, NodesComeOneByOneInFallingOrderWithTheirProbability) {
  const Candidates candidates(test::random_rows(7 * 50, 3, 2.0f), 50, 50);
  TreeBuilder builder;
  builder.begin(11, candidates.all(), 50);
  double before = 0;
  for (uint32_t i = 1; i <= 400; ++i) {
    ASSERT_EQ(builder.next(), TreeStep::added);
    ASSERT_EQ(builder.tree().drafted(), i);
    const TreeNode& node = builder.tree().nodes().back();
    ASSERT_LE(node.score, before);
    ASSERT_DOUBLE_EQ(node.score, builder.tree()[node.parent].score + node.log_q);
    before = node.score;
  }
  EXPECT_EQ(builder.tree()[0].token, 11u);
}

TEST(TreeBuilder, CalibrationOrdersTheTreeAndLeavesTheDraftersProbabilities) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    const Candidates candidates(test::random_rows(3 * 5, seed, 2.0f), 5, 5);
    // Calibration lowers the second depth and raises the third, which reaches the bound of 0.
    const std::vector<DepthCalibration> calibration = {{1, 0}, {0.3, -1.0}, {1.5, 2.0}};
    TreeBuilder builder;
    builder.begin(0, candidates.all(), 5, calibration);
    builder.build(60);
    ASSERT_EQ(paths_of(builder.tree()), first(all_paths(candidates, calibration), 60));
    for (const TreeNode& node : builder.tree().nodes().subspan(1)) {
      const DepthCandidates at = candidates.at(node.depth);
      ASSERT_EQ(node.log_q, at.logits[node.rank] - at.log_sum_exp);
    }
  }
}

TEST(TreeBuilder, AChainIsTheFirstTokenOfEachDepth) {
  const Candidates candidates(test::random_rows(7 * 20, 5, 1.0f), 20, 3);
  TreeBuilder builder;
  for (const uint32_t budget : {0u, 1u, 4u, 7u, 8u, 1000u}) {
    builder.begin(3, candidates.all(), 20);
    builder.build_chain(budget);
    const DraftTree& tree = builder.tree();
    ASSERT_EQ(tree.drafted(), std::min(budget, 7u));
    double score = 0;
    for (uint32_t depth = 1; depth <= tree.drafted(); ++depth) {
      const DepthCandidates at = candidates.at(depth);
      score += at.logits[0] - at.log_sum_exp;
      EXPECT_EQ(tree[depth].token, at.tokens[0]);
      EXPECT_EQ(tree[depth].parent, depth - 1);
      EXPECT_EQ(tree[depth].rank, 0u);
      EXPECT_DOUBLE_EQ(tree[depth].score, score);
    }
    EXPECT_EQ(builder.next(), TreeStep::complete) << "a chain is not a tree under construction";
  }
}

// ---- candidates in parts ----

TEST(TreeBuilder, AskingForMoreCandidatesGivesTheTreeOfAllOfThem) {
  TreeBuilder all, asking;
  int asked = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    const uint32_t vocab = 30;
    const auto logits = seed % 2 == 0 ? test::random_rows(4 * vocab, seed, 0.5f) : stepped_rows(4 * vocab, seed, 4);
    const Candidates candidates(logits, vocab, vocab);
    for (const uint32_t k : {1u, 2u, 7u, 29u, 30u}) {
      for (const uint32_t budget : {1u, 16u, 300u}) {
        all.begin(0, candidates.all(), vocab);
        all.build(budget);
        const int times = test::build_asking(asking, 0, candidates, vocab, budget, k);
        ASSERT_EQ(paths_of(asking.tree()), paths_of(all.tree())) << "seed " << seed << ", " << k << " candidates";
        ASSERT_TRUE(k < vocab || times == 0);
        asked += times;
      }
    }
  }
  EXPECT_GT(asked, 100);
}

TEST(TreeBuilder, AsksOnlyWhenTheLastCandidateIsInTheTreeAndMoreNodesAreWanted) {
  // With one depth the ranks come in order, so the third node is the last candidate.
  const Candidates candidates(test::random_rows(10, 1, 1.0f), 10, 10);
  TreeBuilder builder;
  builder.begin(0, candidates.all(3), 10);
  EXPECT_EQ(builder.build(3), TreeStep::added) << "the last rank is the last node: nothing is missing";
  EXPECT_EQ(builder.build(4), TreeStep::needs_candidates);
  EXPECT_EQ(builder.next(), TreeStep::needs_candidates) << "asking again changes nothing";
  EXPECT_EQ(builder.tree().drafted(), 3u);
  EXPECT_EQ(builder.starved_depth(), 1u);
  EXPECT_EQ(builder.candidates_at(1), 3u);
  builder.extend(1, candidates.at(1, 4));
  EXPECT_EQ(builder.starved_depth(), 0u);
  EXPECT_EQ(builder.candidates_at(1), 4u);
  EXPECT_EQ(builder.build(5), TreeStep::needs_candidates);
  builder.extend(1, candidates.at(1));
  EXPECT_EQ(builder.build(11), TreeStep::complete);
  EXPECT_EQ(paths_of(builder.tree()), all_paths(candidates));
}

TEST(TreeBuilder, MoreCandidatesMayComeBeforeTheyAreNeeded) {
  const Candidates candidates(test::random_rows(2 * 9, 2, 0.3f), 9, 9);
  TreeBuilder builder;
  builder.begin(0, candidates.all(2), 9);
  builder.extend(2, candidates.at(2));
  builder.next();
  builder.extend(1, candidates.at(1));
  EXPECT_EQ(builder.build(1000), TreeStep::complete);
  EXPECT_EQ(paths_of(builder.tree()), all_paths(candidates));
}

TEST(TreeBuilder, FewerAvailableCandidatesThanTokensLeaveTheOthersOut) {
  const Candidates three(test::random_rows(2 * 8, 4, 0.3f), 8, 3);
  TreeBuilder builder;
  builder.begin(0, three.all(), 3);
  EXPECT_EQ(builder.build(1000), TreeStep::complete);
  EXPECT_EQ(paths_of(builder.tree()), all_paths(three));
}

TEST(TreeBuilder, RefusesMoreCandidatesThatDoNotContinueTheOthers) {
  const Candidates candidates(test::random_rows(2 * 9, 2, 0.3f), 9, 9);
  const Candidates others(test::random_rows(2 * 9, 3, 0.3f), 9, 9);
  TreeBuilder builder;
  builder.begin(0, candidates.all(2), 9);
  ASSERT_EQ(builder.build(80), TreeStep::needs_candidates);
  const uint32_t depth = builder.starved_depth();
  const DraftTree before = builder.tree();
  expect_error("there are 2 now and were 2", [&] { builder.extend(depth, candidates.at(depth, 2)); });
  expect_error("depth 3", [&] { builder.extend(3, candidates.at(2)); });
  expect_error("depth 0", [&] { builder.extend(0, candidates.at(2)); });
  DepthCandidates changed = others.at(depth);
  expect_error("another log-sum-exp", [&] { builder.extend(depth, changed); });
  changed.log_sum_exp = candidates.at(depth).log_sum_exp;
  expect_error("changed at rank 0", [&] { builder.extend(depth, changed); });
  std::vector<float> logits(candidates.at(depth).logits.begin(), candidates.at(depth).logits.end());
  logits.back() = nan;
  changed = candidates.at(depth);
  changed.logits = logits;
  expect_error("must be finite", [&] { builder.extend(depth, changed); });
  // After these errors it goes on as before.
  EXPECT_EQ(paths_of(builder.tree()), paths_of(before));
  EXPECT_EQ(builder.next(), TreeStep::needs_candidates);
  builder.extend(depth, candidates.at(depth));
  builder.extend(3 - depth, candidates.at(3 - depth));
  builder.build(80);
  EXPECT_EQ(paths_of(builder.tree()), first(all_paths(candidates), 80));
}

// ---- edges ----

TEST(TreeBuilder, WithoutDepthsOrBudgetThereIsARootAlone) {
  TreeBuilder builder;
  EXPECT_EQ(builder.next(), TreeStep::complete) << "before begin()";
  builder.begin(7, {}, 10);
  EXPECT_EQ(builder.build(0), TreeStep::added);
  EXPECT_EQ(builder.build(5), TreeStep::complete);
  EXPECT_EQ(builder.tree().width(), 1u);
  EXPECT_EQ(builder.tree()[0].token, 7u);
  builder.build_chain(5);
  EXPECT_EQ(builder.tree().width(), 1u);

  const Candidates candidates(test::random_rows(2 * 9, 2, 0.3f), 9, 9);
  builder.begin(8, candidates.all(), 9);
  EXPECT_EQ(builder.build(0), TreeStep::added);
  EXPECT_EQ(builder.tree().width(), 1u);
}

TEST(TreeBuilder, OneCandidateOfOneGivesAChain) {
  const Candidates candidates(std::vector<float>(40, 3.0f), 1, 1);
  TreeBuilder builder;
  builder.begin(0, candidates.all(), 1);
  EXPECT_EQ(builder.build(100), TreeStep::complete);
  EXPECT_EQ(builder.tree().drafted(), 40u);
  EXPECT_EQ(builder.tree().nodes().back().depth, 40u);
  EXPECT_EQ(builder.tree().nodes().back().score, 0.0);
}

TEST(TreeBuilder, OneCandidateOfManyAsksAfterEachNode) {
  const Candidates candidates(test::random_rows(2 * 9, 2, 0.3f), 9, 9);
  TreeBuilder builder;
  builder.begin(0, candidates.all(1), 9);
  EXPECT_EQ(builder.build(2), TreeStep::needs_candidates);
  EXPECT_EQ(builder.tree().drafted(), 1u);
}

TEST(TreeBuilder, CutEndsTheSearch) {
  const Candidates candidates(test::random_rows(2 * 9, 2, 0.3f), 9, 9);
  TreeBuilder builder;
  builder.begin(0, candidates.all(), 9);
  builder.build(20);
  builder.cut(6);
  EXPECT_EQ(paths_of(builder.tree()), first(all_paths(candidates), 5));
  EXPECT_EQ(builder.next(), TreeStep::complete);
  expect_error("cannot be cut to width 7", [&] { builder.cut(7); });
  expect_error("cannot be cut to width 0", [&] { builder.cut(0); });
}

TEST(TreeBuilder, ALogSumExpRoundedBelowTheLargestLogitIsTakenForCertainty) {
  const Ids tokens = {4, 2};
  const std::vector<float> logits = {20.0f, -80.0f};
  const DepthCandidates depth = {tokens, logits, 20.0 - 1e-6};
  TreeBuilder builder;
  builder.begin(0, std::vector(3, depth), 2);
  EXPECT_EQ(builder.build(3), TreeStep::added);
  EXPECT_EQ(builder.tree().nodes().back().score, 0.0);
  EXPECT_EQ(builder.tree().nodes().back().log_q, 0.0);
  EXPECT_EQ(builder.tree().nodes().back().depth, 3u);
}

TEST(TreeBuilder, LargestAndSmallestLogitsDoNotOverflow) {
  constexpr float most = std::numeric_limits<float>::max();
  const Ids tokens = {0, 1};
  const std::vector<float> logits = {most, -most};
  TreeBuilder builder;
  builder.begin(0, std::vector(4, DepthCandidates{tokens, logits, most}), 2);
  EXPECT_EQ(builder.build(1000), TreeStep::complete);
  EXPECT_EQ(builder.tree().drafted(), 2u + 4 + 8 + 16);
  for (const TreeNode& node : builder.tree().nodes()) EXPECT_LE(node.score, 0.0);
}

TEST(TreeBuilder, RefusesBrokenCandidates) {
  struct Case {
    const char* part;
    Ids tokens;
    std::vector<float> logits;
    double log_sum_exp;
  };
  const Case cases[] = {
      {"of depth 2 give token 5 the logit nan", {5, 1}, {nan, 0}, 1},
      {"of depth 2 give token 1 the logit nan", {5, 1}, {0, nan}, 1},
      {"of depth 2 give token 5 the logit inf", {5, 1}, {infinity, 0}, 1},
      {"of depth 2 give token 1 the logit -inf", {5, 1}, {0, -infinity}, 1},
      {"of depth 2 have a log-sum-exp of nan", {5, 1}, {1, 0}, nan},
      {"of depth 2 have a log-sum-exp of inf", {5, 1}, {1, 0}, infinity},
      {"of depth 2 have a log-sum-exp of -inf", {5, 1}, {1, 0}, -infinity},
      {"below their largest logit, 9.0", {5, 1}, {9, 0}, 8.9},
      {"of depth 2 are out of order at rank 1", {5, 1}, {0, 1}, 2},
      {"of depth 2 are out of order at rank 1", {5, 1}, {1, 1}, 2},
      {"of depth 2 are out of order at rank 2", {1, 5, 5}, {2, 1, 1}, 3},
      {"of depth 2 are 2 tokens but 1 logits", {5, 1}, {1}, 2},
      {"of depth 2 are 0; allowed: 1 to 10", {}, {}, 2},
      {"of depth 2 are 11; allowed: 1 to 10", Ids(11), std::vector<float>(11), 2},
  };
  const Candidates good(test::random_rows(10, 2, 0.3f), 10, 10);
  TreeBuilder builder;
  for (const Case& broken : cases) {
    SCOPED_TRACE(broken.part);
    builder.begin(1, good.all(), 10);
    builder.build(5);
    const std::vector<DepthCandidates> depths = {good.at(1), {broken.tokens, broken.logits, broken.log_sum_exp}};
    expect_error(broken.part, [&] { builder.begin(2, depths, 10); });
    EXPECT_EQ(builder.tree().width(), 1u) << "nothing of the old tree is taken for the new one";
    EXPECT_EQ(builder.next(), TreeStep::complete);
  }
  builder.begin(1, good.all(), 10);
  builder.build(10);
  EXPECT_EQ(paths_of(builder.tree()), all_paths(good)) << "the next request works";
}

TEST(TreeBuilder, RefusesBadCalibrations) {
  const Candidates good(test::random_rows(20, 2, 0.3f), 10, 10);
  TreeBuilder builder;
  const auto begin = [&](const std::vector<DepthCalibration>& fit) { builder.begin(1, good.all(), 10, fit); };
  expect_error("for 1 depths, but 2 depths are drafted", [&] { begin({{1, 0}}); });
  expect_error("of depth 2 has scale -0.5", [&] { begin({{1, 0}, {-0.5, 0}}); });
  expect_error("of depth 1 has scale nan", [&] { begin({{nan, 0}, {1, 0}}); });
  expect_error("of depth 2 has scale 1.000000 and shift inf", [&] { begin({{1, 0}, {1, infinity}}); });
  EXPECT_NO_THROW(begin({{1, 0}, {0, -1}}));
}

}  // namespace
}  // namespace canopy
