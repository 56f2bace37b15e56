// The check against plain decoding in the window: the button below a reply, its progress, and the three ways it ends.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/app/support/ui_harness.h"

namespace canopy::test {
namespace {

using namespace app;  // NOLINT: the whole file is about it

using CheckPhase = ArCheck::Phase;

/// The application with an engine that answers every request with the same tokens. A test can have one token of AR
/// replies changed, and AR replies stopped half way.
class CheckUi {
 public:
  CheckUi() : ui({}, 1600, 1000) {
    ui.engine().script = [this](ScriptedEngine& engine, const Command& command) { answer(engine, command); };
    ui.app().run(OpenModel{"/models/a.gguf"});
    ui.app().pump();
    ui.app().run(SendMessage{"Hello"});
    ui.app().pump();
  }
  const ArCheck& check() const { return ui.view().checks.check; }
  /// Finishes the reply that was stopped half way.
  void go_on() { finish(ui.engine(), ui.engine().last<Generate>(), FinishReason::stop_token); }

  UiHarness ui;
  int changed = -1;     // index of the token that plain decoding writes differently; -1: none
  bool halves = false;  // an AR reply stops half way

 private:
  static constexpr uint32_t kTokens = 40;

  void answer(ScriptedEngine& engine, const Command& command) {
    if (std::holds_alternative<LoadModel>(command)) {
      ModelReady model = small_model();
      model.drafter = "drafter.gguf";
      engine.publish(model);
    }
    if (std::holds_alternative<StopReply>(command) && pending_ != 0) {
      ReplyFinished finished;
      finished.reply_id = pending_;
      finished.reason = FinishReason::cancelled;
      engine.publish(finished);
      pending_ = 0;
    }
    const auto* generate = std::get_if<Generate>(&command);
    if (!generate) return;
    pending_ = generate->reply_id;
    const bool plain = generate->mode == DecodeMode::ar;
    engine.publish(PrefillProgress{pending_, 20, 20});
    engine.publish(ReplyStarted{pending_, 20, 0, 10, token(0, plain)});
    rounds(engine, *generate, 1, plain && halves ? kTokens / 2 : kTokens);
    if (!plain || !halves) finish(engine, *generate, FinishReason::stop_token);
  }
  uint32_t token(uint32_t at, bool plain) const { return plain && static_cast<int>(at) == changed ? 999 : 100 + at; }
  void rounds(ScriptedEngine& engine, const Generate& generate, uint32_t from, uint32_t to) {
    const bool plain = generate.mode == DecodeMode::ar;
    for (uint32_t at = from; at < to; ++at) {
      auto record = std::make_shared<RoundRecord>();
      record->mode = record->shape = plain ? DecodeMode::ar : DecodeMode::tree;
      record->round = at - 1;
      record->emitted = {token(at, plain)};
      engine.publish(TextDelta{generate.reply_id, "word ", at + 1, 20 + at, 50});
      engine.publish(RoundFinished{generate.reply_id, record, at, 5 * (at - 1), {5 * at}, false});
    }
  }
  void finish(ScriptedEngine& engine, const Generate& generate, FinishReason reason) {
    if (halves && generate.mode == DecodeMode::ar) rounds(engine, generate, kTokens / 2, kTokens);
    ReplyFinished finished;
    finished.reply_id = generate.reply_id;
    finished.reply_tokens = kTokens;
    finished.reason = reason;
    finished.mode = *generate.mode;
    engine.publish(finished);
    pending_ = 0;
  }

  uint64_t pending_ = 0;
};

constexpr const char* kButton = "//Chat/**/Check against plain decoding";

TEST(CheckUiTest, EqualTextIsSaidWithItsCountAndOnlyWhenAsked) {
  CheckUi test;
  EXPECT_TRUE(test.ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(4);
    IM_CHECK_EQ(test.ui.engine().count<Generate>(), 1u);  // a check never starts by itself
    const size_t messages = test.ui.view().messages.nodes().size();
    ctx->ItemClick(kButton);
    ctx->Yield(4);
    IM_CHECK_EQ(test.ui.engine().count<Generate>(), 2u);
    IM_CHECK(test.check().phase == CheckPhase::same);
    IM_CHECK_STR_EQ(check_words(test.check()).c_str(), "Same text as plain decoding: 40 of 40 tokens");
    IM_CHECK_EQ(test.ui.view().messages.nodes().size(), messages);
    ctx->ItemClick("//Chat/**/Dismiss check");
    ctx->Yield(3);
    IM_CHECK(test.check().phase == CheckPhase::none);
    IM_CHECK(!ctx->ItemExists("//Chat/**/Dismiss check"));
  }));
}

TEST(CheckUiTest, AMismatchIsSaidWithItsIndex) {
  CheckUi test;
  test.changed = 17;
  EXPECT_TRUE(test.ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(4);
    ctx->ItemClick(kButton);
    ctx->Yield(4);
    IM_CHECK(test.check().phase == CheckPhase::different);
    IM_CHECK_EQ(*test.check().difference, 17u);
    IM_CHECK_STR_EQ(check_words(test.check()).c_str(), "Differs from plain decoding at token 18 of 40");
    IM_CHECK(ctx->ItemExists("//Chat/**/Dismiss check"));
  }));
}

TEST(CheckUiTest, AMismatchSparesTheEngineTheRest) {
  CheckUi test;
  test.changed = 3;
  test.halves = true;
  EXPECT_TRUE(test.ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(4);
    ctx->ItemClick(kButton);
    ctx->Yield(4);
    IM_CHECK(test.check().phase == CheckPhase::different);
    IM_CHECK_EQ(test.ui.engine().count<StopReply>(), 1u);
  }));
}

TEST(CheckUiTest, ShowsItsProgressAndIsCancelledByButtonAndByEsc) {
  CheckUi test;
  test.halves = true;
  EXPECT_TRUE(test.ui.run([&](ImGuiTestContext* ctx) {
    for (const bool by_key : {false, true}) {
      ctx->Yield(4);
      ctx->ItemClick(kButton);
      ctx->Yield(4);
      IM_CHECK(test.check().running());
      IM_CHECK_STR_EQ(check_words(test.check()).c_str(), "Checking against plain decoding: 20 of 40 tokens");
      const size_t stops = test.ui.engine().count<StopReply>();
      if (by_key)
        ctx->KeyPress(ImGuiKey_Escape);
      else
        ctx->ItemClick("//Chat/**/Cancel check");
      ctx->Yield(4);
      IM_CHECK(test.check().phase == CheckPhase::cancelled);
      IM_CHECK_EQ(test.ui.engine().count<StopReply>(), stops + 1);
    }
    test.halves = false;
    ctx->ItemClick(kButton);  // once more, to its end
    ctx->Yield(4);
    IM_CHECK(test.check().phase == CheckPhase::same);
  }));
}

TEST(CheckUiTest, ThePaletteHasItAndAQuestionGoesFirst) {
  CheckUi test;
  test.halves = true;
  EXPECT_TRUE(test.ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(4);
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_K);
    ctx->Yield(3);
    ctx->KeyCharsAppend("check against");
    ctx->Yield(2);
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(4);
    IM_CHECK(test.check().running());
    test.ui.app().run(SendMessage{"Go on"});
    ctx->Yield(4);
    IM_CHECK(test.check().phase == CheckPhase::cancelled);
    IM_CHECK_EQ(test.ui.view().messages.size(), 4u);
    IM_CHECK(!test.ui.view().busy());
  }));
}

}  // namespace
}  // namespace canopy::test
