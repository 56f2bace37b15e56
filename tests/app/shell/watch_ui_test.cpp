// Watch in the whole application: the switch of layouts, slow motion, the unfolded budget, the chip of other devices.

#include <gtest/gtest.h>
#include <imgui_internal.h>

#include "app/state/settings.h"
#include "tests/app/support/drawn_texts.h"
#include "tests/app/support/ui_harness.h"
#include "tests/base/temp_folder.h"

namespace canopy::test {
namespace {

using app::WindowLayout;

app::AppSettings in_watch() {
  app::AppSettings settings;
  settings.layout = WindowLayout::watch;
  return settings;
}

/// The application in Watch with the recorded demo, paused.
class WatchUi : public testing::Test {
 protected:
  std::unique_ptr<UiHarness> demo(float width = 1280, float height = 800,
                                  const app::AppSettings& settings = in_watch()) {
    auto ui = std::make_unique<UiHarness>(settings, width, height);
    ui->app().run(app::OpenModel{CANOPY_SOURCE_DIR "/assets/demos/code.canopytrace"});
    ui->app().run(app::RoundsCommand(app::ShowRound{5}));
    ui->app().await_answers();
    for (int i = 0; i < 4; ++i) ui->frame();
    return ui;
  }
};

bool visible(const char* window) {
  const ImGuiWindow* found = ImGui::FindWindowByName(window);
  return found && found->Active;
}

TEST_F(WatchUi, TheSwitchAndItsKeyChangeTheLayout) {
  const auto ui = demo();
  EXPECT_TRUE(visible("Watch tree"));
  EXPECT_FALSE(visible("Statistics"));
  EXPECT_TRUE(ui->run([&](ImGuiTestContext* ctx) {
    ctx->ItemClick("//Top bar/Lab");
    ctx->Yield(3);
    IM_CHECK(ui->view().shell.layout == WindowLayout::lab);
    IM_CHECK(visible("Tree"));
    IM_CHECK(!visible("Watch tree"));
    ctx->KeyPress(ImGuiKey_F4);
    ctx->Yield(3);
    IM_CHECK(ui->view().shell.layout == WindowLayout::watch);
    IM_CHECK(visible("Watch tree"));
  }));
}

// A panel that is asked for by name is in the lab.
TEST_F(WatchUi, AskingForAPanelOpensTheLab) {
  const auto ui = demo();
  ui->app().run(app::ShellCommand(app::ShowPanel{"Roofline"}));
  for (int i = 0; i < 4; ++i) ui->frame();
  EXPECT_EQ(ui->view().shell.layout, WindowLayout::lab);
}

TEST_F(WatchUi, TheTreeHasThreeFifthsOfTheHeight) {
  for (const auto& [width, height] :
       {std::pair(900.0f, 600.0f), std::pair(1280.0f, 800.0f), std::pair(2560.0f, 1440.0f)}) {
    const auto ui = demo(width, height);
    const ImGuiWindow* window = ImGui::FindWindowByName("Watch tree");
    ASSERT_NE(window, nullptr);
    EXPECT_GE(window->Size.y, 0.6f * height);
  }
}

TEST_F(WatchUi, ShowSlowlyBeginsAndEndsSlowMotion) {
  const auto ui = demo();
  EXPECT_TRUE(ui->run([&](ImGuiTestContext* ctx) {
    ctx->ItemClick("//Watch tree/Show slowly");
    ctx->Yield(2);
    IM_CHECK(ui->view().rounds.playback.slow_motion);
    ctx->ItemClick("//Watch tree/Show slowly");
    ctx->Yield(2);
    IM_CHECK(!ui->view().rounds.playback.slow_motion);
  }));
}

TEST_F(WatchUi, TheBudgetUnfoldsOverTheTree) {
  const auto ui = demo();
  EXPECT_TRUE(ui->run([&](ImGuiTestContext* ctx) {
    IM_CHECK(!ctx->ItemExists("//Watch tree/**/S(N)"));
    const float height = ctx->ItemInfo("//Watch tree/Canvas").RectFull.GetHeight();
    ctx->ItemClick("//Watch tree/Unfold");
    ctx->SleepNoSkip(0.4f, 1.0f / 60);
    IM_CHECK(ctx->ItemExists("//Watch tree/**/S(N)"));
    // The tree is fitted to what is left, so that the accepted path stays in view.
    const ImRect tree = ctx->ItemInfo("//Watch tree/Canvas").RectFull;
    IM_CHECK_LE(tree.Max.y, ctx->ItemInfo("//Watch tree/**/S(N)").RectFull.Min.y);
    IM_CHECK_GT(tree.GetHeight(), 100.0f);
    ctx->ItemClick("//Watch tree/Unfold");
    ctx->SleepNoSkip(0.4f, 1.0f / 60);
    IM_CHECK(!ctx->ItemExists("//Watch tree/**/S(N)"));
    IM_CHECK_EQ(ctx->ItemInfo("//Watch tree/Canvas").RectFull.GetHeight(), height);
  }));
}

// What another device would do is said whole, and that it is predicted, or not at all.
TEST_F(WatchUi, TheBudgetLineCutsNothingOff) {
  for (const float width : {1000.0f, 1100.0f, 1200.0f, 1280.0f, 1600.0f, 2560.0f}) {
    const auto ui = demo(width, 800);
    const DrawnTexts drawn;
    ui->frame();
    size_t badges = 0, predictions = 0;
    for (const app::DrawnText& each : drawn.all()) {
      const bool other = each.text.find("RTX 4090: ") != std::string::npos;
      predictions += other || each.text == "RTX 4090" || each.text.find("Expected best") != std::string::npos;
      badges += each.text == "predicted";
      EXPECT_FALSE(other && each.text.ends_with("\u2026")) << width << ": " << each.text;
    }
    EXPECT_GE(predictions, width < 1100 ? 1u : 2u) << width;  // the chip goes before the price is cut
    EXPECT_GE(badges, predictions) << width;
    EXPECT_TRUE(drawn.any_contains("RTX 4090: ") || width < 1600) << width;
  }
}

// Where there is little room the prediction goes first and the measured price last.
TEST_F(WatchUi, NoPredictionStandsWithoutItsPrice) {
  size_t prices = 0, chips = 0;
  for (const float width : {480.0f, 560.0f, 640.0f, 720.0f, 850.0f, 1000.0f, 1280.0f, 1920.0f}) {
    const auto ui = demo(width, 800);
    EXPECT_TRUE(ui->run([&](ImGuiTestContext* ctx) {
      const bool price = ctx->ItemExists("//Watch tree/Cost of a pass"),
                 chip = ctx->ItemExists("//Watch tree/As if on");
      prices += price ? 1 : 0;
      chips += chip ? 1 : 0;
      IM_CHECK(price || !chip);
      IM_CHECK(price || !ctx->ItemExists("//Watch tree/Tokens per pass"));
    })) << width;
  }
  EXPECT_GT(prices, chips);
  EXPECT_GE(chips, 2u);
}

TEST_F(WatchUi, PlainAndGuessAreASwitchBesideTheNumbers) {
  UiHarness ui(in_watch(), 1280, 800);
  ui.engine().script = answers_with({"Yes."});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    IM_CHECK(!ctx->ItemExists("//Watch tree/Plain"));
    ui.app().run(app::OpenModel{"/models/a.gguf"});
    ctx->Yield(4);
    ctx->ItemClick("//Watch tree/Plain");
    ctx->Yield(2);
    IM_CHECK(ui.view().drafting == DecodeMode::ar);
    ctx->ItemClick("//Watch tree/Guess");
    ctx->Yield(2);
    IM_CHECK(!ui.view().drafting);
  }));
}

TEST_F(WatchUi, LabHasTheSameSwitchInItsBar) {
  app::AppSettings settings;
  settings.layout = app::WindowLayout::lab;
  UiHarness ui(settings, 1280, 800);
  ui.engine().script = answers_with({"Yes."});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    IM_CHECK(!ctx->ItemExists("//Status bar/Plain"));
    ui.app().run(app::OpenModel{"/models/a.gguf"});
    ctx->Yield(4);
    ctx->ItemClick("//Status bar/Plain");
    ctx->Yield(2);
    IM_CHECK(ui.view().drafting == DecodeMode::ar);
    ctx->ItemClick("//Status bar/Guess");
    ctx->Yield(2);
    IM_CHECK(!ui.view().drafting);
    ui.app().run(app::ShellCommand(app::ShowPage{app::WindowPage::sweep}));  // which measures each way anyway
    ctx->Yield(2);
    IM_CHECK(!ctx->ItemExists("//Status bar/Plain"));
  }));
}

// The line keeps silent until the user has guessed, and asks again for the next pass.
TEST_F(WatchUi, TheWidthCanBeGuessed) {
  const auto ui = demo();
  EXPECT_TRUE(ui->run([&](ImGuiTestContext* ctx) {
    ctx->ItemClick("//Watch tree/Guess it");
    ctx->Yield(3);
    {
      const DrawnTexts drawn;
      ctx->Yield(2);
      IM_CHECK(!drawn.any_contains("Expected best"));
      IM_CHECK(drawn.any_contains("How many guesses"));
    }
    ctx->ItemClick("//Watch tree/5 to 12");
    ctx->Yield(2);
    {
      const DrawnTexts drawn;
      ctx->Yield(2);
      IM_CHECK(drawn.any_contains("best afterwards."));
      IM_CHECK(drawn.any_contains(" of 1 right"));
    }
    ui->app().run(app::RoundsCommand(app::StepRound{1}));
    ctx->Yield(3);
    IM_CHECK(ctx->ItemExists("//Watch tree/5 to 12"));
    ctx->ItemClick("//Watch tree/Guess it");
    ctx->Yield(2);
    IM_CHECK(!ctx->ItemExists("//Watch tree/5 to 12"));
  }));
}

TEST_F(WatchUi, F1SaysWhatThePartsAreAndEscCloses) {
  for (const auto& [width, height] : {std::pair(900.0f, 600.0f), std::pair(1280.0f, 800.0f)}) {
    const auto ui = demo(width, height);
    EXPECT_TRUE(ui->run([&](ImGuiTestContext* ctx) {
      ctx->KeyPress(ImGuiKey_F1);
      ctx->Yield(4);
      IM_CHECK(ui->view().shell.regions_shown);
      const DrawnTexts drawn;
      ctx->Yield();
      for (const char* title : {"What am I looking at", "Chat", "Tree of guesses", "This pass", "Time"})
        IM_CHECK(drawn.has(title));
      IM_CHECK(ctx->ItemExists("//What am I looking at/**/Close"));
      ctx->KeyPress(ImGuiKey_Escape);
      ctx->Yield(2);
      IM_CHECK(!ui->view().shell.regions_shown);
      ctx->KeyPress(ImGuiKey_F1);
      ctx->Yield(4);
      ctx->KeyPress(ImGuiKey_F1);
      ctx->Yield(2);
      IM_CHECK(!ui->view().shell.regions_shown);
    }));
  }
}

TEST_F(WatchUi, TermsAreExplainedOnHover) {
  const auto ui = demo();
  const auto explains = [&](const char* item, const char* words) {
    EXPECT_TRUE(ui->run([&](ImGuiTestContext* ctx) {
      ctx->MouseMove(item);
      ctx->SleepNoSkip(0.8f, 1.0f / 30);
      const DrawnTexts drawn;
      ctx->Yield();
      IM_CHECK(drawn.any_contains(words));
    })) << item;
  };
  explains("//Watch tree/term Accepted", "would have written itself");
  explains("//Watch tree/term Bonus", "comes free with the pass");
  explains("//Watch tree/Tokens per pass", "Plain decoding brings exactly 1");
  explains("//Top bar/Drafter", "guesses the next tokens");
}

// And is there again in the next window.
TEST_F(WatchUi, AnotherDeviceCanBeChosen) {
  const TempFolder folder;
  app::AppSettings settings = in_watch();
  settings.settings_file = (folder.path() / "settings.json").string();
  const char *other = "rx7900xtx", *name = "RX 7900 XTX";
  auto ui = demo(1280, 800, settings);
  EXPECT_TRUE(ui->run([&](ImGuiTestContext* ctx) {
    ctx->ItemClick("//Watch tree/As if on");
    ctx->Yield(2);
    ctx->ItemClick((std::string("//$FOCUSED/") + other).c_str());
    const app::WhatIfAsked& chip = ui->view().what_if.chip;
    const auto answered = [&] { return chip.answer.whole && chip.answer.number == chip.asked; };
    for (int i = 0; i < 3000 && (i < 3 || !answered()); ++i) ctx->SleepNoSkip(0.01f, 0.01f);
    const DrawnTexts drawn;
    ctx->Yield(2);
    IM_CHECK(drawn.has(name));
    IM_CHECK_STR_EQ(app::read_settings(settings.settings_file).settings.as_if_on.c_str(), other);
  }));
  ui.reset();
  settings.saved = app::read_settings(settings.settings_file).settings;
  ui = demo(1280, 800, settings);
  const DrawnTexts drawn;
  ui->frame();
  EXPECT_TRUE(drawn.has(name));
}

TEST_F(WatchUi, ABarOfTheStripShowsItsPass) {
  const auto ui = demo();
  EXPECT_TRUE(ui->run([&](ImGuiTestContext* ctx) {
    const ImRect bars = ctx->ItemInfo("//Watch passes/Passes").RectFull;
    ctx->MouseMoveToPos({bars.Min.x + 3, bars.GetCenter().y});
    ctx->MouseClick();
    ctx->Yield(2);
    IM_CHECK_EQ(ui->view().rounds.playback.shown, size_t{0});
  }));
}

// Seven steps with the mouse, back and on by keys, and the recording that was opened for it is closed with it.
TEST(TourUi, GoesThroughSevenStepsAndPutsTheWindowBack) {
  UiHarness ui({}, 1280, 800);
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ui.app().run(app::OpenModel{"/models/a.gguf"});
    ctx->Yield(4);
    ctx->ItemClick("//Top bar/Tour");
    ctx->Yield(4);
    const auto& tour = ui.view().shell.tour;
    IM_CHECK(tour.shown);
    IM_CHECK(ui.view().shell.layout == WindowLayout::watch);
    IM_CHECK(ui.view().replaying());
    for (uint32_t step = 0; step < app::kTourSteps; ++step) {
      IM_CHECK_EQ(tour.step, step);
      const DrawnTexts drawn;
      ctx->Yield(2);
      // Beside a large part the card is brief and its title alone tells the step, with the dots.
      const std::string head = "Tour, step " + std::to_string(step + 1) + " of 7";
      IM_CHECK(drawn.has(head) || drawn.has(app::tour_step(step, {}).title));
      ctx->ItemClick("//Tour/Next");
      ctx->Yield(2);
    }
    IM_CHECK(!tour.shown);
    IM_CHECK(tour.seen);
    IM_CHECK(!ui.view().replaying());
    IM_CHECK_EQ(tour.step, 0u);
  }));
}

TEST(TourUi, ItsKeysLeadOnAndItGoesOnWhereItWasLeft) {
  UiHarness ui({}, 1280, 800);
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ui.app().run(app::ShellCommand(app::ShowTour{}));
    ctx->Yield(4);
    const auto& tour = ui.view().shell.tour;
    ctx->KeyPress(ImGuiKey_RightArrow, 3);
    ctx->Yield(2);
    IM_CHECK_EQ(tour.step, 3u);
    ctx->KeyPress(ImGuiKey_LeftArrow);
    ctx->Yield(2);
    IM_CHECK_EQ(tour.step, 2u);
    IM_CHECK(ui.view().rounds.playback.phase == app::Phase::verify);
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->Yield(2);
    IM_CHECK(!tour.shown);
    ui.app().run(app::ShellCommand(app::ShowTour{}));
    ctx->Yield(2);
    IM_CHECK_EQ(tour.step, 2u);
  }));
}

// The card is inside the window and covers as little as it can of what it speaks of.
TEST(TourUi, TheCardFitsAtEverySize) {
  for (const auto& [width, height] :
       {std::pair(900.0f, 600.0f), std::pair(1280.0f, 800.0f), std::pair(1920.0f, 1080.0f)}) {
    UiHarness ui({}, width, height);
    ui.app().run(app::ShellCommand(app::ShowTour{}));
    for (uint32_t step = 0; step < app::kTourSteps; ++step) {
      for (int i = 0; i < 4; ++i) ui.frame();
      const DrawnTexts drawn;
      ui.frame();
      for (const std::string& text : drawn.shortened())
        EXPECT_FALSE(text.starts_with("When it") || text.starts_with("What it") || text.starts_with("Why a")) << text;
      EXPECT_TRUE(drawn.has("Next") || drawn.has("Done")) << width << ", step " << step;
      ui.app().run(app::ShellCommand(app::StepTour{1}));
    }
  }
}

TEST(WatchSettings, TheLayoutIsKept) {
  const TempFolder folder;
  const std::string file = (folder.path() / "settings.json").string();
  app::SavedSettings settings;
  settings.layout = WindowLayout::lab;
  app::write_settings(file, settings);
  EXPECT_EQ(app::read_settings(file).settings.layout, WindowLayout::lab);
  folder.write("settings.json", R"({"version": 1, "layout": "stage"})");
  const app::SettingsRead read = app::read_settings(file);
  EXPECT_EQ(read.settings.layout, WindowLayout::watch);
  EXPECT_NE(read.note.find("\"layout\" is \"stage\"; it must be \"watch\", \"what-if\" or \"lab\""), std::string::npos)
      << read.note;
}

}  // namespace
}  // namespace canopy::test
