// Assistants of Gemma 4 against own reference code that transformers and llama.cpp agree with: chains and trees of
// assistant.json, from a folder and from GGUF.

#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "engine/model/assistant_head.h"
#include "engine/model/mtp_head.h"
#include "tests/base/expect_error.h"
#include "tests/session/head_golden.h"

namespace canopy::test {
namespace {

class AssistantGolden : public HeadGolden {
 protected:
  void SetUp() override {
    const ModelFile file = ModelFile::open(golden_folder() / GetParam().model);
    const AssistantFile assistant = AssistantFile::open(golden_folder() / GetParam().head);
    EXPECT_EQ(check_pair(file, assistant), std::vector<std::string>());
    load_model(file, mtp_aux_layers(file.config()));
    head_ = AssistantHead::load(assistant, *model_, {cache_under_test(), {}});
    load(GetParam().golden);
  }

  /// The text before a case's root is read, all of it with its states or its last `with_states` tokens.
  std::unique_ptr<Sequence> text_of(const nlohmann::json& one, uint32_t with_states = UINT32_MAX) {
    const auto ids = one.at("ids").get<Tokens>();
    auto sequence = std::make_unique<Sequence>(*model_, head_.get());
    const uint32_t start = one.at("start").get<uint32_t>(), last = std::min(with_states, start);
    EXPECT_EQ(ids.size(), start + 1u);
    const auto read = [&](uint32_t first, uint32_t count, bool states) {
      if (count == 0) return;
      const std::span<const uint32_t> part = std::span(ids).subspan(first, count);
      ForwardInput input = sequence->text(part, HeadOutput::argmax);
      input.aux_hidden_states = states;
      const ForwardOutput output = model_->forward(input);
      EXPECT_TRUE(sequence->append(part, output));
    };
    read(0, start - last, false);
    EXPECT_EQ(sequence->feature_length(), start > last ? start - last - 1 : 0u) << "the last alone is missed";
    read(start - last, last, true);
    EXPECT_EQ(sequence->feature_length(), start);
    return sequence;
  }
};

TEST_P(AssistantGolden, ChainsAndTreesAreTheReferences) {
  for (const nlohmann::json& one : json_.at("cases")) {
    const std::string name = one.at("name").get<std::string>() + ".";
    SCOPED_TRACE(name);
    const auto root = one.at("root").get<uint32_t>();
    const auto sequence = text_of(one);
    expect_chain(*sequence, root, one.at("chain").get<Tokens>(), one.at("min_top2_gap").get<double>(), name);
    expect_tree(*sequence, root, one, name + "tree_head_logits");  // again behind the same root
  }
}

TEST_P(AssistantGolden, ReadsTheStateOfTheLastTokenAlone) {
  const nlohmann::json& one = json_.at("cases").at(4);
  const auto root = one.at("root").get<uint32_t>();
  const auto whole = text_of(one), part = text_of(one, 3);
  const Draft expected = whole->draft(root, 5).value(), draft = part->draft(root, 5).value();
  EXPECT_EQ(draft.tokens, expected.tokens);
  EXPECT_EQ(draft.logits, expected.logits);
  EXPECT_EQ(part->backlog(), 0u) << "it was read";
  EXPECT_EQ(part->draft_pages(), 0u) << "it keeps nothing of a text";
  const auto fork = part->fork();
  part->inject();  // its state waits on the host
  fork->truncate(fork->length() - 1);
  EXPECT_EQ(part->draft(root, 5).value().logits, expected.logits);
  EXPECT_EQ(fork->feature_length(), fork->length() - 1);
  expect_error("the features of only", [&] { fork->draft(root, 1); });
}

TEST_P(AssistantGolden, WhatIsDraftedAgainIsTheSame) {
  const auto sequence = text_of(json_.at("cases").at(2));
  const Draft first = sequence->draft(9, 3).value();
  sequence->draft(10, 3);
  const Draft back = sequence->draft(9, 3).value();
  EXPECT_EQ(first.logits, back.logits) << "another root in between leaves nothing behind";
  EXPECT_EQ(first.tokens, back.tokens);
  expect_error("A draft of 13 tokens was asked for; allowed: 1 to 12", [&] { sequence->draft(9, 13); });
  expect_error("A draft behind token 99999", [&] { sequence->draft(99999, 1); });
  Sequence empty(*model_, head_.get());
  expect_error("A draft behind 0 tokens was asked for", [&] { empty.draft(1, 1); });
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(sequence->draft(9, 1, stop.get_token()).has_value());
}

/// The likeliest path among others is what the path alone is, bit for bit.
TEST_P(AssistantGolden, RowsDoNotDependOnTheirNeighbours) {
  for (const nlohmann::json& one : json_.at("cases")) {
    const auto root = one.at("root").get<uint32_t>();
    const auto sequence = text_of(one);
    const Draft chain = sequence->draft(root, 3).value();
    std::vector<float> alone = head_->hidden_states();
    const std::vector<double> free(kMostBeams, 0.0);
    const Draft wide = sequence->draft(root, DraftWish{3, free}).value();
    EXPECT_TRUE(std::ranges::equal(chain.list(0).logits, wide.list(0).logits));
    const DraftTree& tree = head_->drafted();
    const size_t width = model_->config().hidden;
    const std::vector<float> states = head_->hidden_states();
    bool found = false;
    for (uint32_t node = 1; node < tree.width(); ++node) {
      if (tree[node].parent != 0 || tree[node].token != chain.list(0).tokens[0]) continue;
      found = true;
      EXPECT_TRUE(std::ranges::equal(chain.list(1).logits, wide.list(node).logits));
      EXPECT_TRUE(
          std::ranges::equal(std::span(alone).subspan(width, width), std::span(states).subspan(node * width, width)));
    }
    EXPECT_TRUE(found);
  }
}

/// All rows of a draft stand at one position: what it takes hardly grows with the context, of which it has no table.
TEST(AssistantHeads, HaveNoTablesOfPositions) {
  if (cache_under_test() == CacheType::q8_0) GTEST_SKIP() << "heads of 16 elements fit no blocks of 32";
  const ModelFile file = ModelFile::open(golden_folder() / "tiny-gemma4");
  const AssistantFile assistant = AssistantFile::open(golden_folder() / "tiny-gemma4-assistant");
  const auto bytes = [&](uint32_t context) {
    ModelOptions options;
    options.cache_type = cache_under_test();
    options.context = context;
    options.aux_layers = mtp_aux_layers(file.config());
    const auto model = Model::load(device_under_test(), file, options);
    return AssistantHead::load(assistant, *model, {cache_under_test(), {}})->device_bytes();
  };
  const uint64_t positions = 512, tables = positions * (32 + 16) * sizeof(float);
  EXPECT_LT(bytes(64 + positions), bytes(64) + tables / 2);
}

TEST(AssistantHeads, NeedTheLastLayerOfTheModel) {
  const ModelFile file = ModelFile::open(golden_folder() / "tiny-gemma4");
  const AssistantFile assistant = AssistantFile::open(golden_folder() / "tiny-gemma4-assistant");
  ModelOptions options;
  options.context = 64;
  options.aux_layers = {1};
  const auto model = Model::load(device_under_test(), file, options);
  expect_error("an assistant needs that of its last layer, 3, alone",
               [&] { AssistantHead::load(assistant, *model, {}); });
}

INSTANTIATE_TEST_SUITE_P(All, AssistantGolden,
                         ::testing::Values(HeadCase{"tiny-gemma4", "tiny-gemma4-assistant", "assistant"},
                                           HeadCase{"tiny-gemma4-f16.gguf", "tiny-gemma4-assistant-f16.gguf",
                                                    "assistant"}),
                         [](const auto& info) { return test::test_name(info.param.head); });

}  // namespace
}  // namespace canopy::test
