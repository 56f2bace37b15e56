// The chat panel in the whole application: branches, code, tokens, search, history, long chats, scripts.

#include <gtest/gtest.h>
#include <imgui_internal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "app/ui/look.h"
#include "engine/base/mapped_file.h"
#include "tests/app/support/drawn_texts.h"
#include "tests/app/support/ui_harness.h"
#include "tests/base/temp_folder.h"

namespace canopy::test {
namespace {

void send(ImGuiTestContext* ctx, const char* question) {
  ctx->KeyChars(question);
  ctx->KeyPress(ImGuiKey_Enter);
  ctx->Yield(4);
}

void open_and_ask(UiHarness& ui, ImGuiTestContext* ctx, const char* question) {
  ui.app().run(app::OpenModel{"/models/a.gguf"});
  ctx->Yield(3);
  send(ctx, question);
}

/// The items of the transcript with this label, from top to bottom.
std::vector<ImGuiTestItemInfo> items(ImGuiTestContext* ctx, const std::string& label) {
  ImGuiTestItemList all;
  ctx->GatherItems(&all, ctx->WindowInfo("//Chat/Messages").ID, 8);
  std::vector<ImGuiTestItemInfo> found;
  for (const ImGuiTestItemInfo& item : all)
    if (label == item.DebugLabel) found.push_back(item);
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.RectFull.Min.y < b.RectFull.Min.y; });
  return found;
}

/// Clicks the middle of an item without scrolling to it.
void click(ImGuiTestContext* ctx, const ImRect& rect) {
  ctx->MouseMoveToPos(rect.GetCenter());
  ctx->MouseClick();
  ctx->Yield(4);
}

TEST(ChatPanel, AQuestionIsEditedIntoABranchAndBothAreReached) {  // gui.md, criterion 19
  UiHarness ui;
  ui.engine().script = answers_with({"First answer."});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    open_and_ask(ui, ctx, "Question one");
    ui.engine().script = answers_with({"Second answer."});
    const auto edit = items(ctx, "Edit");
    IM_CHECK_EQ(edit.size(), 1u);
    click(ctx, edit[0].RectFull);
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_A);
    ctx->KeyChars("Question two");
    ctx->Yield(2);
    click(ctx, items(ctx, "Ask again").at(0).RectFull);
    IM_CHECK_STR_EQ(ui.view().messages[0].text.c_str(), "Question two");
    IM_CHECK_STR_EQ(ui.view().messages[1].text.c_str(), "Second answer.");
    click(ctx, items(ctx, "Previous version").at(0).RectFull);
    IM_CHECK_STR_EQ(ui.view().messages[0].text.c_str(), "Question one");
    IM_CHECK_STR_EQ(ui.view().messages[1].text.c_str(), "First answer.");
    send(ctx, "Typing goes into the composer again");
    IM_CHECK_EQ(ui.view().messages.size(), 4u);
  }));
}

TEST(ChatPanel, AnotherAnswerIsAVersionBesideTheFirst) {  // gui.md, criterion 19
  UiHarness ui;
  ui.engine().script = answers_with({"First answer."});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    open_and_ask(ui, ctx, "Question");
    ui.engine().script = answers_with({"Second answer."});
    ctx->ItemClick("//Chat/**/Run again");
    ctx->Yield(4);
    IM_CHECK_STR_EQ(ui.view().messages[1].text.c_str(), "Second answer.");
    IM_CHECK_EQ(ui.view().messages.place(1).count, 2u);
    ctx->ItemClick("//Chat/**/Previous version");
    ctx->Yield(2);
    IM_CHECK_STR_EQ(ui.view().messages[1].text.c_str(), "First answer.");
    ctx->ItemClick("//Chat/**/Next version");
    ctx->Yield(2);
    IM_CHECK_STR_EQ(ui.view().messages[1].text.c_str(), "Second answer.");
    ctx->ItemClick("//Chat/**/Continue in a new chat");
    ctx->Yield(2);
    IM_CHECK_EQ(ui.view().messages.size(), 2u);
    IM_CHECK_EQ(ui.view().messages.place(1).count, 1u);
  }));
}

TEST(ChatPanel, CodeIsCopiedByteForByte) {  // gui.md, criterion 19
  UiHarness ui;
  const std::string code = "def f(x):\n\treturn x  # \u4f60 &amp; **no**\n\n    print(f(1))";
  const std::string all = "Look:\n\n```python\n" + code + "\n```\n\nDone.";
  ui.engine().script = answers_with({all});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    open_and_ask(ui, ctx, "Code, please");
    ctx->ItemClick("//Chat/**/Copy code");
    ctx->Yield(2);
    IM_CHECK_STR_EQ(ImGui::GetClipboardText(), code.c_str());
    ctx->ItemClick("//Chat/**/Copy");
    ctx->Yield(2);
    IM_CHECK_STR_EQ(ImGui::GetClipboardText(), all.c_str());
  }));
}

/// Answers in rounds with drafts: "The" | " merge" " step" | " joins".
void answer_in_rounds(ScriptedEngine& engine, const Command& command) {
  if (std::holds_alternative<LoadModel>(command)) engine.publish(small_model());
  const auto* generate = std::get_if<Generate>(&command);
  if (!generate) return;
  const uint64_t id = generate->reply_id;
  engine.publish(TextDelta{id, "The merge step joins", 4, 28, 50});
  auto record = std::make_shared<RoundRecord>();
  record->mode = record->shape = DecodeMode::tree;
  record->width = 3;
  record->accepted = 1;
  record->emitted = {11, 12};
  record->nodes.resize(3);
  record->nodes[1].node = {11, 0, 1};
  record->nodes[2].node = {13, 0, 1};
  record->nodes[0].state = record->nodes[1].state = NodeState::accepted;
  record->nodes[2].state = NodeState::rejected;
  engine.publish(RoundFinished{id, record, 1, 3, {9, 14}});
  auto second = std::make_shared<RoundRecord>(*record);
  second->round = 1;
  second->accepted = 0;
  second->emitted = {14};
  second->nodes[1].state = NodeState::rejected;
  engine.publish(RoundFinished{id, second, 3, 14, {20}});
  ReplyFinished finished;
  finished.reply_id = id;
  finished.reply_tokens = 4;
  finished.tau = 1.5;
  finished.mode = DecodeMode::tree;
  engine.publish(finished);
}

TEST(ChatPanel, PointingAtATokenShowsItsNodeAndAClickKeepsIt) {
  UiHarness ui;
  ui.engine().script = answer_in_rounds;
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    open_and_ask(ui, ctx, "Go");
    IM_CHECK_EQ(ui.view().rounds.log->rounds(), 2u);
    const ImRect text = items(ctx, "text").back().RectFull;
    ctx->MouseMoveToPos({text.Min.x + 45, text.Min.y + 10});  // "merge"
    ctx->Yield(3);
    IM_CHECK(ui.view().rounds.hovered.has_value());
    IM_CHECK(*ui.view().rounds.hovered == (app::NodeRef{0, 1}));
    ctx->MouseClick();
    ctx->Yield(3);
    IM_CHECK(ui.view().rounds.selected.has_value());
    IM_CHECK(*ui.view().rounds.selected == (app::NodeRef{0, 1}));
    ctx->MouseMoveToPos({text.Min.x + 8, text.Min.y + 10});  // "The": the root of the first round
    ctx->Yield(3);
    IM_CHECK(*ui.view().rounds.hovered == (app::NodeRef{0, 0}));
    ctx->MouseMoveToPos({text.Max.x - 4, text.Min.y + 10});  // behind the text
    ctx->Yield(3);
    IM_CHECK(!ui.view().rounds.hovered.has_value());
    ctx->ItemClick("//Chat/**/Token sources");
    ctx->Yield(2);
    IM_CHECK(!ui.view().chat.sources_shown);
  }));
}

std::string paragraph(int number) {
  return "Paragraph " + std::to_string(number) + " has **strong** words and `code`, and goes on for a line or two.\n\n";
}

/// The JSON of a conversation with this many messages.
std::string long_chat(size_t messages) {
  std::string json = R"({"format":"canopy-chat","version":1,"messages":[)";
  for (size_t i = 0; i < messages; ++i) {
    json += i == 0 ? "" : ",";
    json += i == 0 ? "{" : "{\"after\":" + std::to_string(i - 1) + ",";
    json += i % 2 ? R"("role":"assistant","text":"Reply )" : R"("role":"user","text":"Question )";
    json += std::to_string(i) + (i % 2 ? " with **strong** words.\\n\\n```c\\nint x;\\n```\\n\\n- one\\n- two" : "") +
            "\"}";
  }
  return json + "]}";
}

TEST(ChatPanel, TenThousandMessagesScrollSmoothly) {  // gui.md, section 4: long chat
  UiHarness ui;
  const TempFolder folder;
  const auto path = folder.write("long.json", long_chat(10'000));
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ui.app().run(app::ImportChat{path.string()});
    ctx->Yield(4);
    IM_CHECK_EQ(ui.view().messages.size(), 10'000u);
    ImGuiWindow* messages = ctx->WindowInfo("//Chat/Messages").Window;
    IM_CHECK_GT(messages->ScrollMax.y, 300'000.0f);
    IM_CHECK_GE(messages->Scroll.y, messages->ScrollMax.y - 1);
    IM_CHECK_LT(items(ctx, "text").size(), 40u);  // messages out of view are not drawn
    double worst = 0;
    for (int page = 0; page < 30; ++page) {
      ctx->KeyPress(ImGuiKey_PageUp);
      const auto start = std::chrono::steady_clock::now();
      ctx->Yield();
      worst = std::max(worst, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    IM_CHECK_LT(messages->Scroll.y, messages->ScrollMax.y - 5'000);
    RecordProperty("worst_frame_ms", std::to_string(worst * 1e3));
    // While real heights replace estimated ones, the messages in view must not move.
    const auto before = items(ctx, "text");
    ctx->Yield(5);
    const auto after = items(ctx, "text");
    IM_CHECK_EQ(before.size(), after.size());
    IM_CHECK_EQ(before[0].RectFull.Min.y, after[0].RectFull.Min.y);
  }));
}

TEST(ChatPanel, FindGoesFromHitToHit) {
  UiHarness ui;
  std::string text;
  for (int i = 0; i < 60; ++i) text += paragraph(i);
  ui.engine().script = answers_with({text});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    open_and_ask(ui, ctx, "Write");
    ImGuiWindow* messages = ctx->WindowInfo("//Chat/Messages").Window;
    const float end = messages->Scroll.y;
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_F);
    ctx->Yield(3);
    IM_CHECK(ui.view().chat.find_shown);
    ctx->KeyChars("paragraph 3 ");
    ctx->Yield(4);
    IM_CHECK_LT(messages->Scroll.y, end - 500);  // the hit was scrolled to
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->Yield(3);
    IM_CHECK(!ui.view().chat.find_shown);
    send(ctx, "Typing goes on");
    IM_CHECK_EQ(ui.view().messages.size(), 4u);
  }));
}

TEST(ChatPanel, HistoryOpensDeletesAndBringsBack) {
  const TempFolder folder;
  app::AppSettings settings;
  settings.chat_folder = folder.path().string();
  UiHarness ui(settings);
  ui.engine().script = answers_with({"An answer."});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    open_and_ask(ui, ctx, "The first chat");
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_N);
    ctx->Yield(3);
    send(ctx, "The second chat");
    IM_CHECK_EQ(ui.view().chat.listings.size(), 2u);
    const std::string first = ui.view().chat.listings[1].id;
    ctx->WindowFocus("//History");
    ctx->Yield(3);
    ctx->ItemClick(("//History/**/" + first + "/Open chat").c_str());
    ctx->Yield(3);
    IM_CHECK_STR_EQ(ui.view().messages[0].text.c_str(), "The first chat");
    IM_CHECK(ImGui::FindWindowByName("Chat")->DockTabIsVisible);  // it is shown, not only opened behind the list
    ctx->WindowFocus("//History");
    ctx->Yield(3);
    ctx->ItemClick(("//History/**/" + first + "/More").c_str());
    ctx->ItemClick("//$FOCUSED/Delete");
    ctx->Yield(3);
    IM_CHECK_EQ(ui.view().chat.listings.size(), 1u);
    IM_CHECK(ui.view().messages.empty());
    ctx->ItemClick("//History/Undo delete");
    ctx->Yield(3);
    IM_CHECK_EQ(ui.view().chat.listings.size(), 2u);
    ctx->ItemClick("//History/##Search all chats");
    ctx->KeyChars("SECOND");
    ctx->Yield(3);
    IM_CHECK_EQ(ui.view().chat.listings.size(), 1u);
  }));
}

TEST(ChatPanel, NoHalfCharacterIsEverShown) {  // gui.md, criterion 20
  const std::string whole = "\u4f60\u597d \U0001F333\u200d\U0001F525 e\u0301 \u00fc";
  UiHarness ui;
  ui.engine().script = answers_with({});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    open_and_ask(ui, ctx, "Stream");
    ui.engine().script = {};
    send(ctx, "Again");
    const uint64_t id = ui.engine().last<Generate>().reply_id;
    // The engine sends whole characters; here each one comes in an event of its own, with frames between.
    for (size_t at = 0; at < whole.size();) {
      size_t next = at + 1;
      while (next < whole.size() && (static_cast<unsigned char>(whole[next]) & 0xC0) == 0x80) ++next;
      ui.engine().publish(TextDelta{id, whole.substr(at, next - at), 1, 30, 50});
      ctx->Yield(2);
      IM_CHECK(ui.view().messages.back().text.find("\uFFFD") == std::string::npos);
      at = next;
    }
    IM_CHECK_STR_EQ(ui.view().messages.back().text.c_str(), whole.c_str());
    // Without system fonts there are no glyphs for these characters, and the panel says so.
    IM_CHECK(ctx->ItemExists("//Chat/Limits of fonts"));
    {
      DrawnTexts texts;
      ctx->Yield();
      IM_CHECK(texts.any_contains("fonts-noto-cjk"));
      IM_CHECK(texts.any_contains("fonts-noto-color-emoji"));
      IM_CHECK(texts.any_contains("again."));  // to its end, in as many lines as it needs
    }
    ctx->ItemClick("//Chat/Dismiss limits");
    ctx->Yield(3);
    IM_CHECK(!ctx->ItemExists("//Chat/Limits of fonts"));
  }));
}

TEST(ChatPanel, TheComposerShowsHowItsLineReads) {
  UiHarness ui;
  ui.engine().script = answers_with({"Yes."});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    open_and_ask(ui, ctx, "Hello");
    DrawnTexts texts;
    ctx->KeyChars("Plain \u4f60\u597d");
    texts.clear();
    ctx->Yield();
    IM_CHECK(!texts.any_contains("As it reads"));
    ctx->KeyChars(" \u05d0\u05d1");
    texts.clear();
    ctx->Yield();
    IM_CHECK(texts.any_contains("As it reads"));
    IM_CHECK(texts.any_contains("Plain \u4f60\u597d \u05d0\u05d1"));
  }));
}

TEST(ChatPanel, LongWordsAndTablesStayInsideTheColumn) {
  UiHarness ui;
  ui.engine().script =
      answers_with({std::string(400, 'x') + "\n\n| a | b |\n|---|---|\n| " + std::string(200, 'y') + " | " +
                    std::string(200, 'z') + " |\n\n```\n" + std::string(300, 'c') + "\n```\n"});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    open_and_ask(ui, ctx, "Long");
    ImGuiWindow* messages = ctx->WindowInfo("//Chat/Messages").Window;
    IM_CHECK_LE(messages->ContentSize.x, messages->InnerRect.GetWidth() + 1);
    IM_CHECK_GT(items(ctx, "text").back().RectFull.GetHeight(), 200.0f);
  }));
}

TEST(ChatPanel, TheSystemPromptGoesWithTheNextQuestion) {
  UiHarness ui;
  ui.engine().script = answers_with({"Yes."});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ui.app().run(app::OpenModel{"/models/a.gguf"});
    ctx->Yield(3);
    ctx->ItemClick("//Chat/Sampling");
    ctx->ItemClick("//$FOCUSED/##system prompt");
    ctx->KeyChars("Be brief.");
    ctx->Yield(2);
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->Yield(3);
    ui.app().run(app::SendMessage{"Hello"});
    ctx->Yield(3);
  }));
  const auto turns = ui.engine().last<Generate>().turns;
  ASSERT_EQ(turns.size(), 2u);
  EXPECT_EQ(turns[0].role, "system");
  EXPECT_EQ(turns[0].content, "Be brief.");
}

TEST(ChatPanel, AFailedReplyKeepsItsTextAndSaysWhy) {
  UiHarness ui;
  ui.engine().script = [](ScriptedEngine& engine, const Command& command) {
    if (std::holds_alternative<LoadModel>(command)) engine.publish(small_model());
    if (const auto* generate = std::get_if<Generate>(&command)) {
      engine.publish(TextDelta{generate->reply_id, "As far as this", 3, 20, 10});
      engine.publish(Failure{ErrorKind::device_lost, "The device was lost", "It was unplugged.", generate->reply_id});
    }
  };
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    open_and_ask(ui, ctx, "Go");
    IM_CHECK_STR_EQ(ui.view().messages.back().text.c_str(), "As far as this");
    IM_CHECK(ctx->ItemExists("//Chat/**/Load again"));
  }));
}

void open_export(ImGuiTestContext* ctx) {
  ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_E);
  ctx->Yield(3);
}

void import_by_keys(UiHarness& ui, ImGuiTestContext* ctx, const std::filesystem::path& file) {
  ui.app().run(app::ChatCommand(app::ShowChatFiles{app::ChatFiles::importing}));
  ctx->Yield(3);
  ctx->KeyChars(file.c_str());  // the text box of the file has the focus
  ctx->KeyPress(ImGuiKey_Enter);
  ctx->Yield(3);
}

TEST(ChatPanel, AChatIsExportedFromItsMenu) {  // gui.md, criterion 19: export
  const TempFolder folder;
  UiHarness ui;
  ui.engine().script = answers_with({"An answer."});
  const std::string path = (folder.path() / "out.md").string();
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    open_and_ask(ui, ctx, "A question");
    ctx->ItemClick("//Chat/Export or import");
    ctx->ItemClick("//$FOCUSED/Export chat");
    ctx->Yield(3);
    ctx->ItemInputValue("//$FOCUSED/##folder", folder.path().c_str());
    ctx->ItemInputValue("//$FOCUSED/##name", "out");  // ends with Enter, which saves
    ctx->Yield(3);
    IM_CHECK(ui.view().chat.files == app::ChatFiles::closed);
    IM_CHECK(ui.view().chat.note.starts_with("Saved out.md in "));
  }));
  EXPECT_NE(read_small_file(path, 1 << 20).find("An answer."), std::string::npos);
}

// gui.md, criterion 25: by keys alone. The folder is filled in, and the name has the focus.
TEST(ChatPanel, AChatIsExportedByKeysAsJsonAndComesBackByImport) {
  const TempFolder folder;
  UiHarness ui;
  ui.engine().script = answers_with({"An answer."});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    open_and_ask(ui, ctx, "A question");
    open_export(ctx);
    ctx->KeyPress(ImGuiMod_Shift | ImGuiKey_Tab);
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_A);
    ctx->KeyChars(folder.path().c_str());
    ctx->KeyPress(ImGuiMod_Shift | ImGuiKey_Tab);
    ctx->KeyPress(ImGuiKey_Space);  // JSON
    for (int i = 0; i < 2; ++i) ctx->KeyPress(ImGuiKey_Tab);
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_A);
    ctx->KeyChars("kept");
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(3);
    IM_CHECK(ui.view().chat.note.starts_with("Saved kept.json in "));
    // A file that exists is replaced only after pressing a button that says so.
    open_export(ctx);
    std::vector<app::DrawnText> drawn;
    app::look().drawn = &drawn;
    ctx->Yield(2);
    app::look().drawn = nullptr;
    IM_CHECK(std::ranges::any_of(drawn, [](const auto& d) { return d.text == "Replace"; }));
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->Yield(3);
    IM_CHECK(ui.view().chat.files == app::ChatFiles::closed);
    ui.app().run(app::NewChat{});
    import_by_keys(ui, ctx, folder.path() / "kept.json");
    IM_CHECK_EQ(ui.view().messages.size(), 2u);
    IM_CHECK_STR_EQ(ui.view().messages[1].text.c_str(), "An answer.");
    IM_CHECK_STR_EQ(ui.view().chat.note.c_str(), "Imported kept.json");
  }));
}

TEST(ChatPanel, AnExportThatFailsSaysWhyAndKeepsWhatWasTyped) {
  const TempFolder folder;
  folder.write("broken.json", "{\"format\": 1");
  UiHarness ui;
  ui.engine().script = answers_with({"An answer."});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    open_and_ask(ui, ctx, "A question");
    open_export(ctx);
    ctx->ItemInputValue("//$FOCUSED/##folder", "/proc/nowhere");
    ctx->ItemClick("//$FOCUSED/Save");
    ctx->Yield(3);
    IM_CHECK(ui.view().chat.files == app::ChatFiles::exporting);
    IM_CHECK(ui.view().chat.files_problem.find("/proc/nowhere") != std::string::npos);
    IM_CHECK(ui.view().cards.empty());
    ctx->ItemInputValue("//$FOCUSED/##folder", folder.path().c_str());
    ctx->ItemClick("//$FOCUSED/Save");
    ctx->Yield(3);
    IM_CHECK(ui.view().chat.files == app::ChatFiles::closed);
    import_by_keys(ui, ctx, folder.path() / "broken.json");
    IM_CHECK(ui.view().chat.files == app::ChatFiles::importing);
    IM_CHECK(!ui.view().chat.files_problem.empty());
    IM_CHECK_EQ(ui.view().messages.size(), 2u);  // the shown conversation stays
  }));
}

}  // namespace
}  // namespace canopy::test
