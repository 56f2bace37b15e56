// What stands around the words of a chat: thinking, files, the meter of the context, system prompts by name.

#include <gtest/gtest.h>
#include <imgui_internal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/app/support/drawn_texts.h"
#include "tests/app/support/tooltip_text.h"
#include "tests/app/support/ui_harness.h"
#include "tests/base/temp_folder.h"

namespace canopy::test {
namespace {

using Script = std::function<void(ScriptedEngine&, const Command&)>;

/// A model that can think, with a context of 1,000 tokens, which answers with one text.
Script thinks(std::string answer, FinishReason reason = FinishReason::stop_token, uint32_t used = 100) {
  return [=](ScriptedEngine& engine, const Command& command) {
    if (std::holds_alternative<LoadModel>(command)) {
      ModelReady model = small_model();
      model.context = 1000;
      model.thinking = {true, true, false, false, false};
      engine.publish(model);
    }
    if (const auto* count = std::get_if<CountTokens>(&command)) engine.publish(TokensCounted{count->id, 0, 1234});
    const auto* generate = std::get_if<Generate>(&command);
    if (!generate) return;
    engine.publish(TextDelta{generate->reply_id, answer, 12, used, 60});
    ReplyFinished finished;
    finished.reply_id = generate->reply_id;
    finished.reason = reason;
    finished.reply_tokens = 12;
    finished.context_used = used;
    engine.publish(finished);
  };
}

void ask_it(ImGuiTestContext* ctx, const char* question) {
  ctx->KeyChars(question);
  ctx->KeyPress(ImGuiKey_Enter);
  ctx->Yield(4);
}

void open_thinker(UiHarness& ui, ImGuiTestContext* ctx) {
  ui.app().run(app::OpenModel{"/models/a.gguf"});
  ctx->Yield(3);
}

/// The items of the transcript with this label.
std::vector<ImRect> shown_items(ImGuiTestContext* ctx, const std::string& label) {
  ImGuiTestItemList all;
  ctx->GatherItems(&all, ctx->WindowInfo("//Chat/Messages").ID, 8);
  std::vector<ImRect> found;
  for (const ImGuiTestItemInfo& item : all)
    if (label == item.DebugLabel) found.push_back(item.RectFull);
  return found;
}

void click_on(ImGuiTestContext* ctx, const ImRect& rect) {
  ctx->MouseMoveToPos(rect.GetCenter());
  ctx->MouseClick();
  ctx->Yield(4);
}

TEST(ChatTools, ThinkingIsFoldedUnfoldsAndIsNotCopied) {
  UiHarness ui;
  ui.engine().script = thinks("<think>\nSecret steps.\n</think>\n\nThe answer.");
  DrawnTexts texts;
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    open_thinker(ui, ctx);
    ask_it(ctx, "Why?");
    texts.clear();
    ctx->Yield(2);
    IM_CHECK(texts.has("Thought"));
    IM_CHECK_EQ(shown_items(ctx, "text").size(), 2u);  // question and answer
    const auto head = shown_items(ctx, "Thinking");
    IM_CHECK_EQ(head.size(), 1u);
    click_on(ctx, head[0]);
    IM_CHECK_EQ(shown_items(ctx, "text").size(), 3u);
    ctx->ItemClick("//Chat/**/Copy");
    ctx->Yield(2);
    IM_CHECK_STR_EQ(ImGui::GetClipboardText(), "The answer.");
    // A selection inside the unfolded text copies what stands there.
    const auto bodies = shown_items(ctx, "text");
    const auto thought = std::find_if(bodies.begin(), bodies.end(), [&](const ImRect& r) {
      return r.Min.y > head[0].Min.y && r.Min.y < head[0].Max.y + 12;
    });
    IM_CHECK(thought != bodies.end());
    ctx->MouseMoveToPos({thought->Min.x + 6, thought->Min.y + 10});
    ctx->MouseDoubleClick();
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_C);
    ctx->Yield(2);
    IM_CHECK_STR_EQ(ImGui::GetClipboardText(), "Secret");
    // And what is found in it is unfolded.
    click_on(ctx, shown_items(ctx, "Thinking")[0]);
    IM_CHECK_EQ(shown_items(ctx, "text").size(), 2u);
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_F);
    ctx->Yield(2);
    ctx->KeyChars("steps");
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(4);
    IM_CHECK_EQ(shown_items(ctx, "text").size(), 3u);
  }));
}

TEST(ChatTools, ThinkingThatGoesOnIsOneLine) {
  UiHarness ui;
  ui.engine().script = thinks("");
  DrawnTexts texts;
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    open_thinker(ui, ctx);
    ui.engine().script = {};
    ask_it(ctx, "Why?");
    ui.engine().publish(TextDelta{ui.view().reply_id, "<think>\nHm, well", 213, 300, 60});
    ctx->Yield(3);
    texts.clear();
    ctx->Yield(2);
    IM_CHECK(texts.has("Thinking, 213 tokens"));
    IM_CHECK_EQ(shown_items(ctx, "text").size(), 1u);
  }));
}

TEST(ChatTools, ThinkingIsSwitchedOnlyWhereItsModelKnowsIt) {
  UiHarness ui;
  ui.engine().script = answers_with({"An answer."});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    open_thinker(ui, ctx);
    IM_CHECK(!ctx->ItemExists("//Chat/Think"));
    ui.engine().script = thinks("Yes.");
    ui.app().run(app::OpenModel{"/models/b.gguf"});
    ctx->Yield(3);
    ctx->ItemClick("//Chat/Think");
    ctx->Yield(2);
    ask_it(ctx, "Why?");
    IM_CHECK(ui.engine().last<Generate>().thinking == std::optional(false));
    ctx->ItemClick("//Chat/Think");
    ctx->Yield(2);
    ask_it(ctx, "Why?");
    IM_CHECK(ui.engine().last<Generate>().thinking == std::optional(true));
  }));
}

TEST(ChatTools, AnEditedQuestionHasItsCaretAtTheEndAndEnterSends) {
  UiHarness ui;
  ui.engine().script = answers_with({"An answer."});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    open_thinker(ui, ctx);
    ask_it(ctx, "What is two");
    click_on(ctx, shown_items(ctx, "Edit").at(0));
    ctx->KeyChars(" and two?");
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(4);
    IM_CHECK_EQ(ui.view().messages.size(), 2u);
    IM_CHECK_STR_EQ(ui.view().messages[0].text.c_str(), "What is two and two?");
    IM_CHECK_EQ(ui.view().messages.place(0).count, 2u);
  }));
}

TEST(ChatTools, LabelsOfSearchBoxesDoNotLieOverAnything) {
  UiHarness ui;
  ui.engine().script = answers_with({"An answer."});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    open_thinker(ui, ctx);
    ask_it(ctx, "What is two");
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_F);
    ctx->Yield(3);
    // Dear ImGui draws the label of a box beside it, unless it begins with ##.
    IM_CHECK(ctx->ItemExists("//Chat/##Find"));
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->WindowFocus("//History");
    ctx->Yield(3);
    const ImGuiTestItemInfo search = ctx->ItemInfo("//History/##Search all chats");
    IM_CHECK_LE(search.RectFull.Max.x, ImGui::FindWindowByName("History")->Rect().Max.x);
  }));
}

TEST(ChatTools, FilesAreChipsThatGoWithTheQuestion) {
  const TempFolder folder;
  const std::string path = (folder.path() / "notes.txt").string(), binary = (folder.path() / "photo").string();
  std::ofstream(path) << "Some notes.\n";
  std::ofstream(binary, std::ios::binary) << std::string(40, '\0');
  UiHarness ui;
  ui.engine().script = thinks("Yes.");
  DrawnTexts texts;
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    open_thinker(ui, ctx);
    ui.app().open_paths({path});  // as when it is dropped on the window
    ctx->Yield(3);
    texts.clear();
    ctx->Yield(2);
    IM_CHECK(texts.has("notes.txt, 1,234 tokens"));
    IM_CHECK(texts.overlapping().empty());
    ui.app().run(app::ChatCommand(app::AttachFile{binary}));
    ctx->Yield(2);
    IM_CHECK(contains(ui.view().chat.attach_problem, "is no text"));
    ctx->ItemClick("//Chat/Dismiss file problem");
    ctx->Yield(2);
    IM_CHECK_STR_EQ(ui.view().chat.attach_problem.c_str(), "");
    IM_CHECK_EQ(ui.view().chat.attachments.size(), 1u);
    ask_it(ctx, "What is in it?");
    IM_CHECK_STR_EQ(ui.engine().last<Generate>().turns.back().content.c_str(),
                    "notes.txt:\n```\nSome notes.\n```\n\nWhat is in it?");
    texts.clear();
    ctx->Yield(2);
    IM_CHECK(texts.has("notes.txt, 1,234 tokens"));  // now in the question
    // By its path, where there is no file dialog.
    ctx->ItemClick("//Chat/Attach a file");
    ctx->Yield(2);
    ctx->KeyChars(path.c_str());
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(3);
    IM_CHECK_EQ(ui.view().chat.attachments.size(), 1u);
    ctx->ItemClick("//Chat/$$0/Remove file");
    ctx->Yield(2);
    IM_CHECK(ui.view().chat.attachments.empty());
  }));
}

TEST(ChatTools, AFullContextLeavesTheChoice) {
  UiHarness ui;
  ui.engine().script = thinks("An answer.", FinishReason::stop_token, 500);
  DrawnTexts texts;
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    open_thinker(ui, ctx);
    ask_it(ctx, "One");
    IM_CHECK(contains(tooltip_of(ctx, "//Chat/Context"), "This chat takes 500 of 1,000 tokens"));
    ui.engine().script = thinks("Another one.", FinishReason::context_full, 1000);
    ask_it(ctx, "Two");
    texts.clear();
    ctx->Yield(2);
    IM_CHECK(texts.has("The context is full"));
    IM_CHECK(texts.has("100%"));
    ctx->ItemClick("//Chat/**/Drop the oldest turns");
    ctx->Yield(3);
    texts.clear();
    ctx->Yield(2);
    IM_CHECK(!texts.has("The context is full"));
    IM_CHECK(texts.any_contains("The model "));
    IM_CHECK(texts.overlapping().empty());
    IM_CHECK_EQ(ui.view().messages.unsent(), 2u);
    ctx->ItemClick("//Chat/**/Send all turns");
    ctx->Yield(2);
    IM_CHECK_EQ(ui.view().messages.unsent(), 0u);
  }));
}

TEST(ChatTools, NothingOverlapsInANarrowChat) {
  for (const float scale : {1.0f, 2.0f}) {
    app::AppSettings settings;
    settings.user_scale = scale;
    UiHarness ui(settings, 900, 600);
    ui.engine().script = thinks("<think>\nSteps.\n</think>\n\nYes.", FinishReason::context_full, 1000);
    DrawnTexts texts;
    EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
      open_thinker(ui, ctx);
      ask_it(ctx, "Why?");
      texts.clear();
      ctx->Yield(2);
      IM_CHECK(ctx->ItemExists("//Chat/Context"));
      const ImRect meter = ctx->ItemInfo("//Chat/Context").RectFull;
      const ImRect send = ctx->ItemInfo("//Chat/Send").RectFull, sampling = ctx->ItemInfo("//Chat/Sampling").RectFull;
      IM_CHECK_LE(meter.Max.x, sampling.Min.x + 1);
      IM_CHECK_LE(sampling.Max.x, send.Min.x + 1);
      for (const std::string& pair : texts.overlapping()) IM_ERRORF("%s", pair.c_str());
    })) << scale;
  }
}

TEST(ChatTools, SystemPromptsAreKeptUnderNames) {
  const TempFolder folder;
  app::AppSettings settings;
  settings.settings_file = (folder.path() / "settings.json").string();
  {
    UiHarness ui(settings);
    ui.engine().script = thinks("Yes.");
    EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
      open_thinker(ui, ctx);
      ui.app().run(app::ChatCommand(app::SetSystemPrompt{"Explain like a teacher."}));
      ctx->Yield(2);
      ctx->ItemClick("//Chat/Sampling");
      ctx->Yield(2);
      ctx->ItemInput("//$FOCUSED/##prompt name");
      ctx->KeyCharsReplace("Teacher");
      ctx->ItemClick("//$FOCUSED/Save prompt");
      ctx->Yield(2);
      IM_CHECK_EQ(ui.view().chat.prompts.size(), 1u);
      IM_CHECK_STR_EQ(ui.view().chat.prompts[0].name.c_str(), "Teacher");
    }));
  }
  UiHarness ui(settings);
  ASSERT_EQ(ui.view().chat.prompts.size(), 1u);
  EXPECT_EQ(ui.view().chat.prompts[0].text, "Explain like a teacher.");
}

TEST(ChatTools, PromptsOfADamagedFileAreLeftAsTheyAre) {
  const TempFolder folder;
  app::AppSettings settings;
  settings.settings_file = (folder.path() / "settings.json").string();
  std::ofstream(folder.path() / "prompts.json") << "{\"prompts\": 7}";
  UiHarness ui(settings);
  ASSERT_EQ(ui.view().cards.size(), 1u);
  EXPECT_NE(ui.view().cards[0].detail.find("prompts.json"), std::string::npos);
  ui.app().run(app::ChatCommand(app::SavePrompt{"a", "b"}));
  std::string kept;
  std::getline(std::ifstream(folder.path() / "prompts.json"), kept);
  EXPECT_EQ(kept, "{\"prompts\": 7}");
}

TEST(ChatTools, TheSystemPromptShowsAsAChipThatOpensIt) {
  UiHarness ui;
  ui.engine().script = thinks("Yes.");
  DrawnTexts texts;
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    open_thinker(ui, ctx);
    IM_CHECK(!ctx->ItemExists("//Chat/System prompt chip"));
    ui.app().run(app::ChatCommand(app::SetSystemPrompt{"Talk like a pirate."}));
    ctx->Yield(2);
    texts.clear();
    ctx->Yield(2);
    IM_CHECK(texts.any_contains("System prompt: Talk"));
    IM_CHECK(texts.overlapping().empty());
    ctx->ItemClick("//Chat/System prompt chip");
    ctx->Yield(2);
    IM_CHECK(ctx->ItemExists("//$FOCUSED/##prompt name"));
  }));
}

TEST(ChatTools, AFileThatCannotBeAttachedHoldsTheMessageBack) {
  UiHarness ui;
  ui.engine().script = thinks("Yes.");
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    open_thinker(ui, ctx);
    ui.app().run(app::ChatCommand(app::AttachFile{"/nowhere/notes.txt"}));
    ctx->Yield(2);
    ctx->KeyChars("Sum it up");
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(3);
    IM_CHECK_EQ(ui.engine().count<Generate>(), 0u);
    ctx->ItemClick("//Chat/Dismiss file problem");
    ctx->Yield(3);
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(3);
    IM_CHECK_EQ(ui.engine().count<Generate>(), 1u);
    IM_CHECK_STR_EQ(ui.engine().last<Generate>().turns.back().content.c_str(), "Sum it up");
  }));
}

TEST(ChatTools, AQuestionThatIsTooLongSaysSoBeforeItIsSent) {
  UiHarness ui;
  ui.engine().script = thinks("Yes.");
  DrawnTexts texts;
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    open_thinker(ui, ctx);
    ctx->KeyChars(std::string(36000, 'x').c_str());
    ctx->Yield(4);
    texts.clear();
    ctx->Yield(2);
    IM_CHECK(texts.any_contains("This question alone"));
  }));
}

}  // namespace
}  // namespace canopy::test
