// EAGLE-3 heads against own reference code that EAGLE's class, speculators' layer and llama.cpp agree with: features,
// rows, keys and values, chains and trees of eagle3.json, eagle3_llama3.json and eagle31.json, from folders and GGUF.

#include <gtest/gtest.h>

#include <numeric>

#include "engine/model/eagle_head.h"
#include "tests/base/expect_error.h"
#include "tests/session/head_golden.h"

namespace canopy::test {
namespace {

class EagleGolden : public HeadGolden {
 protected:
  void SetUp() override {
    const ModelFile file = ModelFile::open(golden_folder() / GetParam().model);
    const EagleFile head = EagleFile::open(golden_folder() / GetParam().head);
    // The tokenizers of tiny-llama3's files are made up.
    if (golden() == "eagle3") {
      EXPECT_EQ(check_pair(file, head), std::vector<std::string>());
    }
    std::vector<uint32_t> inputs = head.config().aux_layers_of(file.config().layers);
    load_model(file, inputs);
    head_ = EagleHead::load(head, *model_, {cache_under_test(), {}});
    drafted_ = head.config().draft_token_ids;
    interleaved_ = head.layer_spec().rope == RopeLayout::interleaved;
    load(GetParam().golden);
    for (uint32_t& layer : inputs) ++layer;
    EXPECT_EQ(inputs, json_.at("aux_layer_inputs").get<Tokens>());
    EXPECT_EQ(head.config().norm_before_residual, json_.at("norm_before_residual").get<bool>());
    EXPECT_EQ(head.config().norm_before_fc, json_.at("norm_before_fc").get<bool>());
    EXPECT_EQ(head.config().fc_norm, json_.at("fc_norm").get<bool>());
    EXPECT_EQ(head.config().norm_output, json_.at("norm_output").get<bool>());
    EXPECT_EQ(head.config().layer.has_qk_norm, json_.at("qk_norm").get<bool>());
    EXPECT_EQ(head.config().drafted_tokens(), json_.at("draft_vocab_size").get<uint32_t>());
  }

  std::string golden() const { return GetParam().golden; }
  bool has_cases() const { return json_.contains("cases"); }

  /// A text with tensors of some of its rows: those from `first` on.
  struct GoldenText {
    std::string name;  // of its tensors
    Tokens ids;
    uint32_t root = 0;
    uint32_t first = 0;
    bool keeps_root = false;  // its row is among those of keys and values
  };
  std::vector<GoldenText> texts() const {
    std::vector<GoldenText> all;
    if (!has_cases()) {
      const nlohmann::json& prompt = json_.at("prompts").at(0);
      all.push_back({"prefill.", prompt.at("prompt_ids").get<Tokens>(), prompt.at("output_ids").at(0).get<uint32_t>()});
      return all;
    }
    for (const nlohmann::json& one : json_.at("cases")) {
      all.push_back({one.at("name").get<std::string>() + ".", one.at("ids").get<Tokens>(),
                     one.at("root").get<uint32_t>(), one.at("rows").at(0).get<uint32_t>(), true});
    }
    return all;
  }

  /// Row `first` ... of keys or values as the golden files have them, [kv_heads, count, head_dim].
  std::vector<float> by_head(std::span<const float> rows, bool values, uint32_t first, uint32_t count) const {
    const ModelConfig& config = head_->layers_config();
    const uint32_t dim = config.head_dim, half = dim / 2;
    std::vector<float> all;
    for (uint32_t head = 0; head < config.kv_heads; ++head) {
      for (uint32_t i = first; i < first + count; ++i) {
        const std::span<const float> from = rows.subspan((size_t{i} * config.kv_heads + head) * dim, dim);
        for (uint32_t d = 0; d < dim; ++d) {
          // GGUF files have the two elements of a pair beside each other.
          all.push_back(from[values || !interleaved_ ? d : d < half ? 2 * d : 2 * (d - half) + 1]);
        }
      }
    }
    return all;
  }

  bool interleaved_ = false;
};

TEST_P(EagleGolden, FeaturesAreTheReferences) {
  const size_t width = model_->aux_layers().size() * size_t{model_->config().hidden};
  for (const GoldenText& text : texts()) {
    if (!has(text.name + "features")) continue;
    Sequence sequence(*model_);
    pass_over(sequence, text.ids);
    std::vector<float> features(text.ids.size() * width);
    device_under_test().read(*model_->aux_hidden_states(), 0, std::as_writable_bytes(std::span(features)));
    EXPECT_LE(max_difference(features, (*tensors_)[text.name + "features"]),
              tolerance(kHeadLogits, kHalfCacheHiddenTolerance));
  }
}

TEST_P(EagleGolden, RowsOfTextAreTheReferences) {
  const ModelConfig& config = head_->layers_config();
  for (const GoldenText& text : texts()) {
    SCOPED_TRACE(text.name);
    Sequence sequence(*model_, head_.get());
    // A draft behind each token, as a reply would ask it whose prompt ends there.
    const ForwardOutput output = pass_over(sequence, text.ids);
    ASSERT_TRUE(sequence.append_each(text.ids, output, [&] {
      const uint32_t here = sequence.length();
      SCOPED_TRACE(here);
      const Draft draft = sequence.draft(here < text.ids.size() ? text.ids[here] : text.root, 1).value();
      if (here - 1 >= text.first) {
        expect_row(draft, 0, row(text.name + "head_logits", here - 1 - text.first, config.vocab),
                   row(text.name + "head_hidden", here - 1 - text.first, config.hidden));
      }
      return true;
    }));
  }
}

/// In one go, as a prompt is read.
TEST_P(EagleGolden, KeysAndValuesOfTextAreTheReferences) {
  for (const GoldenText& golden_text : texts()) {
    SCOPED_TRACE(golden_text.name);
    Tokens text = golden_text.ids;
    Sequence sequence(*model_);
    pass_over(sequence, text);
    std::vector<uint32_t> rows(text.size());
    std::iota(rows.begin(), rows.end(), 0u);
    DraftState state(*head_, &text);
    ASSERT_TRUE(head_->append_features(state, rows));
    if (golden_text.keeps_root) text.push_back(golden_text.root);
    ASSERT_TRUE(head_->inject(state));
    EXPECT_EQ(state.backlog(), golden_text.keeps_root ? 0u : 1u) << "the token behind the last is not known";
    const auto count = static_cast<uint32_t>(text.size() - 1);
    for (const bool values : {false, true}) {
      const std::string name = golden_text.name + (values ? "v" : "k");
      if (!has(name)) continue;
      const std::vector<float> kept = dynamic_cast<const StepHead&>(*head_).read_kv(state, values, count);
      EXPECT_LE(max_difference(by_head(kept, values, golden_text.first, count - golden_text.first), (*tensors_)[name]),
                tolerance(kHeadKv))
          << name;
    }
  }
}

TEST_P(EagleGolden, RoundsDraftAndAcceptWhatTheReferenceDoes) {
  if (!has_cases()) return expect_rounds();
  for (const nlohmann::json& one : json_.at("cases")) {
    const std::string name = one.at("name").get<std::string>() + ".";
    SCOPED_TRACE(name);
    const auto text = one.at("ids").get<Tokens>();
    const auto root = one.at("root").get<uint32_t>();
    Sequence sequence(*model_, head_.get());
    const ForwardOutput output = pass_over(sequence, text);
    ASSERT_TRUE(sequence.append(text, output));
    EXPECT_EQ(sequence.length(), one.at("start").get<uint32_t>());
    expect_chain(sequence, root, one.at("chain").get<Tokens>(), one.at("min_top2_gap_draft").get<double>(), name);
    expect_tree(sequence, root, one.at("tree"), name + "tree_head_logits");  // again behind the same root
  }
}

TEST_P(EagleGolden, WhatIsDraftedAgainIsTheSame) {
  Sequence sequence(*model_, head_.get());
  const Tokens text{5, 6, 7, 8};
  const ForwardOutput output = pass_over(sequence, text);
  ASSERT_TRUE(sequence.append(text, output));
  const Draft first = sequence.draft(9, 3).value();
  sequence.draft(10, 3);
  const Draft back = sequence.draft(9, 3).value();
  EXPECT_EQ(first.logits, back.logits) << "another root in between leaves nothing behind";
  EXPECT_EQ(first.tokens, back.tokens);
  expect_error("A draft behind token 99999", [&] { sequence.draft(99999, 1); });
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(sequence.draft(9, 1, stop.get_token()).has_value());
}

TEST(EagleHeads, NeedTheirOwnLayersOfTheModel) {
  const ModelFile file = ModelFile::open(golden_folder() / "tiny-qwen3");
  const EagleFile head = EagleFile::open(golden_folder() / "tiny-qwen3-eagle3");
  ModelOptions options;
  options.context = 64;
  options.aux_layers = {1, 3};
  const auto model = Model::load(device_under_test(), file, options);
  expect_error("The target was loaded with 2 taps that are not the EAGLE-3 head's",
               [&] { EagleHead::load(head, *model, {}); });
}

INSTANTIATE_TEST_SUITE_P(All, EagleGolden,
                         ::testing::Values(HeadCase{"tiny-qwen3", "tiny-qwen3-eagle3", "eagle3"},
                                           HeadCase{"tiny-qwen3", "tiny-qwen3-eagle3-f16.gguf", "eagle3"},
                                           HeadCase{"tiny-llama3", "tiny-llama3-eagle3", "eagle3_llama3"},
                                           HeadCase{"tiny-llama3", "tiny-llama3-eagle3-f16.gguf", "eagle3_llama3"},
                                           HeadCase{"tiny-llama3", "tiny-llama3-eagle31", "eagle31"}),
                         [](const auto& info) { return test::test_name(info.param.head); });

}  // namespace
}  // namespace canopy::test
