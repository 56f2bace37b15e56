// Drafts along several paths at once, over a made-up model whose next token depends on the whole path.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include "engine/speculation/beam_draft.h"
#include "engine/speculation/round_planner.h"
#include "tests/base/expect_error.h"

namespace canopy {
namespace {

using BeamPath = std::vector<uint32_t>;

/// Probabilities of 16 tokens behind a path: those that were given, or made up from it.
class PathModel final : public NodeRunner {
 public:
  static constexpr uint32_t kVocabulary = 16;

  void set(const BeamPath& path, std::vector<double> p) { given_[path] = std::move(p); }

  std::vector<double> behind(const BeamPath& path) const {
    if (const auto found = given_.find(path); found != given_.end()) return found->second;
    uint32_t state = 12345;
    for (const uint32_t token : path) state = state * 1664525u + token + 1013904223u;
    std::vector<double> p;
    double sum = 0;
    for (uint32_t token = 0; token < kVocabulary; ++token) {
      state = state * 1664525u + 1013904223u;
      p.push_back(std::exp(6.0 * (state >> 8) / (1u << 24)));
      sum += p.back();
    }
    for (double& each : p) each /= sum;
    return p;
  }

  static BeamPath path_of(const DraftTree& tree, uint32_t node) {
    BeamPath path;
    for (; node != 0; node = tree[node].parent) path.insert(path.begin(), tree[node].token);
    return path;
  }

  bool run(const DraftTree& tree, uint32_t first, BlockDraft& draft, const std::stop_token& stop) override {
    passes.push_back(tree.width() - first);
    if (stop.stop_requested()) return false;
    for (uint32_t node = first; node < tree.width(); ++node) {
      const std::vector<double> p = behind(path_of(tree, node));
      std::vector<uint32_t> tokens(p.size());
      for (uint32_t i = 0; i < tokens.size(); ++i) tokens[i] = i;
      std::ranges::stable_sort(tokens, [&](uint32_t a, uint32_t b) { return p[a] > p[b]; });
      std::vector<float> logits;
      for (const uint32_t token : tokens) logits.push_back(static_cast<float>(std::log(p[token])));
      add_list(tokens, logits, 0, kVocabulary, draft);
    }
    return true;
  }

  std::vector<uint32_t> passes;  // rows of each

 private:
  std::map<BeamPath, std::vector<double>> given_;
};

BlockDraft draft_of(PathModel& model, const DraftWish& wish, DraftTree& run, uint32_t candidates = 8) {
  BlockDraft draft;
  draft.candidates = candidates;
  model.passes.clear();
  EXPECT_TRUE(draft_beams(model, 99, wish, run, draft, {}));
  return draft;
}

/// A few tokens with these probabilities, the first the likeliest; the others share a millionth.
std::vector<double> mostly(std::vector<double> p) {
  const size_t named = p.size();
  p.resize(PathModel::kVocabulary, 1e-6 / static_cast<double>(PathModel::kVocabulary - named));
  return p;
}

TEST(BeamDraft, WithoutCostsItIsTheChainOfTheLikeliestTokens) {
  PathModel model;
  DraftTree run;
  const BlockDraft draft = draft_of(model, {5}, run);
  EXPECT_EQ(draft.depths, 5u);
  EXPECT_EQ(model.passes, (std::vector<uint32_t>{1, 1, 1, 1, 1}));
  EXPECT_EQ(draft.behind, (std::vector<uint32_t>{BlockDraft::none, 0, 8, 16, 24}));
  EXPECT_EQ(draft.beams(), (std::vector<uint32_t>{1, 1, 1, 1}));
  BeamPath path;
  for (uint32_t i = 0; i < draft.lists(); ++i) {
    const std::vector<double> p = model.behind(path);
    const auto best = static_cast<uint32_t>(std::ranges::max_element(p) - p.begin());
    EXPECT_EQ(draft.list(i).tokens[0], best);
    path.push_back(best);
  }
}

/// EAGLE-2's beams: of the children of all that the pass before has run, the most probable paths.
TEST(BeamDraft, EachPassGoesOnWithTheMostProbablePaths) {
  PathModel model;
  for (const uint32_t beams : {2u, 3u, 5u, 8u}) {
    SCOPED_TRACE(beams);
    const std::vector<double> free(beams, 0.0);
    DraftTree run;
    const BlockDraft draft = draft_of(model, {4, free}, run);
    EXPECT_EQ(model.passes, (std::vector<uint32_t>{1, beams, beams, beams}));
    EXPECT_EQ(draft.beams(), (std::vector<uint32_t>(3, beams)));
    ASSERT_EQ(draft.lists(), run.width());
    std::vector<std::pair<double, BeamPath>> open = {{1.0, {}}};
    uint32_t node = 1;
    for (int depth = 1; depth < 4; ++depth) {
      std::vector<std::pair<double, BeamPath>> children;
      for (const auto& [p, path] : open) {
        const std::vector<double> next = model.behind(path);
        for (uint32_t token = 0; token < next.size(); ++token) {
          BeamPath longer = path;
          longer.push_back(token);
          children.emplace_back(p * next[token], longer);
        }
      }
      std::ranges::sort(children, [](const auto& a, const auto& b) { return a.first > b.first; });
      children.resize(beams);
      for (const auto& [p, path] : children) {
        EXPECT_EQ(PathModel::path_of(run, node), path) << "node " << node;
        EXPECT_NEAR(std::exp(run[node].score), p, 1e-5);
        EXPECT_EQ(run[node].sources, kFromDraft);
        EXPECT_EQ(draft.tokens[draft.behind[node]], path.back());
        ++node;
      }
      open = children;
    }
    EXPECT_EQ(node, run.width());
  }
}

TEST(BeamDraft, APassTakesThePathsThatAreWorthIt) {
  PathModel model;
  model.set({}, mostly({0.5, 0.3, 0.15}));
  for (const uint32_t first : {0u, 1u, 2u}) model.set({first}, mostly({0.6, 0.2}));
  DraftTree run;
  // 0.5 - 0.2, 0.8 - 0.45 or 0.95 - 0.65: two. Then paths of 0.3, 0.18, 0.1, 0.06: 0.1, 0.03 or less.
  const std::vector<double> costs = {0.2, 0.45, 0.65};
  draft_of(model, {3, costs}, run);
  EXPECT_EQ(model.passes, (std::vector<uint32_t>{1, 2, 1}));
  const std::vector<double> dear = {0.51, 0.81, 0.96};
  EXPECT_EQ(draft_of(model, {3, dear}, run).depths, 1u) << "no path is worth a pass";
  const std::vector<double> cheap_together = {0.51, 0.6, 0.7};
  draft_of(model, {2, cheap_together}, run);
  EXPECT_EQ(model.passes, (std::vector<uint32_t>{1, 3})) << "one path would not be worth it, three are";
  const std::vector<double> many(64, 0.0);
  draft_of(model, {2, many}, run);
  EXPECT_EQ(model.passes, (std::vector<uint32_t>{1, kMostBeams}));
}

TEST(BeamDraft, PathsAreJudgedByCalibratedProbabilities) {
  PathModel model;
  model.set({}, mostly({0.5, 0.3, 0.15}));
  DraftTree run;
  const std::vector<double> costs = {0.4, 0.8, 1.2};
  const std::vector<DepthCalibration> doubtful = {{1, std::log(0.5)}};
  EXPECT_EQ(draft_of(model, {2, costs, doubtful}, run).depths, 1u) << "a quarter is less than it takes";
  EXPECT_EQ(draft_of(model, {2, costs}, run).depths, 2u);
  // All equal: in the order of the lists, at most one being certain.
  const std::vector<DepthCalibration> level = {{0, std::log(0.5)}};
  const std::vector<double> free(3, 0.0);
  draft_of(model, {2, free, level}, run);
  EXPECT_EQ(PathModel::path_of(run, 1), BeamPath{0});
  EXPECT_EQ(PathModel::path_of(run, 3), BeamPath{2});
}

TEST(BeamDraft, ListsLeaveOutWhatTheTargetDoesNotHave) {
  BlockDraft draft;
  draft.candidates = 4;
  const std::vector<uint32_t> tokens = {7, 20, 0, 3, 5};
  const std::vector<float> logits = {4, 3, 2, NAN, 1};
  add_list(tokens, logits, 5, 16, draft);
  EXPECT_EQ(draft.tokens, (std::vector<uint32_t>{7, 0, 5, 1})) << "and another, most improbable one";
  EXPECT_EQ(draft.logits, (std::vector<float>{4, 2, 1, -29}));
  EXPECT_EQ(draft.log_sum_exp, (std::vector<float>{5}));
}

/// All paths of up to `depths` tokens, the most probable first.
std::vector<BeamPath> best_paths(const PathModel& model, uint32_t depths, size_t count,
                                 std::span<const DepthCalibration> calibration = {}) {
  std::vector<std::pair<double, BeamPath>> all, last{{0.0, {}}};
  for (uint32_t depth = 0; depth < depths; ++depth) {
    std::vector<std::pair<double, BeamPath>> next;
    for (const auto& [score, path] : last) {
      const DepthCalibration c = calibration.empty() ? DepthCalibration{} : calibration[depth];
      std::vector<double> p = model.behind(path);
      double sum = 0;
      for (double& each : p) sum += each = std::min(1.0, std::exp(c.scale * std::log(each) + c.shift));
      for (uint32_t token = 0; token < p.size(); ++token) {
        BeamPath longer = path;
        longer.push_back(token);
        next.emplace_back(score + std::log(p[token] / std::max(1.0, sum)), longer);
      }
    }
    all.insert(all.end(), next.begin(), next.end());
    last = std::move(next);
  }
  std::ranges::stable_sort(all, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<BeamPath> best;
  for (size_t i = 0; i < count; ++i) best.push_back(all[i].second);
  return best;
}

TEST(DraftPaths, ThereAreListsBehindAllPathsOfTheTree) {
  PathModel model;
  const DepthCalibration calibration[] = {{1, 0}, {0.7, -0.1}, {0.5, -0.3}};
  for (const uint32_t nodes : {1u, 7u, 24u, 60u}) {
    for (const bool calibrated : {false, true}) {
      SCOPED_TRACE(std::to_string(nodes) + (calibrated ? ", calibrated" : ""));
      DraftWish wish{3};
      wish.nodes = nodes;
      if (calibrated) wish.calibration = calibration;
      BlockDraft draft;
      draft.candidates = PathModel::kVocabulary;
      DraftTree run;
      model.passes.clear();
      ASSERT_TRUE(draft_paths(model, 99, wish, run, draft, {}));
      EXPECT_TRUE(draft.in_one_pass);
      EXPECT_EQ(draft.beams(), std::vector<uint32_t>());
      ASSERT_EQ(draft.lists(), run.width());
      ASSERT_EQ(draft.behind.size(), run.width());
      for (const uint32_t rows : model.passes) EXPECT_LE(rows, kMostBeams);
      std::vector<BeamPath> listed;
      uint32_t deepest = 0;
      for (uint32_t node = 0; node < run.width(); ++node) {
        listed.push_back(PathModel::path_of(run, node));
        deepest = std::max(deepest, run[node].depth + 1);
        if (node == 0) continue;
        EXPECT_EQ(draft.tokens[draft.behind[node]], run[node].token);
        EXPECT_EQ(draft.behind[node] / draft.candidates, run[node].parent);
      }
      EXPECT_EQ(draft.depths, deepest);
      EXPECT_LE(deepest, 3u);
      for (const BeamPath& path : best_paths(model, 3, nodes, wish.calibration)) {
        EXPECT_TRUE(path.size() == 3 || std::ranges::find(listed, path) != listed.end());
      }
    }
  }
}

TEST(DraftPaths, WithoutNodesItIsTheChainOfTheLikeliestTokens) {
  PathModel model;
  BlockDraft draft;
  draft.candidates = 8;
  DraftTree run;
  ASSERT_TRUE(draft_paths(model, 99, {4}, run, draft, {}));
  EXPECT_EQ(model.passes, (std::vector<uint32_t>{1, 1, 1, 1}));
  EXPECT_EQ(draft.behind, (std::vector<uint32_t>{BlockDraft::none, 0, 8, 16}));
  EXPECT_EQ(draft.depths, 4u);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(draft_paths(model, 99, {4}, run, draft, stop.get_token()));
}

TEST(BeamDraft, EndsWhereItIsStoppedAndRefusesAModelThatSaysTooLittle) {
  PathModel model;
  DraftTree run;
  BlockDraft draft;
  draft.candidates = 8;
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(draft_beams(model, 1, {3}, run, draft, stop.get_token()));
  class Silent final : public NodeRunner {
    bool run(const DraftTree&, uint32_t, BlockDraft&, const std::stop_token&) override { return true; }
  } silent;
  EXPECT_THROW(draft_beams(silent, 1, {3}, run, draft, {}), std::logic_error);
}

/// A source that drafts with it.
class PathDrafts final : public DraftSource {
 public:
  uint32_t max_depth() const override { return 12; }
  uint32_t backlog() const override { return 1; }
  uint32_t most_waiting() const override { return UINT32_MAX; }
  uint32_t drafted_tokens() const override { return 8; }
  uint32_t most_beams() const override { return kMostBeams; }
  const FreeDraft& from_text(uint32_t) override { return nothing_; }
  const FreeDraft& recycled(uint32_t, uint32_t) override { return nothing_; }
  const BlockDraft* draft(uint32_t root, const DraftWish& wish, const std::stop_token& stop) override {
    draft_.candidates = 8;
    return draft_beams(model, root, wish, run_, draft_, stop) ? &draft_ : nullptr;
  }
  bool more(uint32_t, uint32_t, uint32_t, std::vector<uint32_t>&, std::vector<float>&) override { return false; }

  PathModel model;

 private:
  FreeDraft nothing_;
  DraftTree run_;
  BlockDraft draft_;
};

/// The nodes of the tree stand behind the very paths that their probabilities were given behind.
TEST(BeamDraft, TheTreeIsTheMostProbablePathsOfTheModel) {
  PathDrafts source;
  TreeDrafter trees(source);
  const std::vector<double> free(8, 0.0);
  ASSERT_TRUE(trees.draft(99, {3, free}, {}));
  trees.begin();
  trees.build(12);
  const DraftTree& tree = trees.tree();
  ASSERT_EQ(tree.drafted(), 12u);
  std::vector<double> all;  // paths of up to three tokens
  const auto add = [&](auto&& self, const BeamPath& path, double p) -> void {
    if (!path.empty()) all.push_back(p);
    if (path.size() == 3) return;
    const std::vector<double> next = source.model.behind(path);
    for (uint32_t token = 0; token < next.size(); ++token) {
      BeamPath longer = path;
      longer.push_back(token);
      self(self, longer, p * next[token]);
    }
  };
  add(add, {}, 1);
  std::ranges::sort(all, std::greater<>());
  bool branches = false;
  for (uint32_t node = 1; node < tree.width(); ++node) {
    const BeamPath path = PathModel::path_of(tree, node);
    double p = 1;
    for (size_t i = 0; i < path.size(); ++i)
      p *= source.model.behind(BeamPath(path.begin(), path.begin() + i))[path[i]];
    EXPECT_NEAR(std::exp(tree[node].score), p, 1e-5) << "node " << node;
    EXPECT_NEAR(std::exp(tree[node].score), all[node - 1], 1e-5) << "node " << node;
    branches = branches || (tree[node].depth > 1 && tree[tree[node].parent].rank > 0);
  }
  EXPECT_TRUE(branches) << "the comparison shows little";
}

}  // namespace
}  // namespace canopy
