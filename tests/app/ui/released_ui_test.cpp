// A model that is released after idle minutes, in the whole window and on a clock of the test.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/app/support/drawn_texts.h"
#include "tests/app/support/ui_harness.h"

namespace canopy::test {
namespace {

using app::ModelState;

constexpr int64_t kMinute = 60'000;
constexpr const char* kWords = "Released after 15 idle minutes; your next message loads it again";

class ReleasedUi : public testing::Test {
 protected:
  ReleasedUi() {
    model_.memory.weights = 3ull << 30;
    model_.memory.cache = 1ull << 30;
    model_.memory.context = 8192;
    model_.memory.budget = 24ull << 30;
    model_.memory.available = 20ull << 30;
    app::AppSettings settings;
    settings.clock = [this] { return now_ms_; };
    settings.model_lister = [](const app::ModelSearchRequest& request, const std::stop_token&) {
      app::ModelSearchResult result;
      result.target = request.target;
      for (int i = 0; i < 20; ++i)
        result.found.push_back({"/models/" + std::to_string(i), "a model", 1 << 30, false, ""});
      return result;
    };
    ui_.emplace(settings, 1600, 1000);
    ui_->engine().script = [this, answer = answers_with({"Yes."})](ScriptedEngine& engine, const Command& command) {
      if (const auto* load = std::get_if<LoadModel>(&command)) opened_ = *load;
      if (std::holds_alternative<ReleaseModel>(command)) return engine.publish(ModelReleased{opened_});
      if (std::holds_alternative<LoadModel>(command)) return answers_load_ ? engine.publish(model_) : void();
      answer(engine, command);
    };
    ui_->app().run(app::OpenModel{"/models/a.gguf"});
  }
  const app::ViewModel& view() const { return ui_->view(); }

  /// Chooses 15 minutes in the menu of the model, as a user does.
  void choose_minutes(ImGuiTestContext* ctx) const {
    ctx->Yield(4);
    ctx->ItemClick("//Top bar/Model");
    for (int i = 0; i < 500 && !view().models.looked; ++i) ctx->Yield();
    ctx->Yield(2);
    ctx->ItemClick("//$FOCUSED/15 min");
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->Yield(3);
  }
  void pass(int64_t ms) { now_ms_ += ms; }

  int64_t now_ms_ = 1'700'000'000'000;
  ModelReady model_ = small_model();
  LoadModel opened_;
  bool answers_load_ = true;
  std::optional<UiHarness> ui_;
};

TEST_F(ReleasedUi, ThePromisedMinutesReleaseItAndAMessageBringsItBack) {
  EXPECT_TRUE(ui_->run([&](ImGuiTestContext* ctx) {
    IM_CHECK(std::isinf(ui_->app().seconds_to_change()));
    choose_minutes(ctx);
    IM_CHECK_EQ(view().models.idle_minutes, 15u);
    pass(14 * kMinute);
    ctx->Yield(2);
    IM_CHECK_EQ(ui_->engine().count<ReleaseModel>(), 0u);
    const double left = ui_->app().seconds_to_change();  // one sleep until then, not many
    IM_CHECK_GT(left, 59.0);
    IM_CHECK_LT(left, 60.5);
    pass(kMinute);
    ctx->Yield(3);
    IM_CHECK_EQ(ui_->engine().count<ReleaseModel>(), 1u);
    IM_CHECK(view().model_state == ModelState::released);
    IM_CHECK(std::isinf(ui_->app().seconds_to_change()));
    IM_CHECK(view().cards.empty());
    ctx->ItemClick("//Top bar/Memory");
    {
      const DrawnTexts drawn;
      ctx->Yield(2);
      IM_CHECK(drawn.has(kWords));
      IM_CHECK(drawn.has("Memory of the device, the model released"));
      IM_CHECK(drawn.has("0.0 kB"));  // together: nothing is held
    }
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->Yield(2);
    ui_->app().run(app::ShellCommand(app::SetLayout{app::WindowLayout::watch}));  // which has no status bar
    ctx->Yield(3);
    {
      const DrawnTexts drawn;
      ctx->Yield(2);
      IM_CHECK(drawn.any_contains(", released"));
      IM_CHECK(drawn.has("Write a message; the model loads again"));
      IM_CHECK(drawn.overlapping().empty());
    }
    ctx->ItemClick("//Top bar/Lab");
    ctx->Yield(3);
    ctx->ItemClick("//Chat/##message");
    ctx->KeyChars("Hello");
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(4);
    IM_CHECK_EQ(ui_->engine().count<LoadModel>(), 2u);
    IM_CHECK_EQ(view().messages.back().text, "Yes.");
    IM_CHECK(view().model_state == ModelState::ready);
  }));
}

TEST_F(ReleasedUi, TypingPutsTheReleaseOff) {
  EXPECT_TRUE(ui_->run([&](ImGuiTestContext* ctx) {
    choose_minutes(ctx);
    pass(14 * kMinute);
    ctx->KeyChars("I am still wri");
    ctx->Yield(2);
    pass(14 * kMinute);
    ctx->Yield(2);
    IM_CHECK_EQ(ui_->engine().count<ReleaseModel>(), 0u);
    pass(kMinute);
    ctx->Yield(2);
    IM_CHECK_EQ(ui_->engine().count<ReleaseModel>(), 1u);
  }));
}

TEST_F(ReleasedUi, AQuestionWhoseLoadFailsIsAskedAgainFromItsCard) {
  EXPECT_TRUE(ui_->run([&](ImGuiTestContext* ctx) {
    choose_minutes(ctx);
    pass(15 * kMinute);
    ctx->Yield(3);
    answers_load_ = false;
    ctx->KeyChars("Hello");
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(3);
    IM_CHECK(view().model_state == ModelState::loading);
    IM_CHECK_EQ(view().messages[0].text, "Hello");
    ui_->engine().publish(Failure{ErrorKind::out_of_memory, "The model does not fit", "It needs 9 GB."});
    ctx->Yield(3);
    IM_CHECK_EQ(view().cards.size(), 2u);
    answers_load_ = true;
    ctx->ItemClick("//Chat/**/Run again");
    ctx->Yield(4);
    IM_CHECK_EQ(view().messages.back().text, "Yes.");
    IM_CHECK(view().cards.empty());
  }));
}

TEST_F(ReleasedUi, TheChoiceIsInReachInALowWindow) {
  ui_->resize(900, 420);
  EXPECT_TRUE(ui_->run([&](ImGuiTestContext* ctx) {
    choose_minutes(ctx);
    IM_CHECK_EQ(view().models.idle_minutes, 15u);
    ctx->ItemClick("//Top bar/Model");
    ctx->Yield(3);
    const ImRect display({0, 0}, ImGui::GetIO().DisplaySize);
    IM_CHECK(display.Contains(ctx->ItemInfo("//$FOCUSED/60 min").RectFull));
  }));
}

}  // namespace
}  // namespace canopy::test
