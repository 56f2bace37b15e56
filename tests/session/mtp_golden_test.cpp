// Heads that predict further tokens against own reference code that transformers and llama.cpp agree with: rows, keys
// and values, chains and trees of mtp.json and mtp_moe.json, from folders, from GGUF files and from a file of the head.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/model/mtp_head.h"
#include "engine/model/rotation.h"
#include "tests/base/expect_error.h"
#include "tests/session/head_golden.h"

namespace canopy::test {
namespace {

class MtpGolden : public HeadGolden {
 protected:
  void SetUp() override {
    const ModelFile file = ModelFile::open(golden_folder() / GetParam().model);
    const MtpFile head = MtpFile::open(golden_folder() / GetParam().head);
    EXPECT_EQ(check_pair(file, head), std::vector<std::string>());
    load_model(file, mtp_aux_layers(file.config()));
    head_ = MtpHead::load(head, *model_, {cache_under_test(), {}});
    load(GetParam().golden);
  }

  bool is_moe() const { return json_.contains("cases"); }
};

TEST_P(MtpGolden, RowsOfTextAreTheReferences) {
  const nlohmann::json& first = is_moe() ? json_.at("cases").at(0) : json_.at("prompts").at(0);
  const auto text = first.at(is_moe() ? "ids" : "prompt_ids").get<Tokens>();
  const uint32_t root = is_moe() ? first.at("root").get<uint32_t>() : first.at("output_ids").at(0).get<uint32_t>();
  const std::string name = is_moe() ? "case0." : "prefill.";
  const ModelConfig& config = model_->config();
  Sequence sequence(*model_, head_.get());
  // A draft behind each token, as a reply would ask it whose prompt ends there.
  const ForwardOutput output = pass_over(sequence, text);
  ASSERT_TRUE(sequence.append_each(text, output, [&] {
    const uint32_t here = sequence.length();
    SCOPED_TRACE(here);
    const Draft draft = sequence.draft(here < text.size() ? text[here] : root, 1).value();
    expect_row(draft, 0, row(name + "head_logits", here - 1, config.vocab),
               row(name + "head_hidden", here - 1, config.hidden));
    return true;
  }));
}

/// In one go, as a prompt is read. Rotary positions here are those of the states, one less than the tokens'.
TEST_P(MtpGolden, KeysAndValuesOfTextAreTheReferences) {
  const nlohmann::json& first = is_moe() ? json_.at("cases").at(0) : json_.at("prompts").at(0);
  auto text = first.at(is_moe() ? "ids" : "prompt_ids").get<Tokens>();
  Sequence sequence(*model_);
  pass_over(sequence, text);
  std::vector<uint32_t> rows(text.size());
  std::iota(rows.begin(), rows.end(), 0u);
  DraftState state(*head_, &text);
  ASSERT_TRUE(head_->append_features(state, rows));
  if (is_moe()) text.push_back(first.at("root").get<uint32_t>());  // whose row is among them
  ASSERT_TRUE(head_->inject(state));
  EXPECT_EQ(state.backlog(), is_moe() ? 0u : 1u) << "the token behind the last is not known";
  const ModelConfig& config = head_->layers_config();
  const auto count = static_cast<uint32_t>(text.size() - 1);
  const uint32_t heads = config.kv_heads, dim = config.head_dim, half = config.turned() / 2;
  const std::vector<uint32_t> order = head_order(config);
  const std::vector<double> frequencies = rope_frequencies(config);
  for (const bool values : {false, true}) {
    const std::vector<float> kept = dynamic_cast<const StepHead&>(*head_).read_kv(state, values, count);
    std::vector<float> by_head(kept.size());  // [heads, count, dim]
    for (uint32_t head = 0; head < heads; ++head) {
      for (uint32_t i = 0; i < count; ++i) {
        const float* from = kept.data() + (size_t{i} * heads + head) * dim;
        float* to = by_head.data() + (size_t{head} * count + i) * dim;
        for (uint32_t d = 0; d < dim; ++d) to[values || order.empty() ? d : order[d]] = from[d];
        for (uint32_t pair = 0; !values && pair < half; ++pair) {  // one position further
          const double a = to[pair], b = to[half + pair], angle = frequencies[pair];
          to[pair] = static_cast<float>(a * std::cos(angle) - b * std::sin(angle));
          to[half + pair] = static_cast<float>(a * std::sin(angle) + b * std::cos(angle));
        }
      }
    }
    const std::string name = (is_moe() ? "case0." : "prefill.") + std::string(values ? "v" : "k");
    EXPECT_LE(max_difference(by_head, (*tensors_)[name]), tolerance(kHeadKv)) << name;
  }
}

TEST_P(MtpGolden, RoundsDraftAndAcceptWhatTheReferenceDoes) {
  if (is_moe()) {
    for (const nlohmann::json& one : json_.at("cases")) {
      const auto text = one.at("ids").get<Tokens>();
      const auto root = one.at("root").get<uint32_t>();
      Sequence sequence(*model_, head_.get());
      const ForwardOutput output = pass_over(sequence, text);
      ASSERT_TRUE(sequence.append(text, output));
      EXPECT_EQ(sequence.length(), one.at("start").get<uint32_t>());
      expect_chain(sequence, root, one.at("chain").get<Tokens>(), one.at("min_top2_gap").get<double>(), "case0.");
      expect_tree(sequence, root, one, "case0.tree_head_logits");  // again behind the same root
    }
    return;
  }
  expect_rounds();
}

TEST_P(MtpGolden, WhatCannotBeDraftedIsSaid) {
  Sequence sequence(*model_, head_.get());
  const Tokens text{5, 6, 7, 8};
  const ForwardOutput output = pass_over(sequence, text);
  ASSERT_TRUE(sequence.append(text, output));
  expect_error("A draft of 0 tokens was asked for; allowed: 1 to 12", [&] { sequence.draft(1, 0); });
  expect_error("A draft of 13 tokens", [&] { sequence.draft(1, 13); });
  expect_error("A draft behind token 99999", [&] { sequence.draft(99999, 1); });
  const Draft first = sequence.draft(9, 3).value(), again = sequence.draft(9, 3).value();
  EXPECT_EQ(first.logits, again.logits);
  sequence.draft(10, 3);
  const Draft back = sequence.draft(9, 3).value();
  EXPECT_EQ(first.logits, back.logits) << "another root in between leaves nothing behind";
  Sequence other(*model_, head_.get());
  expect_error("A draft behind 0 tokens was asked for; the state of the last of them is not kept",
               [&] { other.draft(1, 1); });
  const ForwardOutput pass = pass_over(other, text);
  ASSERT_TRUE(other.append(text, pass));
  ASSERT_TRUE(other.draft(9, 1).has_value());
  expect_error("the state of the last of them is not kept", [&] { sequence.draft(9, 1); });
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(other.draft(9, 1, stop.get_token()).has_value());
}

INSTANTIATE_TEST_SUITE_P(All, MtpGolden,
                         ::testing::Values(HeadCase{"tiny-qwen3_5-mtp", "tiny-qwen3_5-mtp", "mtp"},
                                           HeadCase{"tiny-qwen3_5-mtp-f16.gguf", "tiny-qwen3_5-mtp-f16.gguf", "mtp"},
                                           HeadCase{"tiny-qwen3_5-mtp-f16.gguf", "mtp-tiny-qwen3_5-f16.gguf", "mtp"},
                                           HeadCase{"tiny-qwen3_5moe-mtp", "tiny-qwen3_5moe-mtp", "mtp_moe"},
                                           HeadCase{"tiny-qwen3_5moe-mtp-f16.gguf", "tiny-qwen3_5moe-mtp-f16.gguf",
                                                    "mtp_moe"}),
                         [](const auto& info) {
                           return test::test_name(std::string(info.param.model) +
                                                  (info.param.head == std::string(info.param.model) ? "" : "_file"));
                         });

}  // namespace
}  // namespace canopy::test
