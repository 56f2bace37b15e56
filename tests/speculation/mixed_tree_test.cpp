// Trees of several sources and of recycled tokens, against mixed_trees.json and recycling.json.

#include "engine/speculation/tree_builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>

#include "engine/base/error.h"
#include "engine/speculation/token_recycling.h"
#include "tests/model/golden_data.h"

namespace canopy {
namespace {

using nlohmann::json;
using Ids = std::vector<uint32_t>;

void add(TreeBuilder& builder, DraftSources bit, const json& source) {
  DepthCalibration calibration;
  if (source.contains("calibration")) {
    calibration = {source["calibration"].at("a").get<double>(), source["calibration"].at("b").get<double>()};
  }
  if (source.at("kind") == "rows") {
    std::vector<std::vector<TokenCandidate>> rows;
    for (const json& row : source.at("rows")) {
      rows.emplace_back();
      for (const json& each : row) rows.back().push_back({each[0].get<uint32_t>(), each[1].get<double>()});
    }
    builder.add_rows(bit, rows, {&calibration, 1});
    return;
  }
  std::vector<CandidateNode> nodes;
  for (const json& node : source.at("nodes")) {
    const auto parent = node.at("parent").get<int64_t>();
    nodes.push_back({parent < 0 ? CandidateNode::root : static_cast<uint32_t>(parent), node.at("token").get<uint32_t>(),
                     node.at("p").get<double>()});
  }
  builder.add_tree(bit, nodes, {&calibration, 1});
}

TEST(MixedTreeGolden, EveryTreeOfTheFile) {
  const json file = test::golden_json("mixed_trees.json");
  ASSERT_FALSE(file.at("cases").empty());
  TreeBuilder builder;
  for (const json& golden : file.at("cases")) {
    const auto name = golden.at("sources").get<std::string>();
    builder.begin(0, golden.at("rule") == "max" ? MergeRule::max : MergeRule::noisy_or);
    DraftSources bit = 1;
    for (const json& source : file.at("sources").at(name)) {
      add(builder, bit, source);
      bit = static_cast<DraftSources>(bit << 1);
    }
    builder.build(golden.at("budget").get<uint32_t>());
    const DraftTree& tree = builder.tree();
    ASSERT_EQ(tree.drafted(), golden.at("node_token_ids").size()) << name;
    EXPECT_EQ(golden.at("parents")[0], -1);
    for (uint32_t i = 1; i < tree.width(); ++i) {
      const std::string where = name + " of " + golden.at("budget").dump() + ", node " + std::to_string(i);
      EXPECT_EQ(tree[i].token, golden.at("node_token_ids")[i - 1].get<uint32_t>()) << where;
      EXPECT_EQ(tree[i].parent, golden.at("parents")[i].get<uint32_t>()) << where;
      EXPECT_EQ(tree[i].depth, golden.at("node_depths")[i - 1].get<uint32_t>()) << where;
      EXPECT_EQ(tree[i].rank, golden.at("ranks")[i - 1].get<uint32_t>()) << where;
      EXPECT_NEAR(std::exp(tree[i].log_q), golden.at("q")[i - 1].get<double>(), 1e-5) << where;
      EXPECT_NEAR(tree[i].score, golden.at("path_logprob")[i - 1].get<double>(), 1e-5) << where;
      EXPECT_EQ(tree[i].sources, golden.at("from_sources")[i - 1].get<uint32_t>()) << where;
    }
  }
}

TEST(MixedTree, OfOneSourceOfMarginalsIsTheTreeOfTheBuilder) {
  const std::vector<std::vector<float>> logits = {{2.0317f, 1.1093f, 0.0151f, -1.7071f},
                                                  {1.5239f, 1.4714f, 0.0273f, -2.3183f},
                                                  {0.5119f, 0.2734f, 0.0397f, -0.4641f}};
  const Ids tokens = {10, 11, 12, 13};
  std::vector<DepthCandidates> depths;
  std::vector<std::vector<TokenCandidate>> rows;
  for (const std::vector<float>& row : logits) {
    double sum = 0;
    for (const float each : row) sum += std::exp(double{each});
    depths.push_back({tokens, row, std::log(sum)});
    rows.emplace_back();
    for (size_t i = 0; i < row.size(); ++i) rows.back().push_back({tokens[i], std::exp(double{row[i]}) / sum});
  }
  TreeBuilder one;
  one.begin(3, depths, 4);
  one.build(40);
  TreeBuilder mixed;
  mixed.begin(3);
  mixed.add_rows(kFromDflash, rows);
  mixed.build(40);
  ASSERT_EQ(mixed.tree().width(), one.tree().width());
  for (uint32_t i = 0; i < one.tree().width(); ++i) {
    EXPECT_EQ(mixed.tree()[i].token, one.tree()[i].token) << i;
    EXPECT_EQ(mixed.tree()[i].parent, one.tree()[i].parent) << i;
    EXPECT_NEAR(mixed.tree()[i].score, one.tree()[i].score, 1e-12) << i;
  }
}

TEST(MixedTree, RefusesSourcesThatCannotBe) {
  TreeBuilder builder;
  builder.begin(0);
  for (const double p : {0.0, -0.5, 1.5, std::nan("")}) {
    EXPECT_THROW(builder.add_rows(kFromDflash, std::vector<std::vector<TokenCandidate>>{{{1, p}}}), Error) << p;
    EXPECT_THROW(builder.add_tree(kFromSuffix, std::vector<CandidateNode>{{CandidateNode::root, 1, p}}), Error) << p;
  }
  EXPECT_THROW(builder.add_tree(kFromSuffix, std::vector<CandidateNode>{{0, 1, 0.5}}), Error) << "its own parent";
  EXPECT_EQ(builder.next(), TreeStep::complete) << "no source";
  EXPECT_THROW(builder.add_rows(kFromDflash, {}), std::logic_error);
  builder.begin(0, {}, 4);
  EXPECT_THROW(builder.add_rows(kFromDflash, {}), std::logic_error) << "a tree of a block drafter alone";
}

/// One builder makes both kinds in turn, and a chain of either once its search has gone on.
TEST(MixedTree, TakesTurnsWithTreesOfABlockDrafter) {
  const Ids tokens = {5, 6};
  const std::vector<float> logits = {1.0f, 0.5f};
  const std::vector<DepthCandidates> depths(3, {tokens, logits, 2.0});
  const std::vector<CandidateNode> nodes = {{CandidateNode::root, 8, 0.6}, {0, 9, 0.5}, {CandidateNode::root, 7, 0.3}};
  TreeBuilder builder;
  for (int i = 0; i < 2; ++i) {
    builder.begin(1, depths, 2);
    EXPECT_EQ(builder.build(14), TreeStep::added);
    EXPECT_EQ(builder.next(), TreeStep::complete) << "2 + 4 + 8 paths";
    builder.begin(2);
    builder.add_tree(kFromSuffix, nodes);
    EXPECT_EQ(builder.build(10), TreeStep::complete);
    EXPECT_EQ(builder.tree().drafted(), 3u);
    builder.build_chain(5);
    ASSERT_EQ(builder.tree().drafted(), 2u);
    EXPECT_EQ(builder.tree()[1].token, 8u);
    EXPECT_EQ(builder.tree()[2].token, 9u);
    EXPECT_EQ(builder.next(), TreeStep::complete);
  }
}

TEST(MixedTree, ANodeKeepsHowOftenTheTextWentOnWithIt) {
  TreeBuilder builder;
  builder.begin(1);
  builder.add_rows(kFromDflash, std::vector<std::vector<TokenCandidate>>{{{7, 0.5}, {8, 0.3}}});
  builder.add_tree(kFromSuffix, std::vector<CandidateNode>{{CandidateNode::root, 7, 0.75, {3, 4}},
                                                           {CandidateNode::root, 9, 0.25, {1, 4}}});
  builder.build(3);
  for (const TreeNode& node : builder.tree().nodes().subspan(1)) {
    EXPECT_EQ(node.went_on, node.token == 7 ? (WentOn{3, 4}) : node.token == 9 ? (WentOn{1, 4}) : WentOn{});
  }
  EXPECT_EQ(builder.tree().drafted(), 3u);
}

/// The k largest of a row of logits, ties by the lower id.
Ids best_of(std::span<const float> logits, uint32_t k) {
  Ids ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::ranges::stable_sort(ids, [&](uint32_t a, uint32_t b) { return logits[a] > logits[b]; });
  ids.resize(k);
  return ids;
}

TEST(TokenRecyclingGolden, EveryRoundOfTheFile) {
  const json file = test::golden_json("recycling.json");
  const test::GoldenTensors tensors(file.at("tensors_file").get<std::string>());
  const auto paths = file.at("template").get<std::vector<Ids>>();
  EXPECT_TRUE(std::ranges::equal(recycling_template(), paths)) << "the usual shape";
  const auto vocab = file.at("vocab").get<uint32_t>();
  RecyclingTable table(file.at("k").get<uint32_t>());
  FreeDraft draft;
  for (size_t i = 0; i < file.at("rounds").size(); ++i) {
    const json& round = file.at("rounds")[i];
    const auto root = round.at("root").get<uint32_t>();
    draft_recycled(table, root, paths, 100, draft);
    Ids tokens, depths;
    std::vector<int32_t> parents = {-1};
    for (const CandidateNode& node : draft.nodes) {
      const bool first = node.parent == CandidateNode::root;
      parents.push_back(first ? 0 : static_cast<int32_t>(node.parent) + 1);
      tokens.push_back(node.token);
      depths.push_back(first ? 1 : depths[node.parent] + 1);
    }
    EXPECT_EQ(draft.depth, depths.empty() ? 0 : *std::ranges::max_element(depths));
    EXPECT_EQ(tokens, round.at("node_token_ids").get<Ids>()) << "round " << i;
    EXPECT_EQ(depths, round.at("node_depths").get<Ids>()) << "round " << i;
    EXPECT_EQ(parents, round.at("parents").get<std::vector<int32_t>>()) << "round " << i;
    const std::span<const float> logits = tensors["round" + std::to_string(i) + ".logits"];
    ASSERT_EQ(logits.size(), (tokens.size() + 1) * vocab);
    for (size_t row = 0; row <= tokens.size(); ++row) {
      table.learn(row == 0 ? root : tokens[row - 1], best_of(logits.subspan(row * vocab, vocab), table.k()));
    }
    if (round.at("matrix_after").is_null()) continue;
    for (const auto& [token, best] : round.at("matrix_after").items()) {
      const std::span<const uint32_t> known = table.after(static_cast<uint32_t>(std::stoul(token)));
      EXPECT_EQ(Ids(known.begin(), known.end()), best.get<Ids>()) << "round " << i << ", token " << token;
    }
  }
}

TEST(TokenRecycling, RefusesRowsOfAnotherLength) {
  RecyclingTable table(4);
  EXPECT_THROW(table.learn(1, Ids{1, 2, 3}), Error);
  EXPECT_TRUE(table.after(1).empty());
}

}  // namespace
}  // namespace canopy
