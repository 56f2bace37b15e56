// An assistant of Gemma 4, loaded with its model: every mode writes the text of plain decoding and leaves the same
// cache, and what is drafted does not depend on what was in the caches before.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "engine/format/assistant_file.h"
#include "engine/format/dequantize.h"
#include "engine/model/beam_head.h"
#include "engine/session/measurement.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/format/safetensors_builder.h"
#include "tests/session/head_modes.h"

namespace canopy::test {
namespace {

class AssistantModes : public HeadModes {
 protected:
  AssistantModes() : HeadModes(kFromAssistant, 2) {}

  void SetUp() override {
    if (cache_under_test() == CacheType::q8_0) GTEST_SKIP() << "heads of 16 elements fit no blocks of 32";
  }
  uint32_t unasked_features(uint32_t length) const override { return length - 1; }

  /// An assistant of the golden one's shape that guesses the token before once more, as the model's random weights
  /// often do: layers that add nothing, and the first columns of the model's embedding as its own.
  void write_echo(const TempFolder& folder) const {
    const auto path = golden_folder() / "tiny-gemma4-assistant";
    const AssistantFile golden = AssistantFile::open(path);
    const uint32_t hidden = golden.config().layers.hidden, wide = golden.config().target_hidden;
    const ModelFile model = ModelFile::open(golden_folder() / kModel);
    const TensorView& table = model.require("token_embd", model.config().vocab, wide);
    std::vector<float> embedding(size_t{model.config().vocab} * wide);
    dequantize(table.type, table.bytes, embedding);
    SafetensorsBuilder file;
    for (const TensorView& tensor : golden.tensors()) {
      std::vector<float> values(tensor.rows() * tensor.cols());
      const bool ends_a_branch = tensor.name.ends_with("post_norm");
      if (tensor.rank == 1 && !ends_a_branch) std::ranges::fill(values, 1.0f);
      if (tensor.name == "pre_projection") {
        for (uint32_t i = 0; i < hidden; ++i) values[size_t{i} * 2 * wide + i] = 1;
      }
      for (size_t i = 0; tensor.name == "token_embd" && i < values.size(); ++i) {
        values[i] = embedding[i / hidden * wide + i % hidden];
      }
      std::vector<uint64_t> shape{tensor.cols()};
      if (tensor.rank == 2) shape.insert(shape.begin(), tensor.rows());
      const auto* bytes = reinterpret_cast<const char*>(values.data());
      file.tensor(tensor.shown_name(), "F32", shape, {bytes, values.size() * sizeof(float)});
    }
    std::ifstream config(path / "config.json");
    folder.write("config.json", std::string(std::istreambuf_iterator<char>(config), {}));
    folder.write("model.safetensors", file.build());
  }

  static constexpr const char* kModel = "tiny-gemma4-f16.gguf";
  static constexpr const char* kAssistant = "tiny-gemma4-assistant-f16.gguf";
};

TEST_F(AssistantModes, GreedyAndSeededTextIsThatOfPlainDecoding) {
  for (const auto& [model, drafter] : {std::pair{kModel, kAssistant},
                                       {kModel, "tiny-gemma4-assistant"},
                                       {"tiny-gemma4-e-f16.gguf", kAssistant},
                                       {"tiny-gemma4-moe-f16.gguf", kAssistant}}) {
    SCOPED_TRACE(std::string(model) + ", " + drafter);
    open(model, drafter);
    ASSERT_NE(loaded_->drafter, nullptr);
    EXPECT_EQ(loaded_->drafter->source(), kFromAssistant);
    EXPECT_EQ(loaded_->describe().drafted_by, kFromAssistant);
    EXPECT_EQ(loaded_->draft_model, nullptr);
    EXPECT_EQ(loaded_->drafter_note, "");
    EXPECT_EQ(loaded_->describe().drafter, drafter);
    EXPECT_GT(loaded_->memory_use().drafter, 0u);
    EXPECT_EQ(loaded_->block(), BeamHead::kDeepest + 1);
    const auto prompt = loaded_->text.encode_raw(kCode);
    expect_same(prompt, tokens(32));  // by random weights, little is accepted
    expect_same(prompt, tokens(24, 0.9f));
  }
}

TEST_F(AssistantModes, GreedyTextOfManyAcceptedGuessesIsThatOfPlainDecoding) {
  const TempFolder folder;
  write_echo(folder);
  open(kModel, folder.path().string());
  const auto prompt = loaded_->text.encode_raw(kCode);
  EXPECT_GT(expect_same(prompt, tokens(60)), 30u);
  expect_same(prompt, tokens(40, 0.5f));
  expect_same_with_cheap_drafts();
}

TEST_F(AssistantModes, SecondTurnsAndBranchesDraftWhatTheyWouldAlone) {
  const TempFolder folder;
  write_echo(folder);
  for (const std::string& drafter : {std::string(kAssistant), folder.path().string()}) {
    open(kModel, drafter);
    expect_turns_as_alone();
  }
}

TEST_F(AssistantModes, SecondTurnsBehindPlainOnesDraftAllTheSame) {
  open(kModel, kAssistant);
  expect_turns_behind_plain_ones();
  // And read no token of the text again for it.
  const auto prompt = loaded_->text.encode_raw(kCode);
  const Reply first = fresh(plain(), prompt, tokens(20));
  auto longer = prompt;
  longer.insert(longer.end(), first.ids.begin(), first.ids.end());
  longer.push_back(65);
  EXPECT_EQ(reply(tree(), longer, tokens(8)).reused_tokens + 2, longer.size())
      << "the last reply's last, and the new one";
}

TEST_F(AssistantModes, AFullContextAndACancelledReplyLeaveWhatPlainDecodingLeaves) {
  open(kModel, kAssistant);
  const auto prompt = loaded_->text.encode_raw(kCode);
  for (const uint32_t room : {1u, 6u}) {
    open(kModel, kAssistant, static_cast<uint32_t>(prompt.size()) + room);
    expect_same(prompt, tokens(200));
  }
  StopAtOp stop(stepping_);
  open(stepping_, kModel, kAssistant);
  expect_cancelled_anywhere(prompt, stop);
}

TEST_F(AssistantModes, WhatDraftsTakeIsMeasured) {
  open(kModel, kAssistant);
  {
    ModelTimer timer(*loaded_->model, loaded_->resident->current(), {});
    for (const uint32_t context : {0u, 40u, 200u}) {
      for (const uint32_t waiting : {1u, 2u, 8u, 16u, 64u}) EXPECT_GT(timer.draft_ms(waiting, context), 0);
    }
  }
  const CostTable table = loaded_->calibrate(0.3, {});
  EXPECT_TRUE(table.has_draft());
  EXPECT_NE(loaded_->calibration_key().drafter.find(std::string(kAssistant) + ", an assistant that reads the model's"),
            std::string::npos);
  EXPECT_EQ(loaded_->drafter_sizes->drafted_tokens, 280u);
  EXPECT_EQ(loaded_->drafter_sizes->taps, 4u) << "three of the model's states, 3 * 32 / 24";
  const auto prompt = loaded_->text.encode_raw(kCode);
  const Reply expected = fresh(plain(), prompt, tokens(24));
  EXPECT_EQ(fresh(adaptive(), prompt, tokens(24)).ids, expected.ids);
}

TEST_F(AssistantModes, WhatDoesNotFitIsSaid) {
  expect_error("it reads keys and values of models of Gemma 4; this one's architecture is qwen3.",
               [&] { open("tiny-qwen3", kAssistant); });
  open(kModel, kAssistant);
  const auto prompt = loaded_->text.encode_raw(kCode);
  expect_error("The paper's rule needs a DFlash drafter", [&] {
    fresh({"paper", DecodeMode::adaptive, 1, CostPolicy::paper, kFromAssistant}, prompt, tokens(8));
  });
}

}  // namespace
}  // namespace canopy::test
