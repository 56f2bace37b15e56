// Relatives of DFlash, loaded with their model: JetSpec, whose blocks are causal, DSpark and DFlash2, whose trees stand
// on paths. Every mode writes the text of plain decoding and leaves the same cache, and what is drafted does not depend
// on what was in the caches before.

#include <gtest/gtest.h>

#include "engine/session/measurement.h"
#include "tests/base/expect_error.h"
#include "tests/session/head_modes.h"

namespace canopy::test {
namespace {

struct BlockKind {
  const char* name;    // DrafterConfig::kind()
  const char* folder;  // of the golden files; "-f16.gguf" behind it is the same as GGUF
  uint32_t block;      // the root included
};

void PrintTo(const BlockKind& kind, std::ostream* out) {
  *out << kind.name;
}

class BlockModes : public HeadModes, public ::testing::WithParamInterface<BlockKind> {
 protected:
  BlockModes() : HeadModes(kFromDflash, 7) {}

  static std::string gguf() { return std::string(GetParam().folder) + "-f16.gguf"; }

  void open_pair(const std::string& drafter, uint32_t context = 512) {
    open("tiny-qwen3", drafter, context);
    ASSERT_NE(loaded_->drafter, nullptr);
    EXPECT_EQ(loaded_->drafter->source(), kFromDflash);
    EXPECT_EQ(loaded_->describe().drafter_kind, GetParam().name);
    EXPECT_EQ(loaded_->drafter_warnings, std::vector<std::string>());
    EXPECT_EQ(loaded_->drafter_note, "");
    EXPECT_EQ(loaded_->block(), GetParam().block);
  }

  std::vector<uint32_t> code() const { return loaded_->text.encode_raw(kCode); }

  static Way paper() { return {"adaptive, paper", DecodeMode::adaptive, 1, CostPolicy::paper, kFromDflash}; }
};

TEST_P(BlockModes, GreedyTextIsThatOfPlainDecoding) {
  open_pair(GetParam().folder);
  EXPECT_GT(expect_same(code(), tokens(32)), 20u);
  EXPECT_EQ(fresh(paper(), code(), tokens(32)).ids, fresh(plain(), code(), tokens(32)).ids);
}

TEST_P(BlockModes, SeededTextIsThatOfPlainDecoding) {
  open_pair(gguf());
  expect_same(code(), tokens(24, 0.9f));
  EXPECT_EQ(fresh(paper(), code(), tokens(24, 0.9f)).ids, fresh(plain(), code(), tokens(24, 0.9f)).ids);
}

TEST_P(BlockModes, TextWithCheapDraftsIsThatOfPlainDecoding) {
  open_pair(GetParam().folder);
  expect_same_with_cheap_drafts();
}

TEST_P(BlockModes, SecondTurnsAndBranchesDraftWhatTheyWouldAlone) {
  open_pair(GetParam().folder);
  expect_turns_as_alone();
}

TEST_P(BlockModes, SecondTurnsBehindPlainOnesDraftAllTheSame) {
  open_pair(gguf());
  expect_turns_behind_plain_ones();
}

TEST_P(BlockModes, AFullContextAndACancelledReplyLeaveWhatPlainDecodingLeaves) {
  open_pair(GetParam().folder);
  const auto prompt = code();
  for (const uint32_t room : {1u, 6u}) {
    open_pair(GetParam().folder, static_cast<uint32_t>(prompt.size()) + room);
    expect_same(prompt, tokens(200));
  }
  StopAtOp stop(stepping_);
  open(stepping_, "tiny-qwen3", GetParam().folder);
  expect_cancelled_anywhere(prompt, stop);
}

TEST_P(BlockModes, WhatDraftsTakeIsMeasured) {
  open_pair(GetParam().folder);
  {
    ModelTimer timer(*loaded_->model, loaded_->resident->current(), {});
    for (const uint32_t context : {0u, 40u, 200u}) {
      for (const uint32_t waiting : {1u, 8u, 64u}) EXPECT_GT(timer.draft_ms(waiting, context), 0);
    }
  }
  EXPECT_TRUE(loaded_->calibrate(0.3, {}).has_draft());
  EXPECT_NE(loaded_->calibration_key().drafter.find(std::string(GetParam().folder) + ", " + GetParam().name + ", "),
            std::string::npos)
      << loaded_->calibration_key().drafter;
  EXPECT_EQ(fresh(adaptive(), code(), tokens(24)).ids, fresh(plain(), code(), tokens(24)).ids);
}

INSTANTIATE_TEST_SUITE_P(All, BlockModes,
                         ::testing::Values(BlockKind{"JetSpec", "tiny-qwen3-jetspec", 8},
                                           BlockKind{"DSpark", "tiny-qwen3-dspark", 9},
                                           BlockKind{"DFlash2", "tiny-qwen3-dflash2", 8}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace canopy::test
