// Trees and accepted paths compared with the published implementation: ddtree_build.json, forward.json, generate.json.

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "engine/speculation/tree_builder.h"
#include "tests/model/golden_data.h"
#include "tests/speculation/draft_candidates.h"

namespace canopy {
namespace {

using nlohmann::json;
using Ids = std::vector<uint32_t>;

// Compares tokens, depths and parents in the form of the golden files, which list the root only in `parents`.
void expect_tree(const DraftTree& tree, const Ids& tokens, const Ids& depths, const std::vector<int32_t>& parents) {
  Ids actual_tokens, actual_depths;
  std::vector<int32_t> actual_parents;
  for (const TreeNode& node : tree.nodes()) {
    actual_parents.push_back(static_cast<int32_t>(node.parent));
    if (node.depth == 0) continue;
    actual_tokens.push_back(node.token);
    actual_depths.push_back(node.depth);
  }
  EXPECT_EQ(actual_tokens, tokens);
  EXPECT_EQ(actual_depths, depths);
  EXPECT_EQ(actual_parents, parents);
}

TEST(TreeGolden, EveryTreeOfTheBuildFile) {
  const json file = test::golden_json("ddtree_build.json");
  const test::GoldenTensors tensors(file.at("logits_file").get<std::string>());
  ASSERT_FALSE(file.at("cases").empty());
  TreeBuilder builder;  // one for all, as in a session
  int asked = 0;
  for (const json& golden : file.at("cases")) {
    const auto name = golden.at("logits").get<std::string>();
    const auto vocab = golden.at("vocab").get<uint32_t>();
    const auto budget = golden.at("budget").get<uint32_t>();
    SCOPED_TRACE(name + ", budget " + std::to_string(budget));
    const test::Candidates candidates(tensors[name], vocab, vocab);
    ASSERT_EQ(candidates.depths(), golden.at("depth").get<uint32_t>());

    asked += test::build_asking(builder, 0, candidates, vocab, budget, std::min(64u, vocab));
    expect_tree(builder.tree(), golden.at("token_ids"), golden.at("depths"), golden.at("parents"));
    const auto scores = golden.at("path_logprob").get<std::vector<double>>();
    ASSERT_EQ(scores.size(), builder.tree().drafted());
    for (uint32_t i = 0; i < scores.size(); ++i) EXPECT_NEAR(builder.tree()[i + 1].score, scores[i], 1e-5) << i;
  }
  EXPECT_GT(asked, 0) << "no case went beyond 64 candidates, so that path was not tested";
}

TEST(TreeGolden, TreesFromTheDraftLogitsOfARealPair) {
  const json file = test::golden_json("forward.json");
  const test::GoldenTensors tensors("forward.safetensors");
  int seen = 0;
  for (size_t i = 0; i < file.at("rounds").size(); ++i) {
    const json& round = file.at("rounds")[i];
    const auto logits = tensors["round" + std::to_string(i) + ".draft_logits"];
    const auto tokens = round.at("node_token_ids").get<Ids>();
    const auto depths = round.at("node_depths").get<Ids>();
    SCOPED_TRACE(i);
    const uint32_t vocab = 1010;
    const test::Candidates candidates(logits, vocab, 64);
    TreeBuilder builder;
    test::build_asking(builder, round.at("root_token"), candidates, vocab, static_cast<uint32_t>(tokens.size()), 64);
    expect_tree(builder.tree(), tokens, depths, round.at("parents"));
    RowBatch batch;
    add_tree(builder.tree(), round.at("start"), 2048, 2048, batch);
    Ids ids, positions;
    for (const Row& row : batch.rows) {
      ids.push_back(row.token);
      positions.push_back(row.position);
    }
    if (round.contains("verify_input_ids")) {
      EXPECT_EQ(ids, round.at("verify_input_ids").get<Ids>());
      EXPECT_EQ(positions, round.at("verify_position_ids").get<Ids>());
    }
    ++seen;
  }
  EXPECT_GE(seen, 3);
}

// Compares the accepted path of a round. The target's choice at a node of depth d is the text's token at position start
// + d + 1. False when the round runs past the text.
bool expect_round(const json& round, const Ids& text) {
  const auto start = round.at("start").get<size_t>();
  const auto tokens = round.at("node_token_ids").get<Ids>();
  const auto parents = round.at("parents").get<std::vector<int32_t>>();
  const auto accepted = round.at("accepted_indices").get<Ids>();
  if (start + accepted.size() >= text.size()) return false;  // runs past the text, where the reply was cut
  DraftTree tree(text[start]);
  for (size_t i = 0; i < tokens.size(); ++i) tree.add(static_cast<uint32_t>(parents[i + 1]), tokens[i], 0, 0, 0);
  AcceptedPath path;
  accept(
      tree, [&](uint32_t node) { return text.at(start + tree[node].depth + 1); }, path);
  EXPECT_EQ(path.nodes, accepted);
  EXPECT_EQ(path.bonus, round.at("next_token").get<uint32_t>());
  return true;
}

TEST(TreeGolden, WalksOfEveryRoundGenerated) {
  const json file = test::golden_json("generate.json");
  int walked = 0;
  for (const json& prompt : file.at("prompts")) {
    Ids text = prompt.at("prompt_ids").get<Ids>();
    const auto output = prompt.at("output_ids").get<Ids>();
    text.insert(text.end(), output.begin(), output.end());
    for (const auto& [budget, tree] : prompt.at("ddtree").items()) {
      for (const json& round : tree.at("rounds")) {
        SCOPED_TRACE("prompt " + prompt.at("prompt").get<std::string>() + ", budget " + budget);
        walked += expect_round(round, text) ? 1 : 0;
      }
    }
  }
  EXPECT_GT(walked, 100);
  std::printf("%d rounds walked\n", walked);
}

}  // namespace
}  // namespace canopy
