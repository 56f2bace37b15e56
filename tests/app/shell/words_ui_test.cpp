// One language in the whole window: pass, guess, big model, plain. The field's words stay in tooltips, files and on the
// command line.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include "app/ui/actions.h"
#include "tests/app/support/drawn_texts.h"
#include "tests/app/support/ui_harness.h"

namespace canopy::test {
namespace {

using app::WindowLayout;
using app::WindowPage;

constexpr std::string_view kOldWords[] = {"Round",  "round",    "Rounds",   "rounds",      "Drafted",       "drafted",
                                          "Target", "target",   "AR",       "N",           "EMA",           "\u03c4",
                                          "S(N)",   "<|",       "tau",      "Speculation", "speculation",   "draft",
                                          "Draft",  "drafts",   "Drafts",   "Drafting",    "drafting",      "verify",
                                          "Verify", "verified", "Verified", "nodes",       "autoregressive"};
// Sizes are told in powers of ten, of files and of memory alike.
constexpr std::string_view kOtherUnits[] = {"KiB", "MiB", "GiB", "TiB"};

bool is_letter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '+';
}

/// The old word that a text has as a whole one; empty without one.
std::string_view old_word_in(std::string_view text) {
  for (const std::string_view word : kOldWords)
    for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
      const size_t end = at + word.size();
      const bool letters = is_letter(word.front());
      if (letters && at > 0 && is_letter(text[at - 1])) continue;
      if (letters && end < text.size() && is_letter(text[end])) continue;
      return word;
    }
  return "";
}

void expect_new_words(const DrawnTexts& drawn, const std::string& where) {
  EXPECT_FALSE(drawn.all().empty()) << where;
  for (const app::DrawnText& text : drawn.all()) {
    EXPECT_EQ(old_word_in(text.text), "") << where << ": " << text.text;
    for (const std::string_view unit : kOtherUnits)
      EXPECT_EQ(text.text.find(unit), std::string::npos) << where << ": " << text.text;
  }
}

ModelReady model_for_words() {
  ModelReady model = small_model();
  model.drafter = "smollm2-135m-dflash.gguf";
  model.memory.budget = 24ull << 30;
  model.memory.weights = 3ull << 30;
  return model;
}

class WindowWords : public testing::TestWithParam<bool> {};

// With a recording on show, and with an own chat, in every view and with everything that opens over it.
TEST_P(WindowWords, AreThoseOfOneLanguage) {
  const bool replay = GetParam();
  UiHarness ui({}, 1920, 1200);
  ui.engine().script = [](ScriptedEngine& engine, const Command& command) {
    if (std::holds_alternative<LoadModel>(command)) engine.publish(model_for_words());
    const auto* generate = std::get_if<Generate>(&command);
    if (!generate) return;
    ReplyFinished finished;
    finished.reply_id = generate->reply_id;
    finished.mode = DecodeMode::tree;
    finished.reply_tokens = 9;
    finished.tau = 3;
    finished.tokens_per_second = 40;
    finished.plain = {40, 3, false};
    engine.publish(TextDelta{generate->reply_id, "Yes.", 1, 25, 40});
    engine.publish(finished);
  };
  ui.app().run(app::OpenModel{"/models/a.gguf"});
  for (int i = 0; i < 4; ++i) ui.frame();
  if (replay) {
    ui.app().run(app::OpenModel{CANOPY_SOURCE_DIR "/assets/demos/code.canopytrace"});
    ui.app().run(app::RoundsCommand(app::ShowRound{7}));
  } else {
    ui.app().run(app::SendMessage{"Go"});
  }
  const auto look_at = [&](const std::string& where) {
    for (int i = 0; i < 4; ++i) ui.frame();
    const DrawnTexts drawn;
    ui.frame();
    expect_new_words(drawn, where);
  };
  for (const auto& [layout, name] : {std::pair(WindowLayout::watch, "Watch"), std::pair(WindowLayout::lab, "Lab"),
                                     std::pair(WindowLayout::what_if, "What if")}) {
    ui.app().run(app::ShellCommand(app::SetLayout{layout}));
    look_at(name);
  }
  for (const char* panel : {"Chat", "History", "Tree", "Passes", "Budget", "Residuals", "Roofline", "Live", "KV",
                            "Calibration", "Timeline"}) {
    ui.app().run(app::ShellCommand(app::ShowPanel{panel, true}));
    look_at(panel);
  }
  for (const WindowPage page : {WindowPage::compare, WindowPage::sweep, WindowPage::models}) {
    ui.app().run(app::ShellCommand(app::ShowPage{page}));
    look_at(page == WindowPage::compare ? "Compare" : page == WindowPage::sweep ? "Sweep" : "Models");
  }
  ui.app().run(app::ShellCommand(app::SetLayout{WindowLayout::watch}));
  ui.app().run(app::ShowHelp{true});
  look_at("the list of keys");
  ui.app().run(app::ShowHelp{false});
  ui.app().run(app::ShellCommand(app::ShowRegions{}));
  look_at("What am I looking at");
  ui.app().run(app::ShellCommand(app::ShowRegions{false}));
  ui.app().run(app::ServedCommand(app::ShowServing{}));
  look_at("Serve");
  ui.app().run(app::ServedCommand(app::ShowServing{false}));
  ui.app().run(app::ModelsCommand(app::ShowEngineBox{}));
  look_at("An engine elsewhere");
  ui.app().run(app::ModelsCommand(app::ShowEngineBox{false}));
  ui.app().run(app::ReportCommand(app::ShowReport{}));
  look_at("Report this device");
  ui.app().run(app::ReportCommand(app::ShowReport{false}));
  ui.app().run(app::WhatIfCommand(app::DescribeDevice{}));
  look_at("A device of your own");
  ui.app().run(app::WhatIfCommand(app::DescribeDevice{false}));
  if (!replay) {
    ui.app().run(app::RecordingCommand(app::ShowRecordBox{}));
    look_at("Record a trace");
    ui.app().run(app::RecordingCommand(app::ShowRecordBox{false}));
    ui.app().run(app::ChatCommand(app::ShowChatFiles{app::ChatFiles::exporting}));
    look_at("Export");
    return;
  }
  ui.app().run(app::ShareCommand(app::ShowShare{}));
  look_at("Share");
}

INSTANTIATE_TEST_SUITE_P(OfARecordingAndAChat, WindowWords, testing::Bool());

// Its one token is no addition to anything, in Watch, in Lab and in slow motion.
TEST(WindowWordsOfPlainPasses, KnowNoBonus) {
  UiHarness ui({}, 1920, 1200);
  ui.engine().script = [](ScriptedEngine& engine, const Command& command) {
    if (std::holds_alternative<LoadModel>(command)) engine.publish(model_for_words());
    const auto* generate = std::get_if<Generate>(&command);
    if (!generate) return;
    engine.publish(ReplyStarted{generate->reply_id, 20, 0, 10, 7});
    auto record = std::make_shared<RoundRecord>();
    record->mode = record->shape = DecodeMode::ar;
    record->emitted = {8};
    record->ms.verify = 10;
    engine.publish(TextDelta{generate->reply_id, "Yes.", 2, 25, 40});
    engine.publish(RoundFinished{generate->reply_id, record, 1, 1, {4}, false});
  };
  ui.app().run(app::OpenModel{"/models/a.gguf"});
  for (int i = 0; i < 4; ++i) ui.frame();
  ui.app().run(app::SetDrafting{DecodeMode::ar});
  ui.app().run(app::SendMessage{"Go"});
  for (int i = 0; i < 4; ++i) ui.frame();
  ASSERT_EQ(ui.view().rounds.log->rounds(), 1u);
  for (const bool slow : {false, true}) {
    if (slow) ui.app().run(app::RoundsCommand(app::SetSlowMotion{}));
    for (const WindowLayout layout : {WindowLayout::watch, WindowLayout::lab}) {
      ui.app().run(app::ShellCommand(app::SetLayout{layout}));
      for (int i = 0; i < 4; ++i) ui.frame();
      const DrawnTexts drawn;
      ui.frame();
      EXPECT_TRUE(drawn.any_contains("own")) << "whose token it is";
      for (const app::DrawnText& text : drawn.all())
        EXPECT_TRUE(text.text.find("onus") == std::string::npos) << text.text << (slow ? ", slowly" : "");
    }
  }
}

TEST(WindowWordsOfActions, AreThoseOfOneLanguage) {
  for (const app::Action& action : app::actions()) EXPECT_EQ(old_word_in(action.name), "") << action.name;
}

/// The places of the controls in the bar that are the same in all views.
std::vector<ImRect> places_of_bar(ImGuiTestContext* ctx, const std::vector<const char*>& items) {
  std::vector<ImRect> places;
  for (const char* item : items) {
    const std::string path = std::string("//Top bar/") + item;
    places.push_back(ctx->ItemExists(path.c_str()) ? ctx->ItemInfo(path.c_str()).RectFull : ImRect());
  }
  return places;
}

bool alike(const std::vector<ImRect>& a, const std::vector<ImRect>& b) {
  return std::ranges::equal(a, b, [](const ImRect& x, const ImRect& y) {
    return x.Min.x == y.Min.x && x.Min.y == y.Min.y && x.Max.x == y.Max.x && x.Max.y == y.Max.y;
  });
}

constexpr float kBarWidths[] = {640, 900, 1280, 1600, 1920, 2560};

TEST(BarPlaces, AreTheSameInAllViewsAndModes) {
  const std::vector<const char*> always = {"Watch",   "What if", "Lab",  "Compare", "More layouts", "Model",
                                           "Drafter", "Device",  "Tour", "Theme",   "View"};
  const std::vector<const char*> modes = {"Plain", "Chain", "Tree", "Adaptive", "Mode", "Memory"};
  for (const bool replay : {false, true})
    for (const float width : kBarWidths) {
      UiHarness ui({}, width, 800);
      ui.engine().script = [](ScriptedEngine& engine, const Command& command) {
        if (std::holds_alternative<LoadModel>(command)) engine.publish(model_for_words());
      };
      ui.app().run(app::OpenModel{"/models/a.gguf"});
      for (int i = 0; i < 4; ++i) ui.frame();
      if (replay) ui.app().run(app::OpenModel{CANOPY_SOURCE_DIR "/assets/demos/code.canopytrace"});
      EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
        ctx->Yield(3);
        ui.app().run(app::ShellCommand(app::SetLayout{WindowLayout::watch}));
        ctx->Yield(3);
        const auto first = places_of_bar(ctx, always), chosen = places_of_bar(ctx, modes);
        for (const WindowLayout layout : {WindowLayout::lab, WindowLayout::what_if, WindowLayout::watch}) {
          ui.app().run(app::ShellCommand(app::SetLayout{layout}));
          ctx->Yield(3);
          IM_CHECK(alike(places_of_bar(ctx, always), first));
          IM_CHECK(alike(places_of_bar(ctx, modes), chosen));
        }
        ui.app().run(app::ShellCommand(app::ShowPage{WindowPage::compare}));
        ctx->Yield(3);
        IM_CHECK(alike(places_of_bar(ctx, always), first));
        if (replay) return;  // the modes are those of the loaded model
        for (const DecodeMode mode : {DecodeMode::ar, DecodeMode::chain, DecodeMode::tree, DecodeMode::adaptive}) {
          ui.app().run(app::SetDrafting{mode});
          ctx->Yield(2);
          IM_CHECK(alike(places_of_bar(ctx, always), first));
          IM_CHECK(alike(places_of_bar(ctx, modes), chosen));
        }
      })) << width
          << (replay ? ", a recording" : "");
    }
}

// What does not fit is in menus: nothing overlaps, down to a window of 320 logical pixels.
TEST(BarPlaces, DoNotOverlapAtAnySize) {
  for (const auto& [width, scale] : {std::pair{640.0f, 2.0f},
                                     {320.0f, 1.0f},
                                     {426.0f, 1.0f},
                                     {640.0f, 1.0f},
                                     {800.0f, 1.0f},
                                     {960.0f, 1.0f},
                                     {1024.0f, 1.0f},
                                     {1280.0f, 1.0f},
                                     {1280.0f, 2.0f},
                                     {1920.0f, 1.5f}}) {
    app::AppSettings settings;
    settings.user_scale = scale;
    UiHarness ui(settings, width, 480 * scale);
    ui.engine().script = [](ScriptedEngine& engine, const Command& command) {
      if (std::holds_alternative<LoadModel>(command)) engine.publish(model_for_words());
    };
    ui.app().run(app::OpenModel{"/models/a.gguf"});
    for (int i = 0; i < 4; ++i) ui.frame();
    EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
      ctx->Yield(3);
      ImGuiTestItemList items;
      ctx->GatherItems(&items, "//Top bar", 1);
      IM_CHECK_GT(items.GetSize(), 2);
      std::vector<ImRect> places;
      for (const ImGuiTestItemInfo& item : items) {
        if (!item.DebugLabel[0]) continue;
        IM_CHECK(item.Window->Rect().Contains(item.RectFull));
        IM_CHECK_GE(item.RectFull.GetWidth(), 8.0f);
        for (const ImRect& other : places) IM_CHECK(!other.Overlaps(item.RectFull));
        places.push_back(item.RectFull);
      }
    })) << width
        << " at " << scale;
  }
}

TEST(BarPlaces, TheToursButtonsStayWhereTheyAre) {
  UiHarness ui({}, 1280, 800);
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ui.app().run(app::ShellCommand(app::ShowTour{}));
    ctx->Yield(4);
    const ImVec2 next = ctx->ItemInfo("//Tour/Next").RectFull.GetCenter();
    const ImRect back = ctx->ItemInfo("//Tour/Back").RectFull;
    for (uint32_t step = 1; step < app::kTourSteps; ++step) {
      ctx->ItemClick("//Tour/Next");
      ctx->Yield(4);
      IM_CHECK_EQ(ui.view().shell.tour.step, step);
      IM_CHECK(ctx->ItemInfo("//Tour/Next").RectFull.Contains(next));
      IM_CHECK_EQ(ctx->ItemInfo("//Tour/Back").RectFull.Min.x, back.Min.x);
      IM_CHECK_EQ(ctx->ItemInfo("//Tour/Back").RectFull.Min.y, back.Min.y);
    }
  }));
}

std::string focused_window() {
  const ImGuiWindow* window = ImGui::GetCurrentContext()->NavWindow;
  return window ? window->RootWindow->Name : "";
}

// Every part of Watch is reached by one key, and the ring ends where it began.
TEST(FocusKeys, CtrlF6GoesThroughThePartsOfTheWindow) {
  app::AppSettings settings;
  settings.layout = WindowLayout::watch;
  UiHarness ui(settings, 1280, 800);
  ui.app().run(app::OpenModel{CANOPY_SOURCE_DIR "/assets/demos/code.canopytrace"});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(4);
    std::vector<std::string> reached;
    for (int i = 0; i < 6; ++i) {
      ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_F6);
      ctx->Yield(4);
      reached.push_back(focused_window());
      // The box of messages shows the focus by its own border.
      if (reached.back() == "Top bar") IM_CHECK(ImGui::GetCurrentContext()->NavCursorVisible);
    }
    for (const char* window : {"Watch chat", "Watch tree", "Watch passes", "Top bar"})
      IM_CHECK_SILENT(std::ranges::find(reached, window) != reached.end());
    const std::string last = focused_window();
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_F6);
    ctx->Yield(4);
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_Tab);  // the same as Ctrl+F6
    ctx->Yield(4);
    IM_CHECK_STR_EQ(focused_window().c_str(), last.c_str());
    ctx->KeyPress(ImGuiKey_F10);
    ctx->Yield(3);
    IM_CHECK(ui.view().shell.layout == WindowLayout::what_if);
  }));
}

}  // namespace
}  // namespace canopy::test
