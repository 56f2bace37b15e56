// The application under Dear ImGui's Test Engine, with a scripted engine.

#include <gtest/gtest.h>
#include <imgui_internal.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/app/support/ui_harness.h"
#include "tests/base/temp_folder.h"

namespace canopy::test {
namespace {

using app::AppSettings;
using app::ModelState;
using app::OpenModel;
using app::ReplyState;
using app::ThemeKind;

void open_model(UiHarness& ui) {
  ui.app().run(OpenModel{"/models/SmolLM2-135M-Instruct.Q4_1.gguf"});
}

void type_and_send(ImGuiTestContext* ctx, const char* text) {
  ctx->ItemClick("//Chat/##message");
  ctx->KeyChars(text);
  ctx->KeyPress(ImGuiKey_Enter);
  ctx->Yield(2);
}

TEST(App, SendsAndStreams) {
  UiHarness ui;
  ui.engine().script = answers_with({"The merge ", "step joins ", "two lists."});
  open_model(ui);
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    type_and_send(ctx, "Explain merging");
    ctx->Yield(2);
    IM_CHECK_EQ(ui.view().messages.size(), 2u);
    IM_CHECK_STR_EQ(ui.view().messages[0].text.c_str(), "Explain merging");
    IM_CHECK_STR_EQ(ui.view().messages[1].text.c_str(), "The merge step joins two lists.");
    IM_CHECK_EQ(ui.view().context_used, 27u);
    // A second turn without clicking, as the keyboard focus stays in the composer. The whole conversation is sent.
    ctx->KeyChars("And now");
    ctx->KeyPress(ImGuiMod_Shift | ImGuiKey_Enter);
    ctx->KeyChars("in Python?");
    ctx->Yield();
    ctx->ItemClick("//Chat/Send");
    ctx->Yield(2);
  }));
  const Generate last = ui.engine().last<Generate>();
  ASSERT_EQ(last.turns.size(), 3u);
  EXPECT_EQ(last.turns[1].content, "The merge step joins two lists.");
  EXPECT_EQ(last.turns[2].content, "And now\nin Python?");
}

TEST(App, TheComposerHasTheKeyboardAtOnce) {
  UiHarness ui;
  ui.engine().script = answers_with({"Yes."});
  open_model(ui);
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(3);
    ctx->KeyChars("Hello");
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(3);
    IM_CHECK_EQ(ui.view().messages.size(), 2u);
  }));
}

/// Pastes with Ctrl+V held for some frames.
void paste(ImGuiTestContext* ctx, const std::string& text, int frames = 1) {
  ImGui::SetClipboardText(text.c_str());
  ctx->KeyDown(ImGuiMod_Ctrl);
  ctx->KeyDown(ImGuiKey_V);
  ctx->Yield(frames);
  ctx->KeyUp(ImGuiKey_V);
  ctx->KeyUp(ImGuiMod_Ctrl);
  ctx->Yield(2);
}

/// What the text box with the focus holds.
std::string typed(ImGuiTestContext* ctx) {
  ImGui::SetClipboardText("nothing copied");
  ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_A);
  ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_C);
  ctx->Yield(2);
  const std::string text = ImGui::GetClipboardText();
  ctx->KeyPress(ImGuiKey_End);
  return text;
}

TEST(App, AKeyThatIsHeldPastesOnce) {
  UiHarness ui;
  ui.engine().script = answers_with({"Yes."});
  open_model(ui);
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(3);
    paste(ctx, "once ", 60);  // a second
    IM_CHECK_STR_EQ(typed(ctx).c_str(), "once ");
    paste(ctx, "again");
    IM_CHECK_STR_EQ(typed(ctx).c_str(), "once again");
  }));
}

TEST(App, ALetterBehindAMegabyteIsTypedAtOnce) {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "word ";
  UiHarness ui;
  ui.engine().script = answers_with({"Yes."});
  open_model(ui);
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(3);
    paste(ctx, text);
    const std::clock_t begin = std::clock();
    ctx->KeyChars("abcde");
    ctx->Yield(2);
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    EXPECT_LT(seconds, 5 * 0.3);
    IM_CHECK(typed(ctx) == text + "abcde");
    // Also with so long a question in view.
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(3);
    IM_CHECK_EQ(ui.view().messages.size(), 2u);
    const std::clock_t sent = std::clock();
    ctx->KeyChars("abcde");
    ctx->Yield(2);
    EXPECT_LT(static_cast<double>(std::clock() - sent) / CLOCKS_PER_SEC, 5 * 0.3);
  }));
  EXPECT_EQ(ui.engine().last<Generate>().turns.back().content, text + "abcde");
}

TEST(App, OfATextThatIsNotUtf8OnlyTheBrokenBytesAreReplaced) {
  UiHarness ui;
  ui.engine().script = answers_with({"Yes."});
  open_model(ui);
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(3);
    paste(ctx, "bad \xFF\xFE utf8 \xC3(");
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(3);
  }));
  EXPECT_EQ(ui.engine().last<Generate>().turns.back().content, "bad \uFFFD\uFFFD utf8 \uFFFD(");
}

TEST(App, AByteZeroDoesNotEndWhatIsCopied) {
  UiHarness ui;
  ui.engine().script = answers_with({std::string("A\0B\xC3", 4)});
  open_model(ui);
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    type_and_send(ctx, "Hello");
    ctx->Yield(2);
    ctx->ItemClick("//Chat/**/Copy");
    ctx->Yield(2);
    IM_CHECK_STR_EQ(ImGui::GetClipboardText(), "A\u2400B\uFFFD");
  }));
}

TEST(App, DroppedFilesAreAllAttachedAndTheLayoutStays) {
  const TempFolder folder;
  std::vector<std::string> paths;
  for (const char* name : {"one.txt", "zwei \u00FC.txt", "three.txt"})
    paths.push_back(folder.write(name, name).string());
  for (const app::WindowLayout layout :
       {app::WindowLayout::watch, app::WindowLayout::lab, app::WindowLayout::what_if}) {
    AppSettings settings;
    settings.layout = layout;
    UiHarness ui(settings);
    ui.engine().script = answers_with({"Yes."});
    open_model(ui);
    EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
      ctx->Yield(3);
      ui.app().open_paths(paths);
      ctx->Yield(3);
      IM_CHECK_EQ(ui.view().chat.attachments.size(), 3u);
      // What if has no chat.
      IM_CHECK(ui.view().shell.layout == (layout == app::WindowLayout::lab ? layout : app::WindowLayout::watch));
    }));
  }
}

TEST(App, OfDroppedModelsTheFirstIsOpenedAndTheOthersAreNamed) {
  const TempFolder folder;
  const std::string text = folder.write("notes.txt", "Notes").string(), model = folder.write("a.gguf", "x").string(),
                    other = folder.write("b.gguf", "x").string();
  UiHarness ui;
  ui.app().run(OpenModel{CANOPY_SOURCE_DIR "/assets/demos/code.canopytrace"});
  ASSERT_TRUE(ui.view().replaying());
  ui.app().open_paths({text, model, other, model});
  EXPECT_FALSE(ui.view().replaying()) << "the chat with the file is on show";
  EXPECT_EQ(ui.view().chat.attachments.size(), 1u);
  EXPECT_EQ(ui.engine().count<LoadModel>(), 1u);
  EXPECT_EQ(ui.engine().last<LoadModel>().path, model);
  ASSERT_FALSE(ui.view().cards.empty());
  EXPECT_NE(ui.view().cards.back().detail.find("Left out: \"b.gguf\"."), std::string::npos);
}

TEST(App, OfDroppedFilesThatAreNeitherEachIsNamed) {
  const TempFolder folder;
  const std::string_view bytes("\x89PNG\0\0\1\2", 8);
  std::filesystem::create_directory(folder.path() / "photos");
  UiHarness ui;
  ui.app().open_paths({folder.write("a.png", bytes).string(), folder.write("b.png", bytes).string(),
                       (folder.path() / "photos").string(), folder.write("notes.txt", "Notes").string()});
  EXPECT_EQ(ui.view().chat.attachments.size(), 1u);
  EXPECT_NE(ui.view().chat.attach_problem.find("\"photos\" is a folder"), std::string::npos);
  ASSERT_EQ(ui.view().cards.size(), 1u);
  EXPECT_NE(ui.view().cards[0].detail.find("a.png"), std::string::npos);
  EXPECT_NE(ui.view().cards[0].detail.find("\"b.png\""), std::string::npos);
  EXPECT_EQ(ui.engine().count<LoadModel>(), 0u);
}

TEST(App, StopKeepsThePartialText) {
  UiHarness ui;
  ui.engine().script = answers_with({});
  open_model(ui);
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(2);
    ui.engine().script = [](ScriptedEngine& engine, const Command& command) {
      const uint64_t id = engine.last<Generate>().reply_id;
      if (std::holds_alternative<Generate>(command)) engine.publish(TextDelta{id, "Half an ans", 4, 30, 50});
      if (!std::holds_alternative<StopReply>(command)) return;
      ReplyFinished finished;
      finished.reply_id = id;
      finished.reason = FinishReason::cancelled;
      finished.reply_tokens = 4;
      finished.context_used = 30;
      engine.publish(finished);
    };
    type_and_send(ctx, "Tell me a story");
    IM_CHECK(ui.view().busy());
    ctx->ItemClick("//Chat/Stop");
    ctx->Yield(2);
    IM_CHECK(!ui.view().busy());
    IM_CHECK_STR_EQ(ui.view().messages[1].text.c_str(), "Half an ans");
    // Esc does the same.
    type_and_send(ctx, "Another");
    IM_CHECK(ui.view().busy());
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->Yield(2);
    IM_CHECK(!ui.view().busy());
  }));
  EXPECT_EQ(ui.engine().count<StopReply>(), 2u);
}

TEST(App, ABrokenModelShowsACardAndTheNextOneLoads) {
  const TempFolder folder;
  const std::string good = folder.write("good.gguf", "GGUF").string();
  UiHarness ui;
  ui.engine().script = [&](ScriptedEngine& engine, const Command& command) {
    if (const auto* load = std::get_if<LoadModel>(&command)) {
      if (load->path == good)
        engine.publish(small_model());
      else
        engine.publish(
            Failure{ErrorKind::bad_input, "The model could not be opened", "broken.gguf is %s%n 3 bytes long.", 0});
    }
  };
  ui.app().run(OpenModel{"/models/broken.gguf"});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(2);
    IM_CHECK(ui.view().model_state == ModelState::none);
    IM_CHECK_EQ(ui.view().cards.size(), 1u);
    IM_CHECK(ctx->ItemExists("//Start/**/Dismiss"));
    // Where there is no file dialog, "Choose model" opens the browser.
    ctx->ItemClick("//Start/**/Choose model");
    ctx->Yield(2);
    IM_CHECK(ui.view().path_box_shown);
    ctx->ItemInput("//$FOCUSED/##path");
    ctx->KeyCharsReplace("/models/nowhere.gguf");
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(2);
    IM_CHECK(ui.view().path_box_shown);  // a path that leads nowhere is reported there
    ctx->ItemInput("//$FOCUSED/##path");
    ctx->KeyCharsReplace(good.c_str());
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(3);
    IM_CHECK(!ui.view().path_box_shown);
    IM_CHECK(ui.view().model_state == ModelState::ready);
    IM_CHECK(ui.view().cards.empty());
  }));
}

TEST(App, WithoutAFileDialogModelsAreFoundByMouseAndKeyboard) {
  const TempFolder folder;
  std::filesystem::create_directory(folder.path() / "models");
  folder.write("models/a.gguf", "GGUF");
  folder.write("models/notes.txt", "no model");
  app::AppSettings settings;
  settings.saved.recent = {(folder.path() / "models" / "a.gguf").string()};
  UiHarness ui(settings);
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_O);
    ctx->Yield(6);
    IM_CHECK(ui.view().path_box_shown);
    ctx->SetRef(ImGui::GetCurrentContext()->NavWindow->RootWindow);
    IM_CHECK(ctx->ItemExists("**/a.gguf"));
    IM_CHECK(!ctx->ItemExists("**/notes.txt"));
    ctx->ItemClick("All files");
    ctx->Yield(2);
    IM_CHECK(ctx->ItemExists("**/notes.txt"));
    ctx->ItemClick("**/Folder above");
    ctx->Yield(2);
    IM_CHECK(ctx->ItemExists("**/models"));
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->Yield(2);
    IM_CHECK(!ui.view().path_box_shown);
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_O);
    ctx->Yield(6);
    ctx->SetRef(ImGui::GetCurrentContext()->NavWindow->RootWindow);
    ctx->ItemClick("**/a.gguf");
    ctx->ItemClick("Open");
    ctx->Yield(2);
    IM_CHECK(!ui.view().path_box_shown);
  }));
  EXPECT_EQ(ui.engine().last<LoadModel>().path, settings.saved.recent.front());
}

// A card that was pinned from the chat closes too, and the reply goes on.
TEST(App, EscClosesThePinnedCardFirst) {
  UiHarness ui;
  ui.app().run(OpenModel{CANOPY_SOURCE_DIR "/assets/demos/code.canopytrace"});
  ui.app().run(app::RoundsCommand(app::SelectNode{app::NodeRef{3, 1}}));
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(3);
    IM_CHECK(ui.view().rounds.selected.has_value());
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->Yield(2);
    IM_CHECK(!ui.view().rounds.selected.has_value());
  }));
}

TEST(App, StreamsCharactersOfSeveralBytes) {
  const std::string expected = "na\u00efve \u4f60\u597d \u2192 \U0001F333 e\u0301";
  UiHarness ui;
  ui.engine().script = answers_with({"na\u00ef", "ve \u4f60", "\u597d \u2192", " \U0001F333", " e\u0301"});
  open_model(ui);
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    type_and_send(ctx, "\u00bfQu\u00e9 tal?");
    ctx->Yield(3);
    IM_CHECK_STR_EQ(ui.view().messages[0].text.c_str(), "\u00bfQu\u00e9 tal?");
    IM_CHECK_STR_EQ(ui.view().messages[1].text.c_str(), expected.c_str());
  }));
}

TEST(App, NothingCanBeSentWhileTheModelLoads) {
  UiHarness ui;
  ui.engine().script = answers_with({"x"});
  open_model(ui);
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(2);
    ui.engine().script = {};
    open_model(ui);  // another one, whose load never ends
    type_and_send(ctx, "Hello");
    IM_CHECK(ui.view().messages.empty());
    IM_CHECK((ctx->ItemInfo("//Chat/Send").ItemFlags & ImGuiItemFlags_Disabled) != 0);
    ctx->ItemClick("//Status bar/Cancel");
    ctx->Yield(2);
  }));
  EXPECT_EQ(ui.engine().count<CancelLoad>(), 1u);
  EXPECT_EQ(ui.engine().count<Generate>(), 0u);
}

/// A script in which a load goes on until it is cancelled.
std::function<void(ScriptedEngine&, const Command&)> loads_until_cancelled(const LoadProgress& progress) {
  return [progress](ScriptedEngine& engine, const Command& command) {
    if (std::holds_alternative<LoadModel>(command)) engine.publish(progress);
    if (!std::holds_alternative<CancelLoad>(command)) return;
    engine.publish(Failure{ErrorKind::cancelled, "Loading was cancelled", "", 0});
  };
}

TEST(App, EveryStageOfALoadCanBeCancelledFromTheStartPanel) {
  for (const LoadProgress& progress :
       {LoadProgress{"Opening the device"}, LoadProgress{"Loading weights", 62'000'000, 98'362'432, true, 2},
        LoadProgress{"Quantizing weights to Q8_0", 1, 2'000'000'000, true, -1},
        LoadProgress{"Checking exactness", 3, 9}}) {
    UiHarness ui;
    ui.engine().script = loads_until_cancelled(progress);
    open_model(ui);
    EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
      ctx->Yield(2);
      IM_CHECK(ui.view().model_state == ModelState::loading);
      IM_CHECK_STR_EQ(ui.view().loading.stage.c_str(), progress.stage.c_str());
      ctx->ItemClick("//Start/**/Cancel");
      ctx->Yield(2);
      IM_CHECK(ui.view().model_state == ModelState::none);
      IM_CHECK(ui.view().cards.empty());
    })) << progress.stage;
    EXPECT_EQ(ui.engine().count<CancelLoad>(), 1u);
  }
}

TEST(App, TheCancelButtonOfTheStatusBarStaysWhereItIs) {
  UiHarness ui;
  ui.engine().script = answers_with({});
  open_model(ui);
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(2);
    ui.engine().script = loads_until_cancelled({"Opening the file"});
    open_model(ui);
    ctx->Yield(2);
    const ImRect first = ctx->ItemInfo("//Status bar/Cancel").RectFull;
    for (const LoadProgress& progress :
         {LoadProgress{"Loading weights", 9'000'000, 98'362'432, true, -1},
          LoadProgress{"Loading weights", 62'000'000, 98'362'432, true, 2}, LoadProgress{"Checking exactness", 3, 9}}) {
      ui.engine().publish(progress);
      ctx->Yield(2);
      IM_CHECK_EQ(ctx->ItemInfo("//Status bar/Cancel").RectFull.Min.x, first.Min.x);
    }
    ctx->ItemClick("//Status bar/Cancel");
    ctx->Yield(2);
    IM_CHECK(ui.view().model_state == ModelState::ready);  // the model from before stays
  }));
}

TEST(App, AModelThatIsTooLargeIsQuantizedOnAClick) {
  UiHarness ui;
  ui.engine().script = [](ScriptedEngine& engine, const Command& command) {
    const auto* load = std::get_if<LoadModel>(&command);
    if (load == nullptr) return;
    if (load->quantize == QuantizeOnLoad::automatic) {
      engine.publish(small_model());
      return;
    }
    Failure failure{ErrorKind::out_of_memory, "The model does not fit into memory", "16.00 GB are needed.", 0};
    failure.would_fit_quantized = true;
    engine.publish(failure);
  };
  open_model(ui);
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(2);
    IM_CHECK_EQ(ui.view().cards.size(), 1u);
    ctx->ItemClick("**/Quantize and load");
    ctx->Yield(2);
    IM_CHECK(ui.view().model_state == ModelState::ready);
    IM_CHECK(ui.view().cards.empty());
  }));
}

TEST(App, ChoosingADeviceLoadsTheModelThere) {
  UiHarness ui;
  ui.engine().script = answers_with({});
  open_model(ui);
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(2);
    ctx->ItemClick("//Top bar/Device");
    ctx->ItemClick("//$FOCUSED/1/device");
    ctx->Yield(2);
  }));
  EXPECT_EQ(ui.engine().last<LoadModel>().device, "1");
}

TEST(App, ThemeAndScaleButtonsWork) {
  UiHarness ui;
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->ItemClick("//Top bar/Theme");
    ctx->Yield();
    IM_CHECK(ui.view().theme == ThemeKind::light);
    ctx->ItemClick("//Top bar/View");
    ctx->Yield(2);
    ctx->ItemClick("//$FOCUSED/Larger");
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->Yield(2);
    IM_CHECK_GT(ui.view().user_scale, 1.0f);
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_0);
    ctx->Yield(2);
    IM_CHECK_EQ(ui.view().user_scale, 1.0f);
    ctx->KeyPress(ImGuiKey_F1);
    ctx->Yield(2);
    IM_CHECK(ui.view().shell.regions_shown);
    ctx->ItemClick("//What am I looking at/**/Keyboard shortcuts");
    ctx->Yield(2);
    IM_CHECK(!ui.view().shell.regions_shown);
    IM_CHECK(ui.view().help_shown);
    ctx->ItemClick("//Help/Close help");
    ctx->Yield(2);
    IM_CHECK(!ui.view().help_shown);
  }));
}

/// Checks that every control of a window that does not scroll lies inside it.
void check_nothing_clipped(ImGuiTestContext* ctx, const char* window) {
  ImGuiTestItemList items;
  ctx->GatherItems(&items, window, 1);
  IM_CHECK_GT(items.GetSize(), 0);
  for (const ImGuiTestItemInfo& item : items) {
    if (!item.DebugLabel[0]) continue;
    EXPECT_TRUE(item.Window->Rect().Contains(item.RectFull)) << window << "/" << item.DebugLabel;
    EXPECT_GE(item.RectFull.GetWidth(), 8) << window << "/" << item.DebugLabel;
  }
}

class ScaleTest : public testing::TestWithParam<float> {};

TEST_P(ScaleTest, NoControlIsClipped) {
  UiHarness ui;
  ui.engine().script = answers_with({"A reply that is long enough to wrap in a narrow column at any scale there is."});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ui.app().run(app::SetScale{GetParam()});
    ctx->Yield(3);
    check_nothing_clipped(ctx, "//Top bar");
    check_nothing_clipped(ctx, "//Status bar");
    open_model(ui);
    ctx->Yield(3);
    type_and_send(ctx, "Hello");
    ctx->Yield(3);
    check_nothing_clipped(ctx, "//Top bar");
    check_nothing_clipped(ctx, "//Status bar");
    check_nothing_clipped(ctx, "//Chat");
    // Where the bar has no room for it, the theme is in the menu View.
    if (ctx->ItemExists("//Top bar/Theme")) ctx->ItemClick("//Top bar/Theme");
    ctx->Yield(2);
    check_nothing_clipped(ctx, "//Chat");
  }));
}

INSTANTIATE_TEST_SUITE_P(Scales, ScaleTest, testing::Values(0.75f, 1.0f, 1.5f, 2.0f, 3.0f));

TEST(App, AStalledEngineDoesNotStallTheWindow) {
  UiHarness ui;
  ui.engine().script = answers_with({});
  open_model(ui);
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(2);
    ui.engine().script = {};  // from here on the engine publishes nothing
    type_and_send(ctx, "Are you there?");
    IM_CHECK(ui.view().busy());
    ui.reset_gap();
    const auto start = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - start < std::chrono::seconds(5)) {
      ctx->KeyChars("x");
      ctx->Yield(10);
    }
    IM_CHECK_LE(ui.longest_gap(), 0.1);
    IM_CHECK(ui.view().reply_state == ReplyState::reading_prompt);
  }));
}

}  // namespace
}  // namespace canopy::test
