// Relatives of DFlash against own reference code that llama.cpp and, for JetSpec, its authors' class agree with: what
// the block says, chains and trees of jetspec.json, dspark.json and dflash2.json, from folders and from GGUF files.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include "engine/format/dequantize.h"
#include "engine/model/drafter.h"
#include "engine/model/sequence.h"
#include "engine/session/reply_writer.h"
#include "engine/speculation/round_planner.h"
#include "tests/model/device_under_test.h"
#include "tests/model/golden_data.h"

namespace canopy::test {
namespace {

constexpr double kBlockLogits = 3e-4;  // tests/golden/README.md
constexpr double kBlockClose = 3e-5;

using BlockTokens = std::vector<uint32_t>;
using BlockPaths = std::vector<BlockTokens>;

struct BlockCase {
  const char* drafter;
  const char* golden;
};

class BlockGolden : public ::testing::TestWithParam<BlockCase> {
 protected:
  void SetUp() override {
    const ModelFile file = ModelFile::open(golden_folder() / "tiny-qwen3");
    drafter_file_ = std::make_unique<DrafterFile>(DrafterFile::open(golden_folder() / GetParam().drafter));
    EXPECT_EQ(check_pair(file, *drafter_file_), std::vector<std::string>());
    ModelOptions options;
    options.cache_type = cache_under_test();
    options.context = 256;
    options.aux_layers = drafter_file_->config().aux_layers;
    model_ = Model::load(device_under_test(), file, options);
    drafter_ = Drafter::load(*drafter_file_, *model_, {cache_under_test(), {}});
    json_ = golden_json(std::string(GetParam().golden) + ".json");
    tensors_ = std::make_unique<GoldenTensors>(std::string(GetParam().golden) + ".safetensors");
  }

  double near_tie() const { return tolerance(kBlockClose, 8 * kHalfCacheTolerance); }

  ForwardOutput pass_over(Sequence& sequence, std::span<const uint32_t> text) {
    ForwardInput input = sequence.text(text, HeadOutput::argmax);
    input.aux_hidden_states = true;
    ForwardOutput output = model_->forward(input);
    EXPECT_TRUE(output.completed());
    return output;
  }

  static DraftTree tree_of(const nlohmann::json& round, uint32_t root) {
    DraftTree tree(root);
    const auto tokens = round.at("node_token_ids").get<BlockTokens>();
    const auto parents = round.at("parents").get<std::vector<int64_t>>();
    for (size_t i = 0; i < tokens.size(); ++i) tree.add(static_cast<uint32_t>(parents[i + 1]), tokens[i], 0, 0, 0);
    return tree;
  }

  static BlockPaths paths_of(const DraftTree& tree) {
    BlockPaths paths;
    for (uint32_t node = 1; node < tree.width(); ++node) {
      BlockTokens path;
      for (uint32_t at = node; at != 0; at = tree[at].parent) path.insert(path.begin(), tree[at].token);
      paths.push_back(path);
    }
    return paths;
  }

  /// What the block says of the last draft, before its tree.
  void expect_block(const Draft& draft, const std::string& round) {
    const ModelConfig& config = drafter_->config().transformer;
    const TensorView& norm = drafter_file_->require("output_norm", 1, config.hidden);
    std::vector<float> weight(norm.elements());
    dequantize(norm.type, norm.bytes, weight);
    EXPECT_LE(max_difference(rms_norm(drafter_->hidden_states(), weight, config.rms_eps),
                             (*tensors_)[round + ".drafter_hidden"]),
              tolerance(kBlockLogits, kHalfCacheHiddenTolerance));
    std::vector<float> logits;
    for (uint32_t depth = 1; depth <= drafter_->max_depth(); ++depth) {
      const std::vector<float> row = draft.logits_at(depth);
      logits.insert(logits.end(), row.begin(), row.end());
    }
    EXPECT_LE(max_difference(logits, (*tensors_)[round + ".draft_logits"]), tolerance(kBlockLogits));
  }

  /// The lists and the confidence along the golden chain, as far as the draft went its way.
  void expect_chain(const Draft& draft, const DraftTree& tree, const nlohmann::json& round, const std::string& name) {
    const auto confidence = round.at("confidence").get<std::vector<double>>();
    const size_t vocab = model_->config().vocab;
    ASSERT_EQ(draft.lists(), confidence.size());
    ASSERT_EQ(drafter_->confidence().size(), confidence.size());
    EXPECT_EQ(draft.beams(), std::vector<uint32_t>()) << "no pass of their own";
    for (uint32_t i = 0; i < draft.lists(); ++i) {
      EXPECT_NEAR(drafter_->confidence()[i], confidence[i], tolerance(1e-4, kHalfCacheTolerance)) << i;
      const DepthCandidates list = draft.list(i);
      if (!name.empty()) {
        const auto row = (*tensors_)[name + ".chain_logits"].subspan(i * vocab, vocab);
        double sum = 0, worst = 0;
        for (const float logit : row) sum += std::exp(static_cast<double>(logit));
        for (size_t rank = 0; rank < list.tokens.size(); ++rank) {
          worst = std::max(worst, std::abs(double{list.logits[rank]} - row[list.tokens[rank]]));
        }
        EXPECT_LE(worst, tolerance(kBlockLogits)) << i;
        EXPECT_NEAR(list.log_sum_exp, std::log(sum), tolerance(kBlockLogits)) << i;
      }
      if (list.tokens[0] != tree[i + 1].token) return;
    }
  }

  /// The selector's scores of each place behind the token that the draft's own chain has before it.
  void expect_scores(const Draft& draft, const std::string& name) {
    const uint32_t count = draft.candidates;
    const std::span<const float> scores = (*tensors_)[name + ".scores"];
    ASSERT_EQ(scores.size(), size_t{draft.lists()} * count * count);
    size_t before = 0;  // place of the token among the candidates, which are sorted by the block's logits
    for (uint32_t i = 0; i < draft.lists(); ++i) {
      const auto row = scores.subspan((i * count + before) * count, count);
      std::vector<float> sorted(row.begin(), row.end());
      std::ranges::sort(sorted, std::greater<>());
      const DepthCandidates list = draft.list(i);
      EXPECT_LE(max_difference(list.logits, sorted), tolerance(2 * kBlockLogits, 2 * kHalfCacheTolerance)) << i;
      const std::vector<float> block = draft.logits_at(i + 1);
      const float chosen = block[list.tokens[0]];
      before = static_cast<size_t>(std::ranges::count_if(block, [&](float logit) { return logit > chosen; }));
      ASSERT_LT(before, count);
      EXPECT_NEAR(chosen, (*tensors_)[name + ".unary"][i * count + before], tolerance(kBlockLogits)) << i;
    }
  }

  void expect_tree(const DraftTree& made, const nlohmann::json& round, uint32_t root) const {
    const BlockPaths expected = paths_of(tree_of(round, root)), paths = paths_of(made);
    const double gap = round.value("min_order_gap", 0.0), cut = round.value("cut_gap", 0.0);
    if (gap > near_tie()) {
      EXPECT_EQ(paths, expected);
    }
    if (cut > near_tie()) {
      EXPECT_EQ(std::set<BlockTokens>(paths.begin(), paths.end()),
                std::set<BlockTokens>(expected.begin(), expected.end()));
    }
    if (paths != expected) return;
    const auto scores = round.at("path_logprob").get<std::vector<double>>();
    for (uint32_t node = 1; node < made.width(); ++node) {
      EXPECT_NEAR(made[node].score, scores[node - 1], tolerance(2e-3, 16 * kHalfCacheTolerance)) << node;
    }
  }

  std::unique_ptr<DrafterFile> drafter_file_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Drafter> drafter_;
  nlohmann::json json_;
  std::unique_ptr<GoldenTensors> tensors_;
};

TEST_P(BlockGolden, TheConfigIsTheReferences) {
  const DrafterConfig& config = drafter_->config();
  EXPECT_EQ(config.block_size, json_.at("block_size").get<uint32_t>());
  EXPECT_EQ(config.mask_token, json_.at("mask_token_id").get<uint32_t>());
  EXPECT_EQ(config.aux_layers, json_.at("target_layer_ids").get<std::vector<uint32_t>>());
  EXPECT_EQ(config.first_slot(), json_.at("first_slot").get<uint32_t>());
  EXPECT_EQ(config.depths(), json_.at("depth").get<uint32_t>());
  EXPECT_EQ(drafter_->max_depth(), config.depths());
  const std::string kind = json_.at("kind").get<std::string>();
  EXPECT_EQ(config.kind(), kind == "jetspec" ? "JetSpec" : kind == "dspark" ? "DSpark" : "DFlash2");
  const bool causal = json_.at("kind") == "jetspec";
  for (const DrafterAttention& layer : config.attention) EXPECT_EQ(layer.causal, causal);
}

TEST_P(BlockGolden, RoundsDraftAndAcceptWhatTheReferenceDoes) {
  std::vector<std::string> kinds = {"chain"};
  for (const nlohmann::json& budget : json_.at("budgets")) kinds.push_back(std::to_string(budget.get<uint32_t>()));
  for (const std::string& kind : kinds) {
    for (size_t p = 0; p < json_.at("prompts").size(); ++p) {
      const nlohmann::json& prompt = json_.at("prompts").at(p);
      const nlohmann::json& rounds = prompt.at(kind).at("rounds");
      const bool all = prompt_under_test(prompt.at("name").get<std::string>());
      if (!all && (p > 0 || kind != "chain")) continue;  // the first three rounds have tensors
      SCOPED_TRACE(kind + " of " + prompt.at("name").get<std::string>());
      const auto text = prompt.at("prompt_ids").get<BlockTokens>();
      Sequence sequence(*model_, drafter_.get());
      ForwardOutput output = pass_over(sequence, text);
      ASSERT_TRUE(sequence.append(text, output));
      SequenceDrafts drafts(sequence);
      TreeDrafter trees(drafts);
      auto root = prompt.at("output_ids").at(0).get<uint32_t>();
      for (size_t i = 0; i < (all ? rounds.size() : 3); ++i) {
        const nlohmann::json& round = rounds.at(i);
        SCOPED_TRACE(i);
        ASSERT_EQ(sequence.length(), round.at("start").get<uint32_t>());
        const DraftTree tree = tree_of(round, root);
        DraftWish wish{drafter_->max_depth()};
        if (kind != "chain") wish.nodes = tree.drafted();
        ASSERT_TRUE(trees.draft(root, wish, {}));
        trees.begin();
        if (kind == "chain") {
          const std::string name = p == 0 && i < 3 ? "round" + std::to_string(i) : "";
          if (!name.empty()) expect_block(drafts.last(), name);
          const bool has_scores = json_.at("kind") == "dflash2" && cache_under_test() == CacheType::f32;
          if (has_scores && !name.empty()) expect_scores(drafts.last(), name);
          if (round.contains("confidence")) expect_chain(drafts.last(), tree, round, name);
          trees.build_chain(drafter_->max_depth());
          if (cache_under_test() == CacheType::f32) {
            EXPECT_EQ(paths_of(trees.tree()), paths_of(tree));
          }
        } else {
          trees.build(tree.drafted());
        }
        expect_tree(trees.tree(), round, root);
        ForwardInput input = sequence.tree(tree, HeadOutput::argmax);
        input.aux_hidden_states = true;
        output = model_->forward(input);
        AcceptedPath path;
        accept(
            tree, [&](uint32_t node) { return WalkedToken(output.best(node)); }, path);
        const auto accepted = round.at("accepted_indices").get<BlockTokens>();
        if (round.at("next_token").is_null()) {  // the text ended with the last of them
          EXPECT_EQ(i + 1, rounds.size());
          ASSERT_LE(accepted.size(), path.nodes.size());
          path.nodes.resize(accepted.size());
          EXPECT_EQ(path.nodes, accepted);
          break;
        }
        if (cache_under_test() == CacheType::f32) {
          EXPECT_EQ(path.nodes, accepted);
          EXPECT_EQ(path.bonus, round.at("next_token").get<uint32_t>());
        }
        path.nodes = accepted;
        sequence.commit(tree, path, output);
        root = round.at("next_token").get<uint32_t>();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, BlockGolden,
    ::testing::Values(BlockCase{"tiny-qwen3-jetspec", "jetspec"}, BlockCase{"tiny-qwen3-jetspec-f16.gguf", "jetspec"},
                      BlockCase{"tiny-qwen3-dspark", "dspark"}, BlockCase{"tiny-qwen3-dspark-f16.gguf", "dspark"},
                      BlockCase{"tiny-qwen3-dflash2", "dflash2"}, BlockCase{"tiny-qwen3-dflash2-f16.gguf", "dflash2"}),
    [](const auto& info) { return test::test_name(info.param.drafter); });

}  // namespace
}  // namespace canopy::test
