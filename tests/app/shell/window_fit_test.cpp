// At common sizes of the window, all its text fits into its room.

#include <gtest/gtest.h>
#include <imgui_internal.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "app/chat/transcript.h"
#include "tests/app/support/drawn_texts.h"
#include "tests/app/support/ui_harness.h"

namespace canopy::test {
namespace {

constexpr uint64_t gib = 1ull << 30;

ModelReady pair_on(const std::string& device) {
  ModelReady model = small_model();
  model.device = device;
  model.drafter = "smollm2-135m-dflash.gguf";
  model.block = 8;
  model.memory.weights = 3 * gib;
  model.memory.cache = 4 * gib;
  model.memory.context = 8192;
  model.memory.budget = 24 * gib;
  model.memory.available = 14 * gib;
  return model;
}

/// A script that answers with drafts, at this speed in tokens per second, and ends at the limit of tokens.
std::function<void(ScriptedEngine&, const Command&)> drafts_at(double speed) {
  return [speed](ScriptedEngine& engine, const Command& command) {
    if (std::holds_alternative<LoadModel>(command)) engine.publish(pair_on("llvmpipe (LLVM 15.0.6, 256 bits)"));
    const auto* generate = std::get_if<Generate>(&command);
    if (!generate) return;
    ReplyFinished finished;
    finished.reply_id = generate->reply_id;
    finished.reason = FinishReason::max_tokens;
    finished.mode = DecodeMode::tree;
    finished.reply_tokens = 12345;
    finished.tau = 12.34;
    finished.tokens_per_second = speed;
    finished.plain = {12.3 * 1000 / speed, 3, false};
    engine.publish(TextDelta{generate->reply_id, "Yes.", 1, 25, speed});
    engine.publish(finished);
  };
}

class WindowFit : public testing::TestWithParam<std::pair<float, float>> {};

TEST_P(WindowFit, NothingOfTheChatOrTheTopBarIsCut) {
  for (const double speed : {0.1, 6.5, 99.9, 1234.0, 99999.0}) {
    const auto [width, height] = GetParam();
    UiHarness ui({}, width, height);
    ui.engine().script = drafts_at(speed);
    ui.app().run(app::OpenModel{"/models/a.gguf"});
    for (int i = 0; i < 4; ++i) ui.frame();
    ui.app().run(app::SendMessage{"Go"});
    for (int i = 0; i < 6; ++i) ui.frame();
    const DrawnTexts drawn;
    ui.frame();
    const std::string what = std::to_string(width) + " px, " + std::to_string(speed) + " tok/s:";
    for (const std::string& text : drawn.shortened()) {
      if (text == "Record a trace\u2026") continue;  // the dots say that a dialog follows
      ADD_FAILURE() << what << " shortened: " << text;
    }
    for (const std::string& text : drawn.cut()) ADD_FAILURE() << what << " cut: " << text;
    for (const std::string& pair : drawn.overlapping()) ADD_FAILURE() << what << " crossing: " << pair;
    EXPECT_TRUE(drawn.any_contains("tok/s")) << what;
    EXPECT_TRUE(drawn.any_contains("faster")) << what;
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, WindowFit,
                         testing::Values(std::pair{1280.0f, 800.0f}, std::pair{1440.0f, 900.0f},
                                         std::pair{1600.0f, 1000.0f}, std::pair{1920.0f, 1080.0f}));

/// The child window with this part in its name that is drawn; null without one.
const ImGuiWindow* drawn_window(const char* part) {
  for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows)
    if (window->WasActive && std::string_view(window->Name).find(part) != std::string_view::npos) return window;
  return nullptr;
}

/// Whether all of it is in view.
bool whole(const ImGuiWindow* window) {
  const ImRect seen = window->OuterRectClipped, all = window->Rect();
  return seen.Min.x <= all.Min.x + 1 && seen.Min.y <= all.Min.y + 1 && seen.Max.x >= all.Max.x - 1 &&
         seen.Max.y >= all.Max.y - 1 && ImRect({0, 0}, ImGui::GetIO().DisplaySize).Contains(seen);
}

// At every size from 640x480, and at all scales that leave more than a stamp of it.
TEST(WindowFitChat, QuestionReplyAndWhatIsTypedCanBeReadAtEverySize) {
  for (const auto layout : {app::WindowLayout::watch, app::WindowLayout::lab}) {
    app::AppSettings settings;
    settings.layout = layout;
    UiHarness ui(settings, 640, 480);
    ui.engine().script = drafts_at(10);
    ui.app().run(app::OpenModel{"/models/a.gguf"});
    for (int i = 0; i < 4; ++i) ui.frame();
    ui.app().run(app::SendMessage{"Go"});
    for (const float scale : {1.0f, 1.5f, 2.0f, 3.0f})
      for (const float width : {640.0f, 720.0f, 800.0f, 960.0f, 999.0f, 1000.0f, 1280.0f, 1920.0f})
        for (const float height : {480.0f, 559.0f, 560.0f, 600.0f, 700.0f, 1000.0f}) {
          if (layout == app::WindowLayout::lab && height / scale < 240) continue;
          ui.app().run(app::SetScale{scale});
          ui.resize(width, height);
          if (layout == app::WindowLayout::lab) ui.app().run(app::ShellCommand(app::ShowPanel{"Chat", true}));
          for (int i = 0; i < 5; ++i) ui.frame();
          const std::string at = std::to_string(static_cast<int>(width)) + "x" +
                                 std::to_string(static_cast<int>(height)) + " at " + std::to_string(scale) +
                                 (layout == app::WindowLayout::lab ? " in Lab" : " in Watch");
          const ImGuiWindow *messages = drawn_window("/Messages_"), *box = drawn_window("/##message_");
          ASSERT_TRUE(messages && box) << at;
          EXPECT_TRUE(whole(messages)) << at;
          EXPECT_TRUE(whole(box)) << at;
          EXPECT_GE(messages->Size.y / scale, 44) << "two lines of messages, " << at;
          EXPECT_GE(box->Size.y / scale, 17) << "a line of what is typed, " << at;
          EXPECT_GE(box->Size.x / scale, 90) << at;
          EXPECT_LE(messages->Rect().Max.y, box->Rect().Min.y) << at;
        }
  }
}

// The window in Watch, walked through sizes and scales of 480x360 logical pixels and more, and some below.
struct WalkedSize {
  float width, height, scale;
  bool whole() const { return width / scale >= 480 && height / scale >= 360; }
  std::string words() const {
    return std::to_string(static_cast<int>(width)) + "x" + std::to_string(static_cast<int>(height)) + " at " +
           std::to_string(static_cast<int>(scale * 100)) + "%";
  }
};

std::vector<WalkedSize> walked_sizes() {
  std::vector<WalkedSize> all;
  for (const auto& [width, height] :
       {std::pair{480.0f, 360.0f}, std::pair{560.0f, 700.0f}, std::pair{640.0f, 480.0f}, std::pair{700.0f, 560.0f},
        std::pair{820.0f, 600.0f}, std::pair{900.0f, 600.0f}, std::pair{958.0f, 1050.0f}, std::pair{960.0f, 740.0f},
        std::pair{1280.0f, 800.0f}, std::pair{1920.0f, 1080.0f}, std::pair{2560.0f, 1440.0f}})
    for (const float scale : {0.75f, 1.0f, 1.5f, 2.0f, 3.0f})
      if (width / scale >= 213 && height / scale >= 160) all.push_back({width, height, scale});
  return all;
}

/// The composer's box with the messages above it, whole and high enough.
void expect_chat(const WalkedSize& size, const std::string& at) {
  const ImGuiWindow *messages = drawn_window("/Messages_"), *box = drawn_window("/##message_");
  ASSERT_TRUE(messages && box) << at;
  EXPECT_TRUE(whole(box)) << at;
  EXPECT_GE(box->Size.y / size.scale, 17) << "a line of what is typed, " << at;
  EXPECT_GE(box->Size.x / size.scale, 90) << at;
  EXPECT_TRUE(whole(messages)) << at;
  EXPECT_GE(messages->Size.y / size.scale, size.whole() ? 44 : 22) << at;
  EXPECT_LE(messages->Rect().Max.y, box->Rect().Min.y) << at;
}

/// The end of the text that is written is in view, all of its line.
void expect_newest_line(const DrawnTexts& drawn, const std::string& at) {
  const auto caret =
      std::ranges::find_if(drawn.all(), [](const app::DrawnText& text) { return text.text == app::kCaret; });
  ASSERT_TRUE(caret != drawn.all().end()) << "nothing of the reply is drawn, " << at;
  EXPECT_GE(caret->min.y + 1, caret->clip_min.y) << at;
  EXPECT_LE(caret->max.y, caret->clip_max.y + 1) << at;
  EXPECT_LE(caret->clip_max.y, ImGui::GetIO().DisplaySize.y) << at;
}

/// Texts of the chat that are cut at a side; those of the messages may end at theirs, as they scroll.
void expect_nothing_cut(const DrawnTexts& drawn, const std::string& at) {
  const ImGuiWindow* chat = ImGui::FindWindowByName("Watch chat");
  ASSERT_TRUE(chat) << at;
  for (const app::DrawnText& text : drawn.all()) {
    if (!chat->Rect().Contains(text.min) || text.clip_max.x > chat->Rect().Max.x + 1) continue;
    EXPECT_LE(text.max.x, text.clip_max.x + 1) << text.text << ", " << at;
    const bool scrolls = text.clip_max.y < chat->Rect().Max.y - 1;
    if (!scrolls) {
      EXPECT_LE(text.max.y, chat->Rect().Max.y + 1) << text.text << ", " << at;
    }
  }
}

TEST(WindowFitChat, ComposerAndNewestLineAreInViewWhileAReplyIsWritten) {
  app::AppSettings settings;
  settings.layout = app::WindowLayout::watch;
  UiHarness ui(settings, 1280, 800);
  ui.engine().script = answers_with({});
  ui.app().run(app::OpenModel{"/models/a.gguf"});
  for (int i = 0; i < 4; ++i) ui.frame();
  ui.app().run(app::ChatCommand(app::SetSystemPrompt{"Explain everything like a teacher who has a lot of time."}));
  ui.engine().script = {};
  ui.app().run(app::SendMessage{"Go"});
  const uint64_t id = ui.engine().last<Generate>().reply_id;
  uint32_t tokens = 0;
  const auto write = [&](const std::string& text) { ui.engine().publish(TextDelta{id, text, ++tokens, 40, 50}); };
  for (int i = 0; i < 40; ++i) write("A line of the reply, long enough for two lines in a narrow chat.\n\n");
  for (const WalkedSize& size : walked_sizes()) {
    ui.app().run(app::SetScale{size.scale});
    ui.resize(size.width, size.height);
    for (int i = 0; i < 3; ++i) ui.frame();
    for (const char* more : {"", "A word", " and more of them, which begin a new line somewhere.\n\nNext"}) {
      if (*more != '\0') write(more);
      const DrawnTexts drawn;
      ui.frame();
      const std::string at = size.words() + " after \"" + more + "\"";
      expect_chat(size, at);
      expect_newest_line(drawn, at);
      if (size.whole()) expect_nothing_cut(drawn, at);
    }
  }
}

TEST(WindowFitChat, AnEmptyChatShowsItsBoxAndWholeSuggestions) {
  app::AppSettings settings;
  settings.layout = app::WindowLayout::watch;
  UiHarness ui(settings, 1280, 800);
  ui.engine().script = answers_with({});
  ui.app().run(app::OpenModel{"/models/a.gguf"});
  for (int i = 0; i < 4; ++i) ui.frame();
  for (const WalkedSize& size : walked_sizes()) {
    ui.app().run(app::SetScale{size.scale});
    ui.resize(size.width, size.height);
    for (int i = 0; i < 3; ++i) ui.frame();
    const DrawnTexts drawn;
    ui.frame();
    const ImGuiWindow* box = drawn_window("/##message_");
    ASSERT_TRUE(box) << size.words();
    EXPECT_TRUE(whole(box)) << size.words();
    if (!size.whole()) continue;
    expect_nothing_cut(drawn, size.words());
    for (const app::ExampleQuestion& question : app::kExampleQuestions) {
      const auto title =
          std::ranges::find_if(drawn.all(), [&](const auto& text) { return text.text == question.title; });
      ASSERT_TRUE(title != drawn.all().end()) << question.title << ", " << size.words();
      EXPECT_LE(title->max.y, box->Rect().Min.y) << size.words();
      if (size.width / size.scale >= 900 && size.height / size.scale >= 600) {
        EXPECT_TRUE(drawn.has(question.about)) << question.about << ", " << size.words();
      }
    }
  }
}

// Lab, walked through sizes and scales with each of its panels in front, over a recording and over a reply.
class WindowFitLab : public testing::TestWithParam<WalkedSize> {
 protected:
  /// What of a panel's controls is cut at the left or the right, where scrolling does not show it.
  static std::vector<std::string> cut_controls(ImGuiTestContext* ctx, const char* panel) {
    ImGuiTestItemList all;
    ctx->GatherItems(&all, ctx->WindowInfo(panel).ID, 8);
    std::vector<std::string> cut;
    for (const ImGuiTestItemInfo& item : all) {
      const ImRect &full = item.RectFull, &seen = item.RectClipped;
      if (seen.GetWidth() <= 0 || seen.GetHeight() <= 0) continue;  // scrolled out of view
      if (full.Min.x < seen.Min.x - 1 || full.Max.x > seen.Max.x + 1) cut.emplace_back(item.DebugLabel);
    }
    return cut;
  }
};

TEST_P(WindowFitLab, NoTextOrControlIsCutOrCovered) {
  const WalkedSize size = GetParam();
  for (const bool recording : {false, true}) {
    app::AppSettings settings;
    settings.layout = app::WindowLayout::lab;
    settings.user_scale = size.scale;
    settings.saved.reduced_motion = true;
    UiHarness ui(settings, size.width, size.height);
    ui.engine().script = drafts_at(10);
    ui.app().run(app::OpenModel{"/models/a.gguf"});
    for (int i = 0; i < 4; ++i) ui.frame();
    ui.app().run(app::SendMessage{"Go"});
    if (recording) {
      ui.app().run(app::OpenModel{CANOPY_SOURCE_DIR "/assets/demos/code.canopytrace"});
      ui.app().run(app::RoundsCommand(app::ShowRound{5}));
    }
    EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
      for (const char* panel : {"Chat", "History", "Tree", "Passes", "Budget", "Residuals", "Roofline", "Live", "KV",
                                "Calibration", "Log", "Timeline"}) {
        ui.app().run(app::ShellCommand(app::ShowPanel{panel, true}));
        ctx->Yield(5);
        const std::string at = size.words() + (recording ? ", recording, " : ", reply, ") + panel + ":";
        const DrawnTexts drawn;
        ctx->Yield();
        EXPECT_FALSE(drawn.all().empty()) << at;
        for (const std::string& text : drawn.cut()) ADD_FAILURE() << at << " cut: " << text;
        for (const std::string& pair : drawn.overlapping()) ADD_FAILURE() << at << " covered: " << pair;
        if (std::string_view(panel) == "Budget" && recording && size.width >= 1280 * size.scale) {
          // The chart with its axis and caption is in view, without scrolling.
          const ImGuiWindow* room = ImGui::FindWindowByName("Budget");
          ASSERT_TRUE(room) << at;
          EXPECT_LE(ctx->ItemInfo("//Budget/**/S(N)").RectFull.Max.y + 14 * size.scale, room->Rect().Max.y) << at;
        }
        for (const std::string& control : cut_controls(ctx, panel)) ADD_FAILURE() << at << " cut: " << control;
      }
    }));
  }
}

std::vector<WalkedSize> whole_sizes() {
  std::vector<WalkedSize> all = walked_sizes();
  std::erase_if(all, [](const WalkedSize& size) { return !size.whole(); });
  return all;
}

INSTANTIATE_TEST_SUITE_P(Sizes, WindowFitLab, testing::ValuesIn(whole_sizes()), [](const auto& each) {
  const WalkedSize& size = each.param;
  return std::to_string(static_cast<int>(size.width)) + "x" + std::to_string(static_cast<int>(size.height)) + "at" +
         std::to_string(static_cast<int>(size.scale * 100));
});

// gui.md, section 2: names in the top bar are whole where there is room.
TEST(WindowFitTopBar, ShowsWholeNamesWhereThereIsRoom) {
  for (const float width : {1366.0f, 1440.0f, 1600.0f, 1920.0f}) {
    UiHarness ui({}, width, 900);
    ui.engine().script = drafts_at(10);
    ui.app().run(app::OpenModel{"/models/a.gguf"});
    for (int i = 0; i < 4; ++i) ui.frame();
    const DrawnTexts drawn;
    ui.frame();
    EXPECT_TRUE(drawn.any_contains("SmolLM2-135M-Instruct")) << width;
    EXPECT_TRUE(drawn.has("smollm2-135m-dflash")) << width;
    EXPECT_TRUE(drawn.has("llvmpipe")) << width;
    if (width >= 1600) {
      EXPECT_TRUE(drawn.has("SmolLM2-135M-Instruct Q4_1")) << width;
    }
  }
}

}  // namespace
}  // namespace canopy::test
