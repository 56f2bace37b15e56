// A recorded run in the whole window: the chat, links between tree and text, the way back, dropped files.

#include <gtest/gtest.h>
#include <imgui_internal.h>

#include <filesystem>

#include "engine/base/files.h"
#include "engine/base/mapped_file.h"
#include "tests/app/support/drawn_texts.h"
#include "tests/app/support/time_zone.h"
#include "tests/app/support/ui_harness.h"
#include "tests/base/temp_folder.h"
#include "tests/trace/trace_builder.h"

namespace canopy::test {
namespace {

using namespace app;  // NOLINT: the whole file is about it

constexpr const char* kReplayedDemo = CANOPY_SOURCE_DIR "/assets/demos/prose.canopytrace";

/// The rectangle of the recorded reply's text on the screen.
ImRect reply_text(ImGuiTestContext* ctx) {
  ImGuiTestItemList items;
  ctx->GatherItems(&items, ctx->WindowInfo("//Chat/Replayed messages").ID, 8);
  ImRect found;
  for (const ImGuiTestItemInfo& item : items)
    if (std::string(item.DebugLabel) == "text" && (found.Max.y == 0 || item.RectFull.Min.y > found.Min.y))
      found = item.RectFull;
  return found;
}

TEST(ReplayUi, TheChatFollowsTheRoundAndIsOnlyRead) {
  UiHarness ui({}, 1600, 1000);
  ui.app().run(OpenModel{kReplayedDemo});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(4);
    const Conversation& chat = ui.view().conversation();
    const size_t early = chat.back().text.size();
    IM_CHECK_GT(chat.front().text.size(), 5u);
    for (int i = 0; i < 6; ++i) ctx->KeyPress(ImGuiKey_F8);
    ctx->Yield(3);
    IM_CHECK_GT(ui.view().conversation().back().text.size(), early);
    ctx->KeyPress(ImGuiKey_F7);
    ctx->Yield(3);
    IM_CHECK_EQ(ui.view().conversation().back().spans.back().round, 5u);
    for (const char* item : {"Run again", "Edit", "Send", "Check against plain decoding", "Continue in a new chat"})
      IM_CHECK(!ctx->ItemExists((std::string("//Chat/**/") + item).c_str()));
    IM_CHECK(ctx->ItemExists("//Chat/Back to the chat"));
  }));
}

/// The cache and the speed of the engine have nothing to do with what was recorded.
TEST(ReplayUi, TheStatusBarKeepsTheEnginesFiguresToTheEngine) {
  UiHarness ui({}, 1600, 1000);
  ui.engine().script = [](ScriptedEngine& engine, const Command& command) {
    if (std::holds_alternative<LoadModel>(command)) engine.publish(small_model());
  };
  ui.app().run(OpenModel{"/models/a.gguf"});
  ui.app().pump();
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    const auto bar = [&] {
      std::string words;
      const DrawnTexts drawn;
      ctx->Yield();
      for (const DrawnText& each : drawn.all())
        if (each.min.y > 1000 - 28) words += each.text + "|";
      return words;
    };
    ctx->Yield(3);
    IM_CHECK(bar().find("KV|") != std::string::npos);
    ui.app().run(OpenModel{kReplayedDemo});
    ctx->Yield(4);
    IM_CHECK(bar().find("KV|") == std::string::npos);
    IM_CHECK(bar().find("Replaying|") != std::string::npos);
  }));
}

/// In Watch and in Lab: the check stands where the recording's origin was, and in the menu at the end of the bar.
TEST(ReplayUi, TheCheckTellsItsProgressAndIsCancelled) {
  for (const WindowLayout layout : {WindowLayout::watch, WindowLayout::lab}) {
    AppSettings settings;
    settings.layout = layout;
    UiHarness ui(settings, 1280, 800);
    ui.engine().script = [](ScriptedEngine& engine, const Command& command) {
      if (std::holds_alternative<LoadModel>(command)) engine.publish(small_model());
      if (std::holds_alternative<VerifyRecording>(command)) engine.publish(VerifyProgress{1, 3, 20, 80});
      if (std::holds_alternative<CancelVerification>(command))
        engine.publish(Failure{ErrorKind::cancelled, "The check was cancelled", "", 0, false, 0});
    };
    ui.app().run(OpenModel{"/models/a.gguf"});
    ui.app().pump();
    ui.app().run(OpenModel{kReplayedDemo});
    const std::string chat = layout == WindowLayout::lab ? "//Chat" : "//Watch chat";
    DrawnTexts drawn;
    EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
      ctx->Yield(3);
      for (const bool by_menu : {false, true}) {
        ctx->ItemClick("//Top bar/View");
        ctx->Yield(2);
        ctx->ItemClick("//$FOCUSED/Check the recording");
        drawn.clear();
        ctx->Yield(3);
        IM_CHECK(ui.view().verify.running);
        IM_CHECK(drawn.has("Checking reply 2 of 3"));
        IM_CHECK(drawn.any_contains("20 of 80"));
        if (by_menu) {
          ctx->ItemClick("//Top bar/View");
          ctx->Yield(2);
          ctx->ItemClick("//$FOCUSED/Cancel the work");
        } else {
          ctx->ItemClick((chat + "/Cancel").c_str());
        }
        ctx->Yield(3);
        IM_CHECK_EQ(ui.engine().count<CancelVerification>(), by_menu ? 2u : 1u);
        IM_CHECK(!ui.view().verify.running);
        IM_CHECK(!ctx->ItemExists((chat + "/Cancel").c_str()));
      }
    }));
    EXPECT_TRUE(ui.view().cards.empty());
    EXPECT_EQ(drawn.cut(), std::vector<std::string>());
  }
}

// By the user's clock, wherever it is said.
TEST(ReplayUi, SaysWhenItWasRecorded) {
  const TempFolder folder;
  const std::string file = (folder.path() / "run.canopytrace").string();
  TraceBuilder().write(file, 20);  // at 2026-01-02 03:04:05 UTC
  const TimeZone there("IST-5:30");
  for (const WindowLayout layout : {WindowLayout::lab, WindowLayout::watch}) {
    AppSettings settings;
    settings.layout = layout;
    UiHarness ui(settings, 1600, 1000);
    ui.app().run(OpenModel{file});
    for (int i = 0; i < 4; ++i) ui.frame();
    const DrawnTexts drawn;
    ui.frame();
    EXPECT_TRUE(drawn.has("Recorded 2026-01-02 08:34"));
    EXPECT_FALSE(drawn.any_contains("03:04"));
    EXPECT_FALSE(drawn.any_contains("UTC"));
  }
  AppSettings large;  // a chat with no room for more than the time
  large.layout = WindowLayout::watch;
  large.user_scale = 2;
  UiHarness ui(large, 1280, 800);
  ui.app().run(OpenModel{file});
  for (int i = 0; i < 4; ++i) ui.frame();
  const DrawnTexts drawn;
  ui.frame();
  EXPECT_TRUE(drawn.any_contains("2026-01-02 08:34"));
}

TEST(ReplayUi, ThePlayedTextGrowsByItself) {
  UiHarness ui({}, 1600, 1000);
  ui.app().run(RoundsCommand(WatchDemo{1}));
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(4);
    const size_t early = ui.view().conversation().back().text.size();
    ctx->SleepNoSkip(3.0f, 1.0f / 60);
    IM_CHECK_GT(ui.view().rounds.playback.shown, 1u);
    IM_CHECK_GT(ui.view().conversation().back().text.size(), early);
    IM_CHECK_EQ(ui.view().conversation().back().spans.back().round, ui.view().rounds.playback.shown);
  }));
}

TEST(ReplayUi, ATokenOfTheTextIsItsNodeInTheTree) {
  UiHarness ui({}, 1600, 1000);
  ui.app().run(OpenModel{kReplayedDemo});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ui.app().run(RoundsCommand(ShowRound{8}));
    ctx->Yield(4);
    const ImRect text = reply_text(ctx);
    IM_CHECK_GT(text.GetHeight(), 10.0f);
    ctx->MouseMoveToPos({text.Min.x + 6, text.Min.y + 10});
    ctx->Yield(3);
    IM_CHECK(ui.view().rounds.hovered.has_value());
    IM_CHECK_EQ(ui.view().rounds.hovered->round, 0u);  // the first words
    ctx->MouseClick();
    ctx->Yield(3);
    IM_CHECK(ui.view().rounds.selected.has_value());
    IM_CHECK_EQ(ui.view().rounds.playback.shown, ui.view().rounds.selected->round);
  }));
}

TEST(ReplayUi, TheChatThatIsShownIsTheOneThatIsExported) {
  const TempFolder folder;
  UiHarness ui({}, 1600, 1000);
  ui.engine().script = answers_with({"Yes."});
  const auto saved_as = [&](ImGuiTestContext* ctx, const std::string& name) {
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_E);
    ctx->Yield(3);
    ctx->ItemInputValue("//$FOCUSED/##folder", folder.path().c_str());
    ctx->ItemInputValue("//$FOCUSED/##name", name.c_str());  // ends with Enter, which saves
    ctx->Yield(3);
    return read_small_file((folder.path() / (name + ".md")).string(), 1 << 20);
  };
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ui.app().run(OpenModel{"/models/a.gguf"});
    ctx->Yield(3);
    ctx->KeyChars("My own question");
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(4);
    ui.app().run(OpenModel{kReplayedDemo});
    ctx->Yield(4);
    const std::string question = ui.view().conversation().front().text;
    const std::string replayed = saved_as(ctx, "replayed");
    IM_CHECK(replayed.find(question) != std::string::npos);
    IM_CHECK(replayed.find("My own question") == std::string::npos);
    ui.app().run(RoundsCommand(CloseTrace{}));
    ctx->Yield(3);
    IM_CHECK(saved_as(ctx, "own").find("My own question") != std::string::npos);
  }));
}

TEST(ReplayUi, TheTopBarNamesTheRecordingAndTheStatusBarToo) {
  UiHarness ui({}, 1600, 1000);
  ui.engine().script = answers_with({"Yes."});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(3);
    ui.app().run(OpenModel{kReplayedDemo});
    ctx->Yield(4);
    const ReplayOrigin& origin = ui.view().replay.origin();
    IM_CHECK(origin.target.find("Q4_1") != std::string::npos);
    // The pickers are as wide as the recording's names; "none" would be narrow.
    IM_CHECK_GT(ctx->ItemInfo("//Top bar/Model").RectFull.GetWidth(), 150.0f);
    IM_CHECK_GT(ctx->ItemInfo("//Top bar/Drafter").RectFull.GetWidth(), 150.0f);
    IM_CHECK(ctx->ItemExists("//Top bar/Replayed"));
    ui.app().run(RoundsCommand(CloseTrace{}));
    ctx->Yield(3);
    IM_CHECK(!ctx->ItemExists("//Top bar/Replayed"));
  }));
}

TEST(ReplayUi, TheOwnChatComesBackWithItsDraftAndItsPlace) {
  UiHarness ui({}, 1600, 1000);
  std::string lines;
  for (int i = 0; i < 120; ++i) lines += "Line " + std::to_string(i) + "\n\n";
  ui.engine().script = answers_with({lines});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ui.app().run(OpenModel{"/models/a.gguf"});
    ctx->Yield(3);
    ctx->KeyChars("Count");
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(4);
    ctx->KeyChars("A draft");
    ctx->KeyPress(ImGuiKey_PageUp);
    ctx->Yield(3);
    const float place = ctx->WindowInfo("//Chat/Messages").Window->Scroll.y;
    const std::string chat = ui.view().messages.back().text;
    ui.app().run(OpenModel{kReplayedDemo});
    ctx->Yield(4);
    ctx->KeyPress(ImGuiKey_F8);
    ctx->Yield(3);
    ctx->ItemClick("//Chat/Back to the chat");
    ctx->Yield(4);
    IM_CHECK(!ui.view().replaying());
    IM_CHECK_STR_EQ(ui.view().conversation().back().text.c_str(), chat.c_str());
    IM_CHECK_EQ(ctx->WindowInfo("//Chat/Messages").Window->Scroll.y, place);
    ctx->KeyChars(" goes on");
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(3);
    IM_CHECK_STR_EQ(ui.engine().last<Generate>().turns.back().content.c_str(), "A draft goes on");
  }));
}

TEST(ReplayUi, ARecordingWithoutTextsSaysSo) {
  TempFolder folder;
  const std::string path = (folder.path() / "redacted.canopytrace").string();
  TraceBuilder().write(path, 20, true);
  UiHarness ui({}, 1600, 1000);
  ui.app().run(OpenModel{path});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(4);
    IM_CHECK(ui.view().replay.origin().redacted);
    IM_CHECK(ctx->ItemExists("//Chat/Texts left out"));
    ctx->ItemClick("//Chat/Back to the chat");
    ctx->Yield(3);
    IM_CHECK(!ui.view().replaying());
  }));
}

/// Opens paths as the window does for dropped files, the dialog and the command line. gui.md, criterion 18;
/// drop_window_test.cpp tests the way from the window system to here.
TEST(OpenedPaths, GoToWhatTheyAre) {
  TempFolder folder;
  TraceBuilder().write(folder.path() / "run.canopytrace", 20);
  const auto text = folder.write("notes.txt", "Things to do");
  const auto nameless = folder.write("model", "GGUF and so on");
  const auto damaged = folder.write("damaged.gguf", "no model");
  std::filesystem::create_directory(folder.path() / "hf");
  UiHarness ui;
  ui.engine().script = {};
  const auto open = [&](const std::filesystem::path& path) { ui.app().run(OpenModel{path.string()}); };
  open(folder.path() / "run.canopytrace");
  EXPECT_TRUE(ui.view().replaying());
  EXPECT_EQ(ui.engine().count<LoadModel>(), 0u);
  open(text);
  EXPECT_EQ(ui.engine().count<LoadModel>(), 0u);
  ASSERT_EQ(ui.view().cards.size(), 1u);
  EXPECT_EQ(ui.view().cards[0].title, "This file cannot be opened");
  EXPECT_NE(ui.view().cards[0].detail.find("notes.txt"), std::string::npos) << ui.view().cards[0].detail;
  EXPECT_NE(ui.view().cards[0].detail.find("GGUF"), std::string::npos);
  EXPECT_TRUE(ui.view().replaying()) << "what is shown stays";
  size_t loads = 0;
  for (const auto& model : {nameless, damaged, folder.path() / "hf", folder.path() / "not there"}) {
    open(model);
    EXPECT_EQ(ui.engine().count<LoadModel>(), ++loads) << model;
    EXPECT_EQ(ui.engine().last<LoadModel>().path, model.string());
  }
}

}  // namespace
}  // namespace canopy::test
