// Saved settings and sampling settings in the whole window, under Dear ImGui's Test Engine.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/app/support/ui_harness.h"

namespace canopy::test {
namespace {

namespace fs = std::filesystem;
using app::AppSettings;
using app::read_settings;
using app::ThemeKind;

class SettingsUi : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  /// The application's settings as run_window makes them at a start.
  AppSettings at_start() const {
    const app::SettingsRead read = read_settings(file());
    AppSettings settings;
    settings.settings_file = file();
    settings.saved = read.settings;
    settings.settings_note = read.note;
    settings.theme = read.settings.theme;
    settings.user_scale = read.settings.scale;
    settings.sampling = read.settings.sampling;
    return settings;
  }
  std::string file() const { return (folder_ / "settings.json").string(); }

  fs::path folder_ = fs::path(testing::TempDir()) / ("canopy_settings_ui_" + std::to_string(::getpid()));
};

TEST_F(SettingsUi, ThemeScaleAndSizeOutliveTheWindow) {
  {
    UiHarness ui(at_start());
    EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
      IM_CHECK(ui.view().theme == ThemeKind::dark);
      ctx->ItemClick("//Top bar/Theme");
      ctx->Yield(2);
      // Saved at once, so that a killed program does not lose it.
      IM_CHECK(read_settings(file()).settings.theme == ThemeKind::light);
      ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Equal);
      ctx->Yield(2);
      ui.resize(1000, 700);
      ctx->Yield(2);
      ui.app().remember();
    }));
  }
  UiHarness ui(at_start());
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield();
    IM_CHECK(ui.view().theme == ThemeKind::light);
    IM_CHECK_EQ(ui.view().user_scale, 1.1f);
  }));
  EXPECT_EQ(read_settings(file()).settings.width, 1000u);
  EXPECT_EQ(read_settings(file()).settings.height, 700u);
}

TEST_F(SettingsUi, TheChosenDeviceOutlivesTheWindowUnlessTheCommandLineNamesAnother) {
  std::vector<DeviceChoice> devices = some_devices();
  const std::string chosen = devices[1].name;
  {
    UiHarness ui(at_start(), 1280, 800, devices);
    ui.frame();
    EXPECT_EQ(ui.view().device_selector, "") << "the best one";
    ui.app().run(app::ChooseDevice{devices[1].selector});
    ui.frame();
    EXPECT_EQ(read_settings(file()).settings.device.name, chosen);
  }
  std::swap(devices[0], devices[1]);  // a card was put in or taken out
  devices[0].selector = "0";
  devices[1].selector = "1";
  EXPECT_EQ(UiHarness(at_start(), 1280, 800, devices).view().device_selector, "0");
  AppSettings given = at_start();
  given.device = "discrete";
  {
    UiHarness ui(given, 1280, 800, devices);
    ui.frame();
    EXPECT_EQ(ui.view().device_selector, "discrete");
  }
  EXPECT_EQ(read_settings(file()).settings.device.name, chosen) << "for that start alone";
  devices.erase(devices.begin());
  EXPECT_EQ(UiHarness(at_start(), 1280, 800, devices).view().device_selector, "") << "it is gone";
}

TEST_F(SettingsUi, ABrokenFileIsIgnoredWithANoteAndReplaced) {
  std::ofstream(file()) << "{\"theme\": \"pi";
  UiHarness ui(at_start());
  ui.engine().script = answers_with({"Yes."});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(2);
    IM_CHECK_EQ(ui.view().cards.size(), 1u);
    IM_CHECK(ui.view().cards[0].warning);
    IM_CHECK(ui.view().theme == ThemeKind::dark);
    ui.app().run(app::OpenModel{"/models/a.gguf"});  // the note about the file stays until the user closes it
    ctx->Yield(2);
    ctx->ItemClick("//Chat/**/Dismiss");
    ctx->Yield(2);
    IM_CHECK(ui.view().cards.empty());
    ctx->ItemClick("//Top bar/Theme");
    ctx->Yield(2);
  }));
  EXPECT_EQ(read_settings(file()).note, "");
  EXPECT_EQ(read_settings(file()).settings.theme, ThemeKind::light);
}

TEST_F(SettingsUi, DraftingIsChosenInTheTopBarAndRemembered) {
  ModelReady model = small_model();
  model.drafter = "drafter.gguf";
  const auto script = [model](ScriptedEngine& engine, const Command& command) {
    if (std::holds_alternative<LoadModel>(command)) engine.publish(model);
    const auto* generate = std::get_if<Generate>(&command);
    if (!generate) return;
    engine.publish(TextDelta{generate->reply_id, "Yes.", 1, 25, 10});
    ReplyFinished finished;
    finished.reply_id = generate->reply_id;
    finished.mode = generate->mode.value_or(DecodeMode::ar);
    finished.tokens_per_second = 10;
    finished.ar_tokens_per_second = 18;
    engine.publish(finished);
  };
  {
    UiHarness ui(at_start(), 1600, 1000);
    ui.engine().script = script;
    EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
      ui.app().run(app::OpenModel{"/models/a.gguf"});
      ctx->Yield(3);
      ctx->KeyChars("One");
      ctx->KeyPress(ImGuiKey_Enter);
      ctx->Yield(3);
      IM_CHECK(ui.engine().last<Generate>().mode == DecodeMode::adaptive);
      ctx->ItemClick("//Top bar/Plain");
      ctx->Yield(2);
      IM_CHECK(ui.view().drafting == DecodeMode::ar);
      IM_CHECK(read_settings(file()).settings.drafting == DecodeMode::ar);
      ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_G);  // and back to what was before
      ctx->Yield(2);
      IM_CHECK(!ui.view().drafting);
      ctx->ItemClick("//Top bar/Chain");
      ctx->Yield(2);
      ctx->ItemClick("//Chat/**/Run again");
      ctx->Yield(3);
      IM_CHECK(ui.engine().last<Generate>().mode == DecodeMode::chain);
    }));
  }
  EXPECT_EQ(read_settings(file()).settings.drafting, DecodeMode::chain);
}

TEST_F(SettingsUi, WhereGuessesComeFromIsChosenInTheDraftersMenuAndRemembered) {
  ModelReady model = small_model();
  model.drafter = "drafter.gguf";
  const auto script = [model, answer = answers_with({"Yes."})](ScriptedEngine& engine, const Command& command) {
    if (std::holds_alternative<LoadModel>(command)) return engine.publish(model);
    answer(engine, command);
  };
  {
    UiHarness ui(at_start(), 1600, 1000);
    ui.engine().script = script;
    EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
      ui.app().run(app::OpenModel{"/models/a.gguf"});
      ctx->Yield(3);
      ctx->ItemClick("//Top bar/Drafter");
      ctx->Yield(2);
      ctx->ItemClick("//$FOCUSED/From the text");
      ctx->Yield(2);
      IM_CHECK(ui.view().draft_sources == kFromDflash);
      ctx->ItemClick("//$FOCUSED/From the text");  // the menu is still open
      ctx->ItemClick("//$FOCUSED/From the drafter");
      ctx->Yield(2);
      IM_CHECK(ui.view().draft_sources == kFromSuffix);
      IM_CHECK(read_settings(file()).settings.draft_sources == kFromSuffix);
      ctx->KeyPress(ImGuiKey_Escape);
      ctx->Yield(2);
      ui.app().run(app::SendMessage{"One"});
      ctx->Yield(3);
      IM_CHECK(ui.engine().last<Generate>().sources == kFromSuffix);
    }));
  }
  UiHarness ui(at_start(), 1600, 1000);
  ui.engine().script = script;
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ui.app().run(app::OpenModel{"/models/a.gguf"});
    ctx->Yield(3);
    IM_CHECK(ui.view().draft_sources == kFromSuffix);
    // The palette has them too.
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_K);
    ctx->Yield(2);
    ctx->KeyChars("guesses from the drafter");
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(2);
    IM_CHECK(ui.view().draft_sources == kUsualSources);
  }));
  EXPECT_EQ(read_settings(file()).settings.draft_sources, kUsualSources);
}

TEST_F(SettingsUi, ReducedMotionIsSwitchedInTheViewMenuAndRemembered) {
  {
    UiHarness ui(at_start());
    EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
      ctx->ItemClick("//Top bar/View");
      ctx->ItemClick("//$FOCUSED/Reduced motion");
      ctx->Yield(2);
      IM_CHECK(ui.view().rounds.reduced_motion);
      IM_CHECK(read_settings(file()).settings.reduced_motion);
    }));
  }
  UiHarness ui(at_start());
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield();
    IM_CHECK(ui.view().rounds.reduced_motion);
    // The palette has it too.
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_K);
    ctx->Yield(2);
    ctx->KeyChars("reduced");
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(2);
    IM_CHECK(!ui.view().rounds.reduced_motion);
  }));
  EXPECT_FALSE(read_settings(file()).settings.reduced_motion);
}

TEST_F(SettingsUi, TheIdleMinutesOfTheModelAreRemembered) {
  app::SavedSettings saved;
  saved.idle_minutes = 7;  // written by hand: none of the usual choices, and offered with them
  write_settings(file(), saved);
  UiHarness ui(at_start());
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(2);
    IM_CHECK_EQ(ui.view().models.idle_minutes, 7u);
    ctx->ItemClick("//Top bar/Model");
    // The list of models that are found moves what stands below it.
    for (int i = 0; i < 500 && !ui.view().models.looked; ++i) ctx->Yield();
    ctx->Yield(2);
    IM_CHECK(ctx->ItemExists("//$FOCUSED/7 min"));
    ctx->ItemClick("//$FOCUSED/30 min");
    ctx->Yield(2);
    IM_CHECK_EQ(read_settings(file()).settings.idle_minutes, 30u);
    ctx->ItemClick("//$FOCUSED/Never");
    ctx->Yield(2);
    IM_CHECK_EQ(read_settings(file()).settings.idle_minutes, 0u);
  }));
}

// The processor's threads are chosen in the menu of the device, where the processor computes; a model is loaded again.
TEST_F(SettingsUi, TheThreadsOfTheProcessorAreRemembered) {
  app::SavedSettings saved;
  saved.threads = 3;  // of another machine: offered with the usual ones
  write_settings(file(), saved);
  ModelReady model = small_model();
  model.backend = "cpu";
  UiHarness ui(at_start());
  ui.engine().script = [model](ScriptedEngine& engine, const Command& command) {
    if (std::holds_alternative<LoadModel>(command)) engine.publish(model);
  };
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ui.app().run(app::OpenModel{"/models/a.gguf"});
    ctx->Yield(3);
    IM_CHECK_EQ(ui.engine().last<LoadModel>().threads, 3u);
    ctx->ItemClick("//Top bar/Device");
    ctx->Yield(2);
    IM_CHECK(ctx->ItemExists("//$FOCUSED/3"));
    ctx->ItemClick("//$FOCUSED/All cores");
    ctx->Yield(3);
    IM_CHECK_EQ(ui.engine().last<LoadModel>().threads, 0u);
    IM_CHECK_EQ(read_settings(file()).settings.threads, 0u);
  }));
}

// The result of a device's self-test, run by a load, is kept and shown from then on, also after a restart.
TEST_F(SettingsUi, WhatADevicesSelfTestSaidIsRemembered) {
  ModelReady model = small_model();
  model.self_test = SelfTest::failed;
  model.self_test_note = "This device rounds differently in wider passes.";
  {
    UiHarness ui(at_start());
    ui.engine().publish(model);
    for (int i = 0; i < 3; ++i) ui.frame();
  }
  UiHarness ui(at_start());
  ASSERT_EQ(ui.view().models.device_tests.size(), 1u);
  EXPECT_EQ(ui.view().models.device_tests[0],
            (app::DeviceTest{model.device, model.driver, false, model.self_test_note}));
}

TEST_F(SettingsUi, SamplingReachesTheEngineAndEachReplyShowsItsSeed) {
  UiHarness ui(at_start());
  ui.engine().script = answers_with({"Yes."});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ui.app().run(app::OpenModel{"/models/a.gguf"});
    ctx->Yield(3);
    ctx->KeyChars("One");
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(3);
    IM_CHECK_GT(ui.engine().last<Generate>().sampling.temperature, 0.0f);  // the default of a chat is not greedy
    IM_CHECK_EQ(ui.engine().last<Generate>().sampling.seed, 0u);
    IM_CHECK(ui.view().messages[1].seed == 0u);
    ctx->ItemClick("//Chat/**/Run again");
    ctx->Yield(3);
    IM_CHECK_EQ(ui.engine().last<Generate>().sampling.seed, 1u);  // a new seed, so that the answer is another one
    IM_CHECK(ui.view().messages[1].seed == 1u);
    ctx->ItemClick("//Chat/Sampling");
    ctx->ItemInputValue("//$FOCUSED/Temperature/##value", 1.25f);
    ctx->Yield(2);
    IM_CHECK_EQ(ui.view().sampling.temperature, 1.25f);
    IM_CHECK_EQ(read_settings(file()).settings.sampling.temperature, 1.25f);
    ctx->ItemInputValue("//$FOCUSED/##limit", 2000);
    ctx->Yield(2);
    IM_CHECK_EQ(read_settings(file()).settings.max_tokens, 2000u);
    ctx->ItemClick("//$FOCUSED/Greedy");
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->Yield(3);
    ctx->KeyChars("Two");  // the keyboard is back in the composer
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(3);
    IM_CHECK_EQ(ui.engine().last<Generate>().sampling.temperature, 0.0f);
    IM_CHECK(ui.engine().last<Generate>().sampling.is_plain_greedy());
    IM_CHECK(!ui.view().messages.back().seed.has_value());
  }));
}

}  // namespace
}  // namespace canopy::test
