#pragma once
// What tests of heads that draft token by token compare with golden data: rows, chains, and trees as EAGLE-2 builds
// them.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/model/beam_head.h"
#include "engine/model/sequence.h"
#include "engine/speculation/tree_builder.h"
#include "tests/model/device_under_test.h"
#include "tests/model/golden_data.h"

namespace canopy::test {

inline constexpr double kHeadLogits = 3e-4;  // tests/golden/README.md
inline constexpr double kHeadKv = 1e-4;
inline constexpr uint32_t kHeadContext = 256;

using Tokens = std::vector<uint32_t>;
using Paths = std::vector<Tokens>;

/// A model, its head, where that is in another file, and what it is compared with.
struct HeadCase {
  const char* model;
  const char* head;
  const char* golden;
};

class HeadGolden : public ::testing::Test, public ::testing::WithParamInterface<HeadCase> {
 protected:
  /// The model, whose head reads the outputs of these layers.
  void load_model(const ModelFile& file, const std::vector<uint32_t>& aux_layers) {
    ModelOptions options;
    options.cache_type = cache_under_test();
    options.context = kHeadContext;
    options.aux_layers = aux_layers;
    model_ = Model::load(device_under_test(), file, options);
  }
  void load(const char* golden) {
    json_ = golden_json(std::string(golden) + ".json");
    tensors_ = std::make_unique<GoldenTensors>(std::string(golden) + ".safetensors");
  }
  bool has(const std::string& tensor) const {
    return !json_.contains("tensors") || json_.at("tensors").contains(tensor);
  }
  /// Of a token in the head's own vocabulary.
  size_t place_of(uint32_t token) const {
    if (drafted_.empty()) return token;
    return static_cast<size_t>(std::ranges::lower_bound(drafted_, token) - drafted_.begin());
  }

  double near_tie() const { return tolerance(3e-5, 2 * kHalfCacheTolerance); }

  ForwardOutput pass_over(Sequence& sequence, std::span<const uint32_t> text) {
    ForwardInput input = sequence.text(text, HeadOutput::argmax);
    input.aux_hidden_states = true;
    ForwardOutput output = model_->forward(input);
    EXPECT_TRUE(output.completed());
    return output;
  }

  /// The list and the state behind a node of the last draft.
  void expect_row(const BlockDraft& draft, uint32_t node, std::span<const float> logits,
                  std::span<const float> hidden = {}) const {
    const DepthCandidates list = draft.list(node);
    double worst = 0, sum = 0;
    for (size_t rank = 0; rank < list.tokens.size(); ++rank) {
      worst = std::max(worst, std::abs(double{list.logits[rank]} - logits[place_of(list.tokens[rank])]));
      EXPECT_GE(list.logits[rank == 0 ? 0 : rank - 1], list.logits[rank]);
    }
    for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
    EXPECT_LE(worst, tolerance(kHeadLogits));
    EXPECT_NEAR(list.log_sum_exp, std::log(sum), tolerance(kHeadLogits));
    EXPECT_NEAR(list.logits[0], *std::ranges::max_element(logits), tolerance(kHeadLogits));
    if (hidden.empty()) return;
    const std::vector<float> states = head_->hidden_states();
    EXPECT_LE(max_difference(std::span(states).subspan(node * hidden.size(), hidden.size()), hidden),
              tolerance(kHeadLogits, kHalfCacheHiddenTolerance));
  }

  std::span<const float> row(const std::string& tensor, size_t i, size_t width) const {
    return (*tensors_)[tensor].subspan(i * width, width);
  }

  static Tokens path_of(const DraftTree& tree, uint32_t node) {
    Tokens path;
    for (; node != 0; node = tree[node].parent) path.insert(path.begin(), tree[node].token);
    return path;
  }
  static Paths paths_of(const DraftTree& tree) {
    Paths paths;
    for (uint32_t node = 1; node < tree.width(); ++node) paths.push_back(path_of(tree, node));
    return paths;
  }

  static DraftTree tree_of(const nlohmann::json& round, uint32_t root) {
    DraftTree tree(root);
    const auto tokens = round.at("node_token_ids").get<Tokens>();
    const auto parents = round.at("parents").get<std::vector<int64_t>>();
    for (size_t i = 0; i < tokens.size(); ++i) tree.add(static_cast<uint32_t>(parents[i + 1]), tokens[i], 0, 0, 0);
    return tree;
  }

  Draft beams(Sequence& sequence, uint32_t root) const {
    const std::vector<double> costs(json_.at("beams").get<size_t>(), 0.0);  // as many paths in every pass
    return sequence.draft(root, DraftWish{json_.at("depth").get<uint32_t>(), costs}).value();
  }

  /// EAGLE-2's tree: of the k best children of each row that was run, the most probable.
  DraftTree best_of(const BlockDraft& draft, uint32_t root) const {
    const auto kept = json_.at("beams").get<uint32_t>();
    std::vector<CandidateNode> nodes;
    std::vector<uint32_t> node_of(draft.tokens.size(), CandidateNode::root);
    for (uint32_t i = 0; i < draft.lists(); ++i) {
      const DepthCandidates list = draft.list(i);
      for (uint32_t rank = 0; rank < kept; ++rank) {
        node_of[i * draft.candidates + rank] = static_cast<uint32_t>(nodes.size());
        nodes.push_back({i == 0 ? CandidateNode::root : node_of[draft.behind[i]], list.tokens[rank],
                         std::exp(double{list.logits[rank]} - list.log_sum_exp)});
      }
    }
    TreeBuilder builder;
    builder.begin(root);
    builder.add_tree(kFromMtp, nodes);
    builder.build(json_.at("nodes").get<uint32_t>());
    return builder.tree();
  }

  void expect_tree(Sequence& sequence, uint32_t root, const nlohmann::json& round, const std::string& head_logits) {
    const Draft draft = beams(sequence, root);
    const Paths expected = paths_of(tree_of(round, root)), made = paths_of(best_of(draft, root));
    if (round.at("min_order_gap").get<double>() > near_tie()) {
      EXPECT_EQ(made, expected);
    }
    if (round.at("cut_gap").get<double>() > near_tie()) {
      EXPECT_EQ(std::set<Tokens>(made.begin(), made.end()), std::set<Tokens>(expected.begin(), expected.end()));
    }
    if (!has(head_logits)) return;
    const auto rows = round.at("head_rows").get<Paths>();
    const size_t vocab = head_->layers_config().vocab;
    const Paths run = paths_of(head_->drafted());
    size_t found = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto at = std::ranges::find(run, rows[i]);
      if (!rows[i].empty() && at == run.end()) continue;
      ++found;
      const uint32_t node = rows[i].empty() ? 0 : 1 + static_cast<uint32_t>(at - run.begin());
      expect_row(draft, node, row(head_logits, i, vocab));
    }
    if (cache_under_test() == CacheType::f32) {
      EXPECT_EQ(found, rows.size());
    }
    EXPECT_EQ(draft.lists(), rows.size());
  }

  void expect_chain(Sequence& sequence, uint32_t root, const Tokens& tokens, double gap, const std::string& name) {
    const auto depths = static_cast<uint32_t>(tokens.size());
    const Draft draft = sequence.draft(root, depths).value();
    ASSERT_EQ(draft.lists(), depths);
    for (uint32_t i = 0; i < depths; ++i) {
      if (gap > near_tie()) {
        ASSERT_EQ(draft.list(i).tokens[0], tokens[i]) << i;
      }
      if (draft.list(i).tokens[0] != tokens[i]) return;  // goes another way from here
      if (!has(name + "chain_logits")) continue;
      const size_t width = (*tensors_)[name + "chain_hidden"].size() / depths;  // of a state
      expect_row(draft, i, row(name + "chain_logits", i, head_->layers_config().vocab),
                 row(name + "chain_hidden", i, width));
    }
  }

  /// All rounds of all prompts as chains and as trees.
  void expect_rounds() {
    for (const char* kind : {"chain", "tree"}) {
      for (size_t p = 0; p < json_.at("prompts").size(); ++p) {
        const nlohmann::json& prompt = json_.at("prompts").at(p);
        const nlohmann::json& rounds = prompt.at(kind).at("rounds");
        SCOPED_TRACE(std::string(kind) + " of " + prompt.at("name").get<std::string>());
        const auto text = prompt.at("prompt_ids").get<Tokens>();
        Sequence sequence(*model_, head_.get());
        ForwardOutput output = pass_over(sequence, text);
        ASSERT_TRUE(sequence.append(text, output));
        auto root = prompt.at("output_ids").at(0).get<uint32_t>();
        for (size_t i = 0; i < rounds.size(); ++i) {
          const nlohmann::json& round = rounds.at(i);
          SCOPED_TRACE(i);
          ASSERT_EQ(sequence.length(), round.at("start").get<uint32_t>());
          const std::string name = p == 0 ? "round" + std::to_string(i) + "." : "no tensors of it: ";
          if (kind == std::string("chain")) {
            expect_chain(sequence, root, round.at("node_token_ids").get<Tokens>(),
                         round.at("min_top2_gap_draft").get<double>(), name);
          } else {
            expect_tree(sequence, root, round, round.contains("head_rows") ? name + "tree_head_logits" : "");
          }
          const DraftTree tree = tree_of(round, root);
          ForwardInput input = sequence.tree(tree, HeadOutput::argmax);
          input.aux_hidden_states = true;
          output = model_->forward(input);
          AcceptedPath path;
          accept(
              tree, [&](uint32_t node) { return WalkedToken(output.best(node)); }, path);
          if (cache_under_test() == CacheType::f32) {
            EXPECT_EQ(path.nodes, round.at("accepted_indices").get<Tokens>());
            EXPECT_EQ(path.bonus, round.at("next_token").get<uint32_t>());
          }
          path.nodes = round.at("accepted_indices").get<Tokens>();
          sequence.commit(tree, path, output);
          root = round.at("next_token").get<uint32_t>();
        }
      }
    }
  }

  std::unique_ptr<Model> model_;
  std::unique_ptr<BeamHead> head_;
  Tokens drafted_;  // ascending; empty: the whole vocabulary
  nlohmann::json json_;
  std::unique_ptr<GoldenTensors> tensors_;
};

}  // namespace canopy::test
