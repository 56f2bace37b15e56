// Reading a conversation: selecting, copying and scrolling, and where the keyboard focus is meanwhile.

#include <gtest/gtest.h>
#include <imgui_internal.h>

#include <chrono>
#include <string>
#include <vector>

#include "app/ui/look.h"
#include "tests/app/support/ui_harness.h"

namespace canopy::test {
namespace {

void open_and_type(UiHarness& ui, ImGuiTestContext* ctx, const char* question) {
  ui.app().run(app::OpenModel{"/models/a.gguf"});
  ctx->Yield(3);
  ctx->KeyChars(question);
  ctx->KeyPress(ImGuiKey_Enter);
  ctx->Yield(3);
}

/// The rectangle of the last message's text on the screen.
ImRect last_text(ImGuiTestContext* ctx) {
  ImGuiTestItemList items;
  ctx->GatherItems(&items, ctx->WindowInfo("//Chat/Messages").ID, 8);
  ImRect found;
  for (const ImGuiTestItemInfo& item : items)
    if (std::string(item.DebugLabel) == "text" && (found.Max.y == 0 || item.RectFull.Min.y > found.Min.y))
      found = item.RectFull;
  return found;
}

std::string many_lines(int count) {
  std::string text;
  for (int i = 1; i <= count; ++i) text += "Line " + std::to_string(i) + "\n";
  return text;
}

TEST(ChatUi, SelectedTextIsCopiedByteForByte) {
  UiHarness ui;
  ui.engine().script = answers_with({"na\u00efve \u4f60\u597d words here"});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    open_and_type(ui, ctx, "Hello");
    const ImRect text = last_text(ctx);
    IM_CHECK_GT(text.GetHeight(), 10.0f);
    const float y = text.Min.y + 8;
    ctx->KeyChars("A draft stays out of it");
    // A double click selects the word, whatever letters it has.
    ctx->MouseMoveToPos({text.Min.x + 6, y});
    ctx->MouseDoubleClick();
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_C);
    ctx->Yield(2);
    IM_CHECK_STR_EQ(ImGui::GetClipboardText(), "na\u00efve");
    // A drag from before the first letter to after the last one selects everything.
    ctx->MouseMoveToPos({text.Min.x - 1 + 1, y});
    ctx->MouseDown();
    ctx->MouseMoveToPos({text.Max.x - 2, y});
    ctx->MouseUp();
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_C);
    ctx->Yield(2);
    IM_CHECK_STR_EQ(ImGui::GetClipboardText(), "na\u00efve \u4f60\u597d words here");
    // After that, typing goes into the composer again, and a selection there replaces that of the message.
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_A);
    ctx->KeyChars("abc");
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_A);
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_C);
    ctx->Yield(2);
    IM_CHECK_STR_EQ(ImGui::GetClipboardText(), "abc");
    ctx->ItemClick("//Chat/**/Copy");
    ctx->Yield(2);
    IM_CHECK_STR_EQ(ImGui::GetClipboardText(), "na\u00efve \u4f60\u597d words here");
  }));
}

TEST(ChatUi, TheEndStaysInViewOnlyWhileTheReaderIsThere) {
  UiHarness ui;
  ui.engine().script = answers_with({});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    open_and_type(ui, ctx, "Count");
    ui.engine().script = {};
    ctx->KeyChars("Go on");
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(3);
    const uint64_t id = ui.engine().last<Generate>().reply_id;
    auto write = [&](int lines) {
      ui.engine().publish(TextDelta{id, many_lines(lines), 10, 40, 50});
      ctx->Yield(3);
    };
    ImGuiWindow* messages = ctx->WindowInfo("//Chat/Messages").Window;
    IM_CHECK(messages != nullptr);
    write(100);
    IM_CHECK_GT(messages->ScrollMax.y, 100.0f);
    IM_CHECK_GE(messages->Scroll.y, messages->ScrollMax.y - 1);
    ctx->KeyPress(ImGuiKey_PageUp);
    ctx->Yield(3);
    const float there = messages->Scroll.y;
    IM_CHECK_LT(there, messages->ScrollMax.y - 50);
    write(20);
    IM_CHECK_EQ(messages->Scroll.y, there);  // what is in view does not move
    ctx->ItemClick("//Chat/**/To the end");
    ctx->Yield(3);
    IM_CHECK_GE(messages->Scroll.y, messages->ScrollMax.y - 1);
    write(20);
    IM_CHECK_GE(messages->Scroll.y, messages->ScrollMax.y - 1);
    ui.resize(1280, 560);  // a smaller window does not count as scrolling away
    ctx->Yield(3);
    IM_CHECK_GE(messages->Scroll.y, messages->ScrollMax.y - 1);
    ctx->MouseMoveToPos(messages->InnerRect.GetCenter());
    ctx->MouseWheelY(5);
    ctx->Yield(3);
    const float wheeled = messages->Scroll.y;
    write(20);
    IM_CHECK_EQ(messages->Scroll.y, wheeled);
    IM_CHECK(ctx->ItemExists("//Chat/**/To the end"));
    ui.app().run(app::NewChat{});
    ctx->Yield(3);
    IM_CHECK(!ctx->ItemExists("//Chat/**/To the end"));  // there is nothing above the end of an empty chat
  }));
}

TEST(ChatUi, EscStopsAndKeepsWhatIsBeingTyped) {
  UiHarness ui;
  ui.engine().script = answers_with({});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    open_and_type(ui, ctx, "First");
    ui.engine().script = [](ScriptedEngine& engine, const Command& command) {
      if (!std::holds_alternative<StopReply>(command)) return;
      ReplyFinished finished;
      finished.reply_id = engine.last<Generate>().reply_id;
      finished.reason = FinishReason::cancelled;
      engine.publish(finished);
    };
    ctx->KeyChars("Second");
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(3);
    IM_CHECK(ui.view().busy());
    ctx->KeyChars("A draft");
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->Yield(3);
    IM_CHECK(!ui.view().busy());
    ctx->KeyChars(" goes on");
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(3);
  }));
  ASSERT_FALSE(ui.engine().last<Generate>().turns.empty());
  EXPECT_EQ(ui.engine().last<Generate>().turns.back().content, "A draft goes on");
}

TEST(ChatUi, TheKeyboardComesBackAfterEveryClick) {
  UiHarness ui;
  ui.engine().script = answers_with({"Yes."});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    open_and_type(ui, ctx, "One");
    for (const char* item : {"//Top bar/Theme", "//Chat/**/Copy", "//Chat/**/Run again", "//Top bar/Lab"}) {
      const size_t before = ui.engine().count<Generate>() + (std::string(item).ends_with("Run again") ? 1 : 0);
      ctx->KeyChars("Go");
      ctx->ItemClick(item);
      ctx->Yield(3);
      ctx->KeyChars(" on");
      ctx->KeyPress(ImGuiKey_Enter);
      ctx->Yield(3);
      EXPECT_EQ(ui.engine().count<Generate>(), before + 1) << "after " << item;
      EXPECT_EQ(ui.engine().last<Generate>().turns.back().content, "Go on") << "after " << item;
    }
  }));
}

/// Types as a window system reports it: each key goes down and up again before the next frame.
void type_at_once(const std::string& text) {
  ImGuiIO& io = ImGui::GetIO();
  for (char c : text) {
    io.AddKeyEvent(ImGuiKey_A, true);
    io.AddInputCharacter(static_cast<unsigned char>(c));
    io.AddKeyEvent(ImGuiKey_A, false);
  }
}

void press_at_once(ImGuiKey modifier, ImGuiKey modifier_key, ImGuiKey key) {
  ImGuiIO& io = ImGui::GetIO();
  if (modifier) io.AddKeyEvent(modifier, true), io.AddKeyEvent(modifier_key, true);
  io.AddKeyEvent(key, true);
  io.AddKeyEvent(key, false);
  if (modifier) io.AddKeyEvent(modifier, false), io.AddKeyEvent(modifier_key, false);
}

TEST(ChatUi, WhatIsTypedFasterThanFramesAreDrawnIsNotLost) {
  UiHarness ui;
  ui.engine().script = answers_with({"Yes."});
  ui.app().run(app::OpenModel{"/models/a.gguf"});
  auto take_all = [&] {
    ui.frame();
    for (int frames = 0; ui.app().input_waits() && frames < 200; ++frames) ui.frame();
    EXPECT_FALSE(ui.app().input_waits());
    ui.frame();
  };
  for (int i = 0; i < 4; ++i) ui.frame();
  EXPECT_FALSE(ui.app().input_waits());
  type_at_once("typed in one go");
  press_at_once(ImGuiKey_None, ImGuiKey_None, ImGuiKey_Enter);
  ui.frame();
  EXPECT_TRUE(ui.app().input_waits());
  take_all();
  ASSERT_EQ(ui.view().messages.size(), 2u);
  EXPECT_EQ(ui.view().messages[0].text, "typed in one go");
  press_at_once(ImGuiMod_Ctrl, ImGuiKey_LeftCtrl, ImGuiKey_N);
  take_all();
  EXPECT_TRUE(ui.view().messages.empty());
  press_at_once(ImGuiMod_Ctrl, ImGuiKey_LeftCtrl, ImGuiKey_Minus);
  take_all();
  EXPECT_FLOAT_EQ(ui.view().user_scale, 0.9f);
}

TEST(ChatUi, LettersTypedAnywhereAreTypedIntoTheMessage) {
  app::AppSettings settings;
  settings.layout = app::WindowLayout::watch;
  UiHarness ui(settings);
  ui.engine().script = answers_with({"Yes."});
  const auto sent = [&] {
    const auto turns = ui.engine().last<Generate>().turns;
    return turns.empty() ? std::string() : turns.back().content;
  };
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ui.app().run(app::OpenModel{"/models/a.gguf"});
    ctx->Yield(4);
    const auto send = [&] {
      ctx->Yield(4);
      ctx->KeyPress(ImGuiKey_Enter);
      ctx->Yield(3);
    };
    // The tree has the focus; F and A are keys of it where there is no box to type in.
    ctx->MouseMoveToPos({900, 420});
    ctx->MouseClick();
    ctx->Yield(2);
    ctx->KeyChars("find all of it");
    send();
    IM_CHECK_STR_EQ(sent().c_str(), "find all of it");
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_K);
    ctx->Yield(2);
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->KeyChars("abc def ghi");
    send();
    IM_CHECK_STR_EQ(sent().c_str(), "abc def ghi");
    ctx->MouseMoveToPos({900, 420});
    ctx->MouseClick();
    ctx->Yield(2);
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_N);
    ctx->KeyChars("new words");
    send();
    IM_CHECK_STR_EQ(sent().c_str(), "new words");
    IM_CHECK_EQ(ui.view().messages.size(), 2u);
  }));
}

// Dear ImGui kept a place beyond the text where the box lost the keyboard right after it had got it, and measured on
// for ever once its scroll bar was dragged.
TEST(ChatUi, ABoxThatLosesTheKeyboardAtOnceIsScrolledAllTheSame) {
  app::AppSettings settings;
  settings.layout = app::WindowLayout::watch;
  UiHarness ui(settings);
  ui.engine().script = answers_with({"Yes."});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ui.app().run(app::OpenModel{"/models/a.gguf"});
    ctx->Yield(4);
    std::string words;
    for (int i = 0; i < 200; ++i) words += "many words ";
    ctx->MouseMoveToPos({900, 420});
    ctx->MouseClick();
    ctx->Yield(2);
    ctx->KeyChars(words.c_str());
    for (int i = 0; i < 100 && ImGui::GetActiveID() == 0; ++i) ctx->Yield();
    const ImGuiID box = ImGui::GetActiveID();
    IM_CHECK_NE(box, 0u);
    ImGuiWindow* inside = nullptr;
    for (ImGuiWindow* window : ImGui::GetCurrentContext()->Windows)
      if (window->WasActive && window->ChildId == box) inside = window;
    IM_CHECK(inside != nullptr);
    IM_CHECK_GT(inside->ScrollMax.y, 0.0f);
    ImGui::ClearActiveID();
    ctx->Yield(3);
    ctx->KeyChars("l");  // brings the keyboard back
    for (int i = 0; i < 10 && ImGui::GetActiveID() != box; ++i) ctx->Yield();
    IM_CHECK_EQ(ImGui::GetActiveID(), box);
    ImGui::ClearActiveID();
    ctx->Yield(2);
    const ImRect bar = ImGui::GetWindowScrollbarRect(inside, ImGuiAxis_Y);
    ctx->MouseMoveToPos({bar.GetCenter().x, bar.Max.y - 6});
    ctx->MouseDown();
    IM_CHECK_EQ(ImGui::GetActiveID(), ImGui::GetWindowScrollbarID(inside, ImGuiAxis_Y));
    ctx->MouseMoveToPos({bar.GetCenter().x, bar.Min.y + 2});
    ctx->MouseUp();
    ctx->Yield(2);
    IM_CHECK_LT(inside->Scroll.y, inside->ScrollMax.y);
  }));
}

TEST(ChatUi, LettersTypedBehindAnotherPanelBringTheMessageToTheFront) {
  UiHarness ui;  // Lab
  ui.engine().script = answers_with({"Yes."});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ui.app().run(app::OpenModel{"/models/a.gguf"});
    ctx->Yield(4);
    const auto in_front = [](const char* name) {
      const ImGuiWindow* window = ImGui::FindWindowByName(name);
      return window != nullptr && window->DockTabIsVisible;
    };
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_B);
    ctx->Yield(4);
    IM_CHECK(in_front("History"));
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_B);
    ctx->Yield(4);
    IM_CHECK(in_front("Chat"));
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_B);
    ctx->Yield(4);
    IM_CHECK(in_front("History"));
    ctx->KeyChars("find all of it");
    ctx->Yield(4);
    IM_CHECK(in_front("Chat"));
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(3);
    const auto turns = ui.engine().last<Generate>().turns;
    IM_CHECK_EQ(turns.size(), 1u);
    IM_CHECK_STR_EQ(turns.back().content.c_str(), "find all of it");
  }));
}

// There is no box to take them, and they would stand in it when the recording is closed.
TEST(ChatUi, LettersTypedOverARecordingAreKeptNowhere) {
  UiHarness ui;  // Lab
  ui.engine().script = answers_with({});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ui.app().run(app::OpenModel{CANOPY_SOURCE_DIR "/assets/demos/code.canopytrace"});
    ctx->Yield(4);
    IM_CHECK(!ui.view().own_chat());
    IM_CHECK(ui.view().shell.layout == app::WindowLayout::lab);
    ui.app().run(app::ShellCommand(app::ShowPanel{"History", true}));
    ctx->Yield(4);
    ctx->KeyChars("words");
    ctx->Yield(4);
    IM_CHECK_STR_EQ(ui.view().shell.raised.c_str(), "History");
    IM_CHECK(app::look().typed_ahead.empty());
  }));
}

TEST(ChatUi, TheNameOfAPanelOpensIt) {
  UiHarness ui;
  ui.engine().script = answers_with({});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ui.app().run(app::OpenModel{"/models/a.gguf"});
    ctx->Yield(3);
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_K);
    ctx->Yield(2);
    ctx->KeyChars("history");
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(3);
    IM_CHECK(!ui.view().shell.closed.contains("History"));
    IM_CHECK_STR_EQ(ui.view().shell.raised.c_str(), "History");
  }));
}

// Closing the window stops the reply and waits for its end, which brings its tokens.
TEST(ChatUi, AWindowThatClosesKeepsTheTokensOfTheReply) {
  UiHarness ui;
  ui.engine().script = answers_with({});
  ui.app().run(app::OpenModel{"/models/a.gguf"});
  for (int i = 0; i < 3; ++i) ui.frame();
  ui.engine().script = [](ScriptedEngine& engine, const Command& command) {
    if (!std::holds_alternative<StopReply>(command)) return;
    ReplyFinished finished;
    finished.reply_id = engine.last<Generate>().reply_id;
    finished.reason = FinishReason::cancelled;
    finished.reply_tokens = 2;
    finished.tokens.ids = {4, 5};
    engine.publish(finished);
  };
  ui.app().run(app::SendMessage{"Go"});
  ui.engine().publish(TextDelta{ui.view().reply_id, "A word", 2, 40, 50});
  ui.frame();
  ASSERT_TRUE(ui.view().busy());
  ui.app().end_reply_within(std::chrono::seconds(5));
  ASSERT_FALSE(ui.view().busy());
  EXPECT_EQ(ui.view().messages.back().result->tokens.ids, (std::vector<uint32_t>{4, 5}));
}

}  // namespace
}  // namespace canopy::test
