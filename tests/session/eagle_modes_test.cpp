// An EAGLE-3 head, loaded with its model: every mode writes the text of plain decoding and leaves the same cache, and
// what is drafted does not depend on what was in the caches before.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/model/step_head.h"
#include "engine/session/measurement.h"
#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/session/head_modes.h"

namespace canopy::test {
namespace {

class EagleModes : public HeadModes {
 protected:
  EagleModes() : HeadModes(kFromEagle, 3) {}

  void SetUp() override {
    // tiny-llama3 with a tokenizer: the first 500 tokens of another's.
    std::ifstream file(golden_folder() / "tiny-qwen3" / "tokenizer.json");
    nlohmann::json tokenizer = nlohmann::json::parse(file), vocab, merges = nlohmann::json::array();
    for (const auto& [text, id] : tokenizer.at("model").at("vocab").items()) {
      if (id < 500) vocab[text] = id;
    }
    for (const nlohmann::json& pair : tokenizer.at("model").at("merges")) {
      const auto parts = pair.get<std::vector<std::string>>();
      if (vocab.contains(parts.at(0) + parts.at(1))) merges.push_back(pair);
    }
    tokenizer["model"]["vocab"] = vocab;
    tokenizer["model"]["merges"] = merges;
    tokenizer["added_tokens"] = nlohmann::json::array();
    folder_.write("tokenizer.json", tokenizer.dump());
    for (const char* name : {"config.json", "model.safetensors"}) {
      std::filesystem::copy_file(golden_folder() / "tiny-llama3" / name, folder_.path() / name);
    }
    llama_ = folder_.path().string();
  }

  TempFolder folder_;
  std::string llama_;
};

TEST_F(EagleModes, GreedyAndSeededTextIsThatOfPlainDecoding) {
  for (const auto& [model, drafter] : {std::pair{std::string("tiny-qwen3"), "tiny-qwen3-eagle3"},
                                       {"tiny-qwen3-q8_0.gguf", "tiny-qwen3-eagle3-f16.gguf"},
                                       {llama_, "tiny-llama3-eagle3"},
                                       {llama_, "tiny-llama3-eagle3-f16.gguf"},
                                       {llama_, "tiny-llama3-eagle31"}}) {
    SCOPED_TRACE(model + ", " + drafter);
    if (model == llama_ && cache_under_test() == CacheType::q8_0)
      continue;  // its heads have 16 elements, a block has 32
    open(model.c_str(), drafter);
    ASSERT_NE(loaded_->drafter, nullptr);
    EXPECT_EQ(loaded_->drafter->source(), kFromEagle);
    EXPECT_EQ(loaded_->describe().drafted_by, kFromEagle);
    EXPECT_EQ(loaded_->draft_model, nullptr);
    EXPECT_EQ(loaded_->drafter_note, "");
    EXPECT_EQ(loaded_->describe().drafter, drafter);
    EXPECT_GT(loaded_->memory_use().drafter, 0u);
    EXPECT_EQ(loaded_->block(), StepHead::kDeepest + 1);
    const bool is_trained = model != llama_;
    const std::vector<uint32_t> ids{88, 149, 261, 484, 230, 35, 91, 74, 263, 44, 255, 272, 146, 82};
    const auto prompt = is_trained ? loaded_->text.encode_raw(kCode) : ids;
    const size_t accepted = expect_same(prompt, tokens(32));
    if (is_trained) {
      EXPECT_GT(accepted, 20u);
    }
    expect_same(prompt, tokens(24, 0.9f));
  }
}

TEST_F(EagleModes, GreedyTextWithCheapDraftsIsThatOfPlainDecoding) {
  open("tiny-qwen3", "tiny-qwen3-eagle3");
  expect_same_with_cheap_drafts();
}

TEST_F(EagleModes, SecondTurnsAndBranchesDraftWhatTheyWouldAlone) {
  open("tiny-qwen3", "tiny-qwen3-eagle3");
  expect_turns_as_alone();
}

TEST_F(EagleModes, SecondTurnsBehindPlainOnesDraftAllTheSame) {
  open("tiny-qwen3", "tiny-qwen3-eagle3-f16.gguf");
  expect_turns_behind_plain_ones();
}

TEST_F(EagleModes, AFullContextAndACancelledReplyLeaveWhatPlainDecodingLeaves) {
  open(llama_.c_str(), "tiny-llama3-eagle31");
  const std::vector<uint32_t> prompt{174, 68, 208, 369, 196, 441, 107, 199, 401, 470};
  for (const uint32_t room : {1u, 6u}) {
    open(llama_.c_str(), "tiny-llama3-eagle31", static_cast<uint32_t>(prompt.size()) + room);
    expect_same(prompt, tokens(200));
  }
  StopAtOp stop(stepping_);
  open(stepping_, llama_.c_str(), "tiny-llama3-eagle31");
  expect_cancelled_anywhere(prompt, stop);
}

TEST_F(EagleModes, WhatDraftsTakeIsMeasured) {
  open("tiny-qwen3", "tiny-qwen3-eagle3");
  {
    ModelTimer timer(*loaded_->model, loaded_->resident->current(), {});
    for (const uint32_t context : {0u, 40u, 200u}) {
      for (const uint32_t waiting : {1u, 2u, 8u, 16u, 64u}) EXPECT_GT(timer.draft_ms(waiting, context), 0);
    }
  }
  const CostTable table = loaded_->calibrate(0.3, {});
  EXPECT_TRUE(table.has_draft());
  EXPECT_NE(loaded_->calibration_key().drafter.find("tiny-qwen3-eagle3, an EAGLE-3 head, "), std::string::npos);
  EXPECT_EQ(loaded_->drafter_sizes->drafted_tokens, 384u);
  EXPECT_EQ(loaded_->drafter_sizes->taps, 6u) << "three layers, and (128 + 2 * 64) / 96 for queries, keys and values";
}

TEST_F(EagleModes, WhatDoesNotFitIsSaid) {
  expect_error("it reads states of 96 elements, the model's hidden size is 64.",
               [&] { open(llama_.c_str(), "tiny-qwen3-eagle3"); });
  expect_error("it reads states of 64 elements, the model's hidden size is 96.",
               [&] { open("tiny-qwen3", "tiny-llama3-eagle3-f16.gguf"); });
  open("tiny-qwen3", "tiny-qwen3-eagle3");
  const auto prompt = loaded_->text.encode_raw(kCode);
  expect_error("The paper's rule needs a DFlash drafter", [&] {
    fresh({"paper", DecodeMode::adaptive, 1, CostPolicy::paper, kFromEagle}, prompt, tokens(8));
  });
}

}  // namespace
}  // namespace canopy::test
