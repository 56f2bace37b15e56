// The docked window under Dear ImGui's Test Engine: places of panels, palette, modes, memory, models.

#include <gtest/gtest.h>
#include <imgui_internal.h>

#include <filesystem>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

#include "app/shell/start_panel.h"
#include "app/ui/actions.h"
#include "tests/app/support/drawn_texts.h"
#include "tests/app/support/tooltip_text.h"
#include "tests/app/support/ui_harness.h"
#include "tests/app/tree/tree_samples.h"
#include "tests/base/temp_folder.h"
#include "tests/format/tiny_drafter.h"
#include "tests/format/tiny_model.h"

namespace canopy::test {
namespace {

using app::ChooseContext;
using app::ModelsCommand;
using app::OpenModel;
using app::ShellCommand;
using app::ShowPanel;
using app::ThemeKind;

constexpr uint64_t GiB = 1ull << 30;

/// A pair of models on a card, as the engine describes it.
ModelReady drafting_model() {
  ModelReady model = small_model();
  model.drafter = "smollm2-135m-dflash.gguf";
  model.block = 8;
  model.memory.weights = 3 * GiB;
  model.memory.drafter = 1 * GiB;
  model.memory.cache = 4 * GiB;
  model.memory.context = 8192;
  model.memory.tree = GiB / 2;
  model.memory.budget = 24 * GiB;
  model.memory.available = 14 * GiB;
  return model;
}

std::function<void(ScriptedEngine&, const Command&)> opens(const ModelReady& model) {
  return [model](ScriptedEngine& engine, const Command& command) {
    if (std::holds_alternative<LoadModel>(command)) engine.publish(model);
    const auto* generate = std::get_if<Generate>(&command);
    if (!generate) return;
    ReplyFinished finished;
    finished.reply_id = generate->reply_id;
    engine.publish(TextDelta{generate->reply_id, "Yes.", 1, 25, 10});
    engine.publish(finished);
  };
}

/// Waits for the search for models, which runs on its own thread, while drawing frames.
void wait_for_search(const UiHarness& ui, ImGuiTestContext* ctx) {
  for (int i = 0; i < 20000 && !ui.view().models.looked; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ctx->Yield();
  }
}

ImRect rect_of(const char* panel) {
  const ImGuiWindow* window = ImGui::FindWindowByName(panel);
  return window ? window->Rect() : ImRect();
}

class Docks : public testing::Test {
 protected:
  std::unique_ptr<UiHarness> start(float width = 1600, float height = 1000) {
    app::AppSettings settings;
    settings.layout_file = file();
    auto ui = std::make_unique<UiHarness>(settings, width, height);
    ui->engine().script = opens(drafting_model());
    ui->app().run(OpenModel{"/models/a.gguf"});
    for (int i = 0; i < 6; ++i) ui->frame();
    return ui;
  }
  std::string file() const { return (folder_.path() / "layout.json").string(); }
  TempFolder folder_;
};

TEST_F(Docks, ThePanelsLieAsDrawnAt1600By1000) {
  const auto ui = start();
  EXPECT_EQ(rect_of("Chat").GetWidth(), 364);
  EXPECT_EQ(rect_of("Chat").Min.x, 0);
  EXPECT_EQ(rect_of("Chat").Min.y, 48);
  EXPECT_EQ(rect_of("Tree").Min.x, 368);
  EXPECT_EQ(rect_of("Tree").GetWidth(), 868);
  EXPECT_EQ(rect_of("Tree").GetHeight(), 524);
  EXPECT_EQ(rect_of("Timeline").GetHeight(), 106);
  EXPECT_EQ(rect_of("Timeline").Max.y, 1000 - 28);
}

/// Drags the border between chat and tree.
void drag_chat_edge(ImGuiTestContext* ctx, float by) {
  const ImRect chat = rect_of("Chat");
  ctx->MouseMoveToPos({chat.Max.x + 2, chat.GetCenter().y});
  ctx->MouseDown();
  ctx->MouseMoveToPos({chat.Max.x + 2 + by, chat.GetCenter().y});
  ctx->MouseUp();
  ctx->Yield(3);
}

// gui.md, criterion 26: the layout is saved, and "Reset layout" restores the default one.
TEST_F(Docks, ADraggedEdgeIsRememberedAndResetRestoresIt) {
  {
    const auto ui = start();
    EXPECT_TRUE(ui->run([&](ImGuiTestContext* ctx) {
      drag_chat_edge(ctx, 80);
      IM_CHECK_EQ(rect_of("Chat").GetWidth(), 444.0f);
    }));
    EXPECT_TRUE(std::filesystem::exists(file())) << "at once: a kill must not lose it";
    ui->app().remember();
  }
  const auto ui = start();
  EXPECT_EQ(rect_of("Chat").GetWidth(), 444.0f);
  ui->app().run(ShellCommand(app::ResetLayout{}));
  for (int i = 0; i < 4; ++i) ui->frame();
  EXPECT_EQ(rect_of("Chat").GetWidth(), 364.0f);
}

TEST_F(Docks, LengthsFollowTheScaleAndTheWindow) {
  const auto ui = start();
  EXPECT_TRUE(ui->run([&](ImGuiTestContext* ctx) {
    drag_chat_edge(ctx, 36);
    ui->app().run(app::SetScale{1.25f});
    ctx->Yield(4);
    IM_CHECK_EQ(rect_of("Chat").GetWidth(), 500.0f);
    ui->app().run(app::SetScale{1.0f});
    ui->resize(1280, 800);
    ctx->Yield(4);
    IM_CHECK_EQ(rect_of("Chat").GetWidth(), 400.0f);
    ui->resize(700, 500);  // everything in tabs
    ctx->Yield(5);
    IM_CHECK_EQ(rect_of("Chat").GetWidth(), 700.0f);
    ui->resize(1600, 1000);  // and back, as it was
    ctx->Yield(5);
    IM_CHECK_EQ(rect_of("Chat").GetWidth(), 400.0f);
  }));
}

/// A window that is made small step by step must not teach the panels to be narrow.
TEST_F(Docks, LengthsComeBackAfterASmallWindow) {
  const auto ui = start();
  const auto settle = [&](float width, float height) {
    ui->resize(width, height);
    for (int i = 0; i < 5; ++i) ui->frame();
  };
  const float statistics = rect_of("Live").GetWidth(), budget = rect_of("Budget").GetHeight();
  settle(1120, 700);
  EXPECT_LT(rect_of("Live").GetWidth(), statistics);
  settle(900, 600);
  settle(1600, 1000);
  EXPECT_EQ(rect_of("Live").GetWidth(), statistics);
  EXPECT_EQ(rect_of("Budget").GetHeight(), budget);
}

TEST_F(Docks, TheTimelineIsBackAfterALargeScale) {
  const auto ui = start();
  const auto scaled = [&](float scale) {
    ui->app().run(app::SetScale{scale});
    for (int i = 0; i < 5; ++i) ui->frame();
  };
  for (const float scale : {2.0f, 3.0f, 1.5f}) scaled(scale);
  EXPECT_EQ(rect_of("Timeline").GetWidth(), 1600);
  EXPECT_EQ(rect_of("Timeline").GetHeight(), 159);
}

TEST_F(Docks, APanelThatIsClosedStaysClosedUntilItIsAskedFor) {
  {
    const auto ui = start();
    ui->app().run(ShellCommand(ShowPanel{"Tree", false}));
    for (int i = 0; i < 4; ++i) ui->frame();
    EXPECT_FALSE(ImGui::FindWindowByName("Tree")->Active);
  }
  const auto ui = start();
  EXPECT_TRUE(ui->view().shell.closed.contains("Tree"));
  EXPECT_TRUE(ui->run([&](ImGuiTestContext* ctx) {
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_K);
    ctx->Yield(2);
    ctx->KeyChars("open panel tree");
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(4);
    IM_CHECK(ImGui::FindWindowByName("Tree")->Active);
    IM_CHECK_EQ(rect_of("Tree").Min.x, 368.0f);
  }));
}

TEST_F(Docks, ABrokenLayoutFileIsSaidAndReplaced) {
  folder_.write("layout.json", "{\"version\": 7");
  const auto ui = start();
  ASSERT_EQ(ui->view().cards.size(), 1u);
  EXPECT_EQ(ui->view().cards[0].title, "The layout was not read");
  EXPECT_EQ(rect_of("Chat").GetWidth(), 364.0f);
}

TEST(ShellUi, EveryPanelIsInsideTheWindowAtEveryScale) {
  UiHarness ui;
  ui.engine().script = opens(drafting_model());
  ui.app().run(OpenModel{"/models/a.gguf"});
  for (const float scale : {0.75f, 1.0f, 1.5f, 2.0f, 3.0f}) {  // gui.md, criterion 23
    ui.app().run(app::SetScale{scale});
    for (int i = 0; i < 6; ++i) ui.frame();
    const ImRect display({0, 0}, ImGui::GetIO().DisplaySize);
    for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows) {
      if (!window->Active || window->Hidden || !window->DockIsActive) continue;
      EXPECT_TRUE(display.Contains(window->Rect())) << window->Name << " at " << scale;
      EXPECT_GE(window->Rect().GetWidth(), 150) << window->Name << " at " << scale;
      EXPECT_GE(window->Rect().GetHeight(), 60) << window->Name << " at " << scale;
    }
  }
}

// gui.md, criterion 25
TEST(Actions, NoTwoShareAShortcutAndEachCanBeFound) {
  std::set<int> chords;
  std::set<std::string> names;
  for (const app::Action& action : app::actions()) {
    EXPECT_TRUE(names.insert(action.name).second) << action.name;
    EXPECT_EQ(action.chord != 0, action.keys[0] != '\0') << action.name;
    if (action.chord) {
      EXPECT_TRUE(chords.insert(action.chord).second) << action.keys;
    }
  }
  EXPECT_GE(names.size(), 20u);
}

TEST(ShellUi, ThePaletteRunsWhatIsTypedAndKeepsItFromTheChat) {
  UiHarness ui;
  ui.engine().script = opens(drafting_model());
  ui.app().run(OpenModel{"/models/a.gguf"});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(4);
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_K);
    ctx->Yield(2);
    IM_CHECK(ui.view().shell.palette_shown);
    ctx->KeyChars("light");
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(3);
    IM_CHECK(ui.view().theme == ThemeKind::light);
    IM_CHECK(!ui.view().shell.palette_shown);
    IM_CHECK(ui.view().messages.empty());
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_K);
    ctx->Yield(2);
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->Yield(3);
    IM_CHECK(!ui.view().shell.palette_shown);
    IM_CHECK(ui.view().theme == ThemeKind::light);
    // The arrow keys choose another line.
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_K);
    ctx->Yield(2);
    ctx->KeyChars("mode");
    ctx->KeyPress(ImGuiKey_DownArrow);
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(3);
    IM_CHECK(ui.view().drafting == DecodeMode::chain);
  }));
}

TEST(ShellUi, TheModeSegmentReachesTheEngine) {
  UiHarness ui({}, 1600, 1000);
  ui.engine().script = opens(drafting_model());
  ui.app().run(OpenModel{"/models/a.gguf"});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(4);
    ctx->ItemClick("//Top bar/Tree");
    ctx->Yield(3);
    IM_CHECK(ui.view().drafting == DecodeMode::tree);
    ctx->ItemClick("//Top bar/Tree nodes");
    ctx->ItemClick("//$FOCUSED/$$64/nodes");
    ctx->Yield(2);
    IM_CHECK_EQ(ui.view().shell.tree_budget, 64u);
    ctx->KeyChars("Go");
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(3);
    IM_CHECK(ui.engine().last<Generate>().mode == DecodeMode::tree);
    IM_CHECK_EQ(ui.engine().last<Generate>().budget, 64u);
    ctx->KeyPress(ImGuiMod_Ctrl | ImGuiKey_1);
    ctx->Yield(2);
    IM_CHECK(ui.view().drafting == DecodeMode::ar);
  }));
}

TEST(ShellUi, WithoutADrafterGuessesComeFromTheTextInEveryMode) {
  UiHarness ui({}, 1600, 1000);
  ui.engine().script = opens(small_model());
  ui.app().run(OpenModel{"/models/a.gguf"});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    const auto disabled = [&](const char* item) {
      return (ctx->ItemInfo(item).ItemFlags & ImGuiItemFlags_Disabled) != 0;
    };
    ctx->Yield(4);
    for (const char* mode : {"//Top bar/Plain", "//Top bar/Chain", "//Top bar/Tree", "//Top bar/Adaptive"})
      IM_CHECK(!disabled(mode));
    ctx->ItemClick("//Top bar/Chain");
    ctx->Yield(2);
    IM_CHECK(ui.view().drafting == DecodeMode::chain);
    {
      const DrawnTexts drawn;
      ctx->Yield(2);
      IM_CHECK(drawn.has("from the text"));
    }
    IM_CHECK(contains(tooltip_of(ctx, "//Top bar/Drafter"), "from the text itself"));
    ctx->ItemClick("//Top bar/Drafter");
    ctx->Yield(2);
    IM_CHECK(disabled("//$FOCUSED/From the drafter"));
    IM_CHECK(!disabled("//$FOCUSED/From the text"));
    ctx->ItemClick("//$FOCUSED/From the text");
    ctx->KeyPress(ImGuiKey_Escape);
    const DrawnTexts drawn;
    ctx->Yield(2);
    IM_CHECK(drawn.has("none"));
  }));
}

TEST(ShellUi, AContextIsChosenInTheMemoryMenuAlthoughItWillNotFit) {
  ModelReady model = drafting_model();
  model.model_context = 131072;
  UiHarness ui({}, 1600, 1000);
  ui.engine().script = opens(model);
  ui.app().run(OpenModel{"/models/a.gguf"});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(4);
    ctx->ItemClick("//Top bar/Memory");
    ctx->ItemClick("//$FOCUSED/$$65536/context");  // 32 GiB of cache on a card of 24
    ctx->Yield(3);
  }));
  EXPECT_EQ(ui.engine().last<LoadModel>().context, 65536u);
  EXPECT_TRUE(ui.view().models.override_memory);
}

TEST(ShellUi, ADrafterThatDoesNotFitSaysWhyAndOneThatDoesIsLoaded) {
  const TempFolder folder;
  const std::string target = folder.write("target.gguf", tiny_gguf().build()).string();
  folder.write("drafter.gguf", tiny_drafter_gguf().build());
  UiHarness ui({}, 1600, 1000);
  ui.engine().script = opens(drafting_model());
  ui.app().run(OpenModel{target});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(4);
    ctx->ItemClick("//Top bar/Drafter");
    wait_for_search(ui, ctx);
    const auto& candidates = ui.view().models.candidates;
    const auto found =
        std::ranges::find_if(candidates, [](const auto& c) { return c.path.ends_with("/drafter.gguf"); });
    IM_CHECK(found != candidates.end());
    IM_CHECK(!found->fits);
    IM_CHECK(found->reason.find("it reads layer 2") != std::string::npos);
    ctx->ItemClick("//$FOCUSED/None");
    ctx->Yield(3);
  }));
  EXPECT_FALSE(ui.engine().last<LoadModel>().draft);
}

TEST(ShellUi, TheFirstRunOffersTheDemoAModelAndTheDevices) {
  app::AppSettings settings;
  settings.default_model = "/models/SmolLM2-135M-Instruct.Q4_1.gguf";
  UiHarness ui(settings, 1600, 1000);
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(3);
    IM_CHECK(ctx->ItemExists("//Start/**/Watch demo"));
    IM_CHECK(!ctx->ItemExists("//Start/**/Compare"));
    ctx->ItemClick("//Start/**/Use");
    ctx->Yield(2);
    ctx->ItemClick("//Start/**/Use SmolLM2 135M");
    ctx->Yield(2);
  }));
  EXPECT_EQ(ui.engine().last<LoadModel>().path, settings.default_model);
  EXPECT_EQ(ui.engine().last<LoadModel>().device, "1");
}

// The model of the set-up is opened at once: the start page must not go before it was seen.
TEST(ShellUi, TheFirstStartShowsTheCardsWhileAModelLoadsAndAfterwards) {
  app::AppSettings settings;
  settings.welcome = true;
  settings.default_model = "/models/SmolLM2-135M-Instruct.Q4_1.gguf";
  UiHarness ui(settings, 1600, 1000);
  ui.engine().script = [](ScriptedEngine& engine, const Command& command) {
    if (std::holds_alternative<LoadModel>(command)) engine.publish(LoadProgress{"Loading weights", 1, 4, false, -1});
  };
  ui.app().run(OpenModel{settings.default_model});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(3);
    IM_CHECK(ui.view().model_state == app::ModelState::loading);
    IM_CHECK(ctx->ItemExists("//Start/**/Watch demo"));
    IM_CHECK(ctx->ItemExists("//Start/**/Cancel"));
    ui.engine().publish(drafting_model());
    ctx->Yield(3);
    IM_CHECK(ui.view().model_state == app::ModelState::ready);
    IM_CHECK(ctx->ItemExists("//Start/**/Watch demo"));
    ctx->ItemClick("//Start/**/Start chatting");
    ctx->Yield(2);
    IM_CHECK(!ui.view().shell.welcome);
    IM_CHECK(!app::StartPanel::wanted(ui.view()));
  }));
}

TEST(ShellUi, WhoWritesOnTheStartPageIsChatting) {
  app::AppSettings settings;
  settings.welcome = true;
  settings.default_model = "/models/SmolLM2-135M-Instruct.Q4_1.gguf";
  UiHarness ui(settings, 1600, 1000);
  ui.engine().script = [](ScriptedEngine& engine, const Command& command) {
    if (std::holds_alternative<LoadModel>(command)) engine.publish(drafting_model());
  };
  ui.app().run(OpenModel{settings.default_model});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(3);
    IM_CHECK(ui.view().shell.welcome);
    for (const char* letter : {"H", "e", "l", "l", "o"}) {
      ctx->KeyChars(letter);
      ctx->Yield();
    }
    ctx->Yield(4);
    IM_CHECK(!ui.view().shell.welcome);
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(3);
    IM_CHECK_EQ(ui.engine().count<Generate>(), 1u);
    IM_CHECK_STR_EQ(ui.engine().last<Generate>().turns.back().content.c_str(), "Hello");
  }));
}

// gui.md, criterion 21
TEST(ShellUi, AnotherThreadMayPublishButNotDraw) {
  UiHarness ui;
  ui.frame();
  std::thread other([&] {
    EXPECT_THROW(ui.app().draw(), std::logic_error);
    EXPECT_THROW(ui.app().prepare_frame(), std::logic_error);
    EXPECT_THROW(ui.app().pump(), std::logic_error);
    ui.engine().publish(drafting_model());
  });
  other.join();
  ui.frame();
  EXPECT_TRUE(ui.view().model.has_value());
}

// A guess that ended the reply has nothing behind it, and is no plain pass for that.
TEST(ShellUi, TheLegendSaysBonusInEveryPassWithGuesses) {
  app::AppSettings settings;
  settings.layout = app::WindowLayout::watch;
  UiHarness ui(settings, 1600, 1000);
  ui.engine().script = opens(drafting_model());
  ui.app().run(OpenModel{"/models/a.gguf"});
  DrawnTexts texts;
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(4);
    ui.engine().script = {};
    ctx->KeyChars("Go");
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(3);
    const uint64_t id = ui.engine().last<Generate>().reply_id;
    const auto shows = [&](RoundRecord record, uint32_t n) {
      record.round = n;
      ui.engine().publish(TextDelta{id, "word ", n + 1, 25 + n, 50});
      ui.engine().publish(RoundFinished{id, std::make_shared<RoundRecord>(record), n, 5 * n, {5 * n + 5}, false});
      ctx->Yield(3);
      texts.clear();
      ctx->Yield(2);
      return std::pair(texts.has("bonus"), texts.has("big model\u2019s own"));
    };
    RoundRecord plain;
    plain.mode = plain.shape = DecodeMode::ar;
    plain.emitted = {5};
    IM_CHECK(shows(plain, 0) == std::pair(false, true));
    IM_CHECK(shows(sample_round({{0, 10, 0, 0.9}}, {10}), 1) == std::pair(true, false));
    IM_CHECK(shows(sample_round({{0, 10, 0, 0.9}}, {11}), 2) == std::pair(true, false));
  }));
}

// gui.md, criterion 28: showing rounds sends nothing to the engine.
TEST(ShellUi, ShowingRoundsPostsNothingToTheEngine) {
  UiHarness ui({}, 1600, 1000);
  ui.engine().script = opens(drafting_model());
  ui.app().run(OpenModel{"/models/a.gguf"});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(4);
    ui.engine().script = {};
    ctx->KeyChars("Go");
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(3);
    const uint64_t id = ui.engine().last<Generate>().reply_id;
    const size_t before = ui.engine().posted().size();
    for (uint32_t n = 0; n < 200; ++n) {
      auto round = std::make_shared<RoundRecord>();
      round->round = n;
      round->context = 24 + n;
      round->emitted = {5};
      ui.engine().publish(TextDelta{id, "word ", n + 1, 25 + n, 50});
      ui.engine().publish(RoundFinished{id, round, n, 5 * n, {5 * n + 5}, false});
      ctx->Yield();
    }
    IM_CHECK_EQ(ui.engine().posted().size(), before);
  }));
}

}  // namespace
}  // namespace canopy::test
