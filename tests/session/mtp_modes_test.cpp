// A head that predicts further tokens, loaded with its model: every mode writes the text of plain decoding and leaves
// the same cache, and what is drafted does not depend on what was in the caches before.

#include <gtest/gtest.h>

#include "engine/model/mtp_head.h"
#include "engine/session/measurement.h"
#include "tests/base/expect_error.h"
#include "tests/compute/forwarding_device.h"
#include "tests/session/head_modes.h"

namespace canopy::test {
namespace {

class MtpModes : public HeadModes {
 protected:
  MtpModes() : HeadModes(kFromMtp, 3) {}  // the one layer of attention, behind recurrent ones
};

TEST_F(MtpModes, GreedyAndSeededTextIsThatOfPlainDecoding) {
  for (const auto& [model, drafter] : {std::pair{"tiny-qwen3_5-mtp", ""},
                                       {"tiny-qwen3_5-mtp-f16.gguf", "mtp"},
                                       {"tiny-qwen3_5-mtp-f16.gguf", "mtp-tiny-qwen3_5-f16.gguf"},
                                       {"tiny-qwen3_5-mtp-f16.gguf", "tiny-qwen3_5-mtp"}}) {
    SCOPED_TRACE(std::string(model) + ", " + drafter);
    open(model, drafter);
    ASSERT_NE(loaded_->drafter, nullptr);
    EXPECT_EQ(loaded_->drafter->source(), kFromMtp);
    EXPECT_EQ(loaded_->draft_model, nullptr);
    EXPECT_EQ(loaded_->drafter_note, "");
    EXPECT_EQ(loaded_->describe().drafter, std::string(drafter).size() <= 3 ? "MTP head" : drafter);
    EXPECT_GT(loaded_->memory_use().drafter, 0u);
    EXPECT_EQ(loaded_->block(), MtpHead::kDeepest + 1);
    const auto prompt = loaded_->text.encode_raw(kCode);
    EXPECT_GT(expect_same(prompt, tokens(32)), 20u);
    if (std::string(drafter).empty()) expect_same(prompt, tokens(24, 0.9f));
  }
}

TEST_F(MtpModes, GreedyTextWithCheapDraftsIsThatOfPlainDecoding) {
  open("tiny-qwen3_5-mtp", "");
  expect_same_with_cheap_drafts();
}

TEST_F(MtpModes, SecondTurnsAndBranchesDraftWhatTheyWouldAlone) {
  open("tiny-qwen3_5-mtp", "");
  expect_turns_as_alone();
}

TEST_F(MtpModes, SecondTurnsBehindPlainOnesDraftAllTheSame) {
  open("tiny-qwen3_5-mtp", "");
  expect_turns_behind_plain_ones();
}

TEST_F(MtpModes, AFullContextAndACancelledReplyLeaveWhatPlainDecodingLeaves) {
  open("tiny-qwen3_5-mtp", "");
  const auto prompt = loaded_->text.encode_raw(kCode);
  for (const uint32_t room : {1u, 6u}) {
    open("tiny-qwen3_5-mtp", "", static_cast<uint32_t>(prompt.size()) + room);
    expect_same(prompt, tokens(200));
  }
  StopAtOp stop(stepping_);
  open(stepping_, "tiny-qwen3_5-mtp", "");
  expect_cancelled_anywhere(prompt, stop);
}

/// A device that says at some time that its memory is full.
class FullDevice final : public ForwardingDevice {
 public:
  explicit FullDevice(Device& inner) : ForwardingDevice(inner) {}
  MemoryInfo memory() const override {
    MemoryInfo memory = ForwardingDevice::memory();
    if (is_full) memory.available = 1024;
    return memory;
  }
  bool is_full = false;
};

TEST_F(MtpModes, AHeadWithoutRoomIsLeftOutUnlessItWasNamed) {
  for (const bool named : {false, true}) {
    FullDevice device(device_under_test());
    OpenRequest request;
    request.path = golden_folder() / "tiny-qwen3_5-mtp";
    choose_drafter(named ? "mtp" : "", request);
    request.cache_type = cache_under_test();
    request.context = 256;
    request.self_test = false;
    OpenCallbacks callbacks;
    callbacks.progress = [&](const LoadProgress& step) { device.is_full |= step.in_bytes; };
    if (named) {
      EXPECT_THROW(Engine::open(device, request, callbacks), Error);
      continue;
    }
    loaded_ = Engine::open(device, request, callbacks);
    EXPECT_EQ(loaded_->drafter, nullptr);
    EXPECT_EQ(loaded_->describe().drafter, "");
    EXPECT_NE(loaded_->describe().drafter_note.find("MTP head: The drafter needs"), std::string::npos)
        << loaded_->describe().drafter_note;
    device.is_full = false;
    EXPECT_FALSE(reply(tree(), loaded_->text.encode_raw(kCode), tokens(4)).ids.empty());
    loaded_.reset();
  }
}

TEST_F(MtpModes, WhatDraftsTakeIsMeasured) {
  open("tiny-qwen3_5-mtp", "");
  {
    ModelTimer timer(*loaded_->model, loaded_->resident->current(), {});
    for (const uint32_t context : {0u, 40u, 200u}) {
      for (const uint32_t waiting : {1u, 2u, 8u, 16u, 64u}) EXPECT_GT(timer.draft_ms(waiting, context), 0);
    }
  }
  const CostTable table = loaded_->calibrate(0.3, {});
  EXPECT_TRUE(table.has_draft());
  EXPECT_NE(loaded_->calibration_key().drafter.find("MTP head, a head for further tokens, "), std::string::npos);
  const auto prompt = loaded_->text.encode_raw(kCode);
  const Reply expected = fresh(plain(), prompt, tokens(24));
  EXPECT_EQ(fresh(adaptive(), prompt, tokens(24)).ids, expected.ids);
}

TEST_F(MtpModes, WhatIsNotThereOrDoesNotFitIsSaid) {
  expect_error("tiny-qwen3 has no head that predicts further tokens", [&] { open("tiny-qwen3", "mtp"); });
  expect_error("The head predicts further tokens of another model: its architecture is qwen35, the model's qwen3.",
               [&] { open("tiny-qwen3", "mtp-tiny-qwen3_5-f16.gguf"); });
  expect_error("its architecture is qwen35, the model's qwen35moe",
               [&] { open("tiny-qwen3_5moe-mtp", "mtp-tiny-qwen3_5-f16.gguf"); });
  open("tiny-qwen3_5-mtp", "");
  const auto prompt = loaded_->text.encode_raw(kCode);
  expect_error("The paper's rule needs a DFlash drafter", [&] {
    fresh({"paper", DecodeMode::adaptive, 1, CostPolicy::paper, kFromMtp}, prompt, tokens(8));
  });
}

}  // namespace
}  // namespace canopy::test
