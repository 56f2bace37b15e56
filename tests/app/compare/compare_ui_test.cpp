// Compare and Sweep in the window, as a user works with them.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string_view>

#include "app/ui/actions.h"
#include "engine/bench/sweep_file.h"
#include "tests/app/compare/compare_samples.h"
#include "tests/app/support/drawn_texts.h"
#include "tests/app/support/tooltip_text.h"
#include "tests/app/support/ui_harness.h"
#include "tests/base/temp_folder.h"

namespace canopy::test {
namespace {

class CompareUi : public testing::Test {
 protected:
  explicit CompareUi(float width = 1280, float height = 800)
      : ui_(settings(folder_.path().string()), width, height), comparing_(ui_.engine()) {
    ui_.engine().devices_ = some_devices();
    ui_.engine().script = [this](ScriptedEngine& engine, const Command& command) {
      if (std::holds_alternative<LoadModel>(command)) {
        ModelReady model = small_model();
        model.drafter = "drafter.gguf";
        model.block = 16;
        engine.publish(model);
      }
      if (const auto* compare = std::get_if<Compare>(&command)) comparing_.begin(*compare);
      if (std::holds_alternative<CancelComparison>(command)) comparing_.finish(true);
    };
    ui_.app().run(app::OpenModel{"/models/a.gguf"});
    ui_.app().pump();
  }
  static app::AppSettings settings(const std::string& folder) {
    app::AppSettings settings;
    settings.sweep_folder = folder;
    return settings;
  }
  const app::ComparisonState& state() const { return ui_.view().comparison; }
  void show(app::WindowPage page) { ui_.app().run(app::ShellCommand(app::ShowPage{page})); }
  /// Waits until the prompts that come with Canopy were read.
  void wait_for_prompts(ImGuiTestContext* ctx) {
    for (int i = 0; i < 500 && state().bundled.empty(); ++i) ctx->SleepNoSkip(0.01f, 0.01f);
    IM_CHECK(!state().bundled.empty());
  }

  TempFolder folder_;
  UiHarness ui_;
  ComparingEngine comparing_;
};

TEST_F(CompareUi, RunsShowsAVerdictAndPlaysTheRace) {
  ui_.resize(1800, 1000);  // the bar has room for the page's name
  DrawnTexts texts;
  const auto race_offered = [this] {
    const auto race = std::ranges::find(app::actions(), std::string_view("Play the race"), &app::Action::name);
    return race != app::actions().end() && race->command(ui_.view());
  };
  EXPECT_TRUE(ui_.run([&](ImGuiTestContext* ctx) {
    ctx->ItemClick("//Top bar/Compare");
    ctx->Yield(3);
    IM_CHECK(ui_.view().shell.page == app::WindowPage::compare);
    ctx->ItemClick("//Compare/Start measuring");
    ctx->Yield(3);
    IM_CHECK_EQ(ui_.engine().count<Compare>(), 1u);
    texts.clear();
    ctx->Yield(2);
    IM_CHECK(texts.any_contains("Warming up"));
    comparing_.make(2);
    comparing_.write_some(4);
    texts.clear();
    ctx->Yield(3);
    IM_CHECK(texts.any_contains("2 of 12"));
    IM_CHECK(!race_offered());  // a reply is being written
    comparing_.make();
    comparing_.finish();
    texts.clear();
    ctx->Yield(4);
    IM_CHECK(texts.any_contains("All four texts are the same"));
    IM_CHECK(texts.any_contains("\u00d7 plain here; same text"));
    IM_CHECK(texts.has("reference"));
    IM_CHECK(race_offered());
    ctx->ItemClick("//Compare/Play the race");
    ctx->Yield(3);
    IM_CHECK(state().race.playing);
    const double before = state().race_now();
    ctx->Yield(10);
    IM_CHECK_GT(state().race_now(), before);
    ctx->ItemClick("//Compare/To the end");
    ctx->Yield(2);
    IM_CHECK_EQ(state().race_now(), state().race_end());
    ctx->ItemClick("//Compare/Close the page");
    ctx->Yield(2);
    IM_CHECK(ui_.view().shell.page == app::WindowPage::rounds);
  }));
}

TEST_F(CompareUi, OnlyAColumnThatAsksTheDrafterAloneNeedsOne) {
  ui_.engine().publish(small_model());
  ui_.app().pump();
  EXPECT_TRUE(ui_.run([&](ImGuiTestContext* ctx) {
    const auto disabled = [&](const char* item) {
      return (ctx->ItemInfo(item).ItemFlags & ImGuiItemFlags_Disabled) != 0;
    };
    show(app::WindowPage::sweep);
    wait_for_prompts(ctx);
    ctx->Yield(3);
    IM_CHECK(!disabled("//Sweep/Start measuring"));
    show(app::WindowPage::compare);
    ctx->Yield(3);
    IM_CHECK(!disabled("//Compare/Start measuring"));
    app::CompareSetup setup = state().compare_setup;
    setup.columns[1].way = {DecodeMode::chain, 0, kFromDflash};
    ui_.app().run(app::ComparisonCommand(app::SetCompareSetup{setup}));
    ctx->Yield(3);
    IM_CHECK(disabled("//Compare/Start measuring"));
  }));
}

// Acceptance criterion 15: a text that must be the same and is not is reported at its index, in the column it is in.
TEST_F(CompareUi, ADifferingTokenIsFlaggedAtItsIndex) {
  comparing_.differing = 2;
  show(app::WindowPage::compare);
  DrawnTexts texts;
  EXPECT_TRUE(ui_.run([&](ImGuiTestContext* ctx) {
    ctx->ItemClick("//Compare/Start measuring");
    ctx->Yield(3);
    comparing_.make();
    comparing_.finish();
    texts.clear();
    ctx->Yield(4);
    IM_CHECK(texts.has("differs at 21"));
    IM_CHECK(texts.has("Texts differ that must not"));
    texts.clear();
    ctx->ItemClick("//Compare/$$2/Badge");
    ctx->Yield(3);
    IM_CHECK_EQ(texts.cut().size(), 0u);
  }));
}

// No heading is a bare symbol, and each is explained where the mouse rests on it.
TEST_F(CompareUi, HeadingsOfColumnsAreWordsThatAreExplained) {
  show(app::WindowPage::compare);
  DrawnTexts texts;
  EXPECT_TRUE(ui_.run([&](ImGuiTestContext* ctx) {
    ctx->ItemClick("//Compare/Start measuring");
    ctx->Yield(3);
    comparing_.make();
    comparing_.finish();
    texts.clear();
    ctx->Yield(4);
    IM_CHECK(texts.has("Tokens per pass"));
    IM_CHECK(!texts.any_contains("\u03c4"));
    const std::pair<const char*, const char*> asked[] = {
        {"//Compare/$$2/term Tokens per pass", "Plain decoding brings"},
        {"//Compare/$$2/term Pass", "One run of the big model"},
        {"//Compare/$$2/term Width", "How many tokens one pass reads"},
        {"//Compare/$$2/term Time of a pass", "In milliseconds"},
        {"//Compare/$$2/stages/term Time of a pass", "Check: the big"},
        {"//Compare/$$2/Ratio", "How many times as fast"},
        {"//Compare/$$2/Speed", "Tokens of text written"}};
    for (const auto& [item, words] : asked) {
      const std::string said = tooltip_of(ctx, item);
      IM_CHECK_SILENT(contains(said, words));
      if (!contains(said, words)) ctx->LogError("%s: %s", item, said.c_str());
    }
  }));
}

TEST_F(CompareUi, AColumnCanBeAnotherDeviceOrAServer) {
  show(app::WindowPage::compare);
  EXPECT_TRUE(ui_.run([&](ImGuiTestContext* ctx) {
    ctx->ItemClick("//Compare/$$3/Column");
    ctx->Yield(3);
    ctx->ItemClick("//$FOCUSED/Chain");
    ctx->Yield(2);
    IM_CHECK(state().compare_setup.columns[3].way.mode == DecodeMode::chain);
    ctx->ItemClick("//$FOCUSED/##server");
    ctx->KeyChars("http://127.0.0.1:8000/v1");
    ctx->KeyPress(ImGuiKey_Enter);
    ctx->Yield(3);
    IM_CHECK_STR_EQ(state().compare_setup.columns[3].server.c_str(), "http://127.0.0.1:8000/v1");
    ctx->KeyPress(ImGuiKey_Escape);
    ctx->Yield(3);
    ctx->ItemClick("//Compare/$$1/Column");
    ctx->Yield(3);
    ctx->ItemClick("//$FOCUSED/Remove this column");
    ctx->Yield(3);
    IM_CHECK_EQ(state().compare_setup.columns.size(), 3u);
  }));
}

TEST_F(CompareUi, AColumnChoosesWhereItsGuessesComeFrom) {
  show(app::WindowPage::compare);
  DrawnTexts texts;
  EXPECT_TRUE(ui_.run([&](ImGuiTestContext* ctx) {
    const auto way = [&] { return state().compare_setup.columns[2].way; };
    ctx->ItemClick("//Compare/$$2/Column");
    ctx->Yield(3);
    ctx->ItemClick("//$FOCUSED/From the drafter");
    ctx->Yield(2);
    IM_CHECK(way() == (WayToDecode{DecodeMode::tree, 16, kFromSuffix}));
    ctx->ItemClick("//$FOCUSED/Recycled");
    ctx->Yield(2);
    ctx->ItemClick("//$FOCUSED/Chain");  // keeps them
    ctx->Yield(2);
    IM_CHECK(way() == (WayToDecode{DecodeMode::chain, 0, kFromSuffix | kFromRecycling}));
    ctx->ItemClick("//$FOCUSED/From the text");
    ctx->KeyPress(ImGuiKey_Escape);
    texts.clear();
    ctx->Yield(3);
    IM_CHECK(texts.has("Chain (recycled)"));
    ctx->ItemClick("//Compare/Start measuring");
    ctx->Yield(3);
    IM_CHECK(ui_.engine().last<Compare>().columns[2].way == (WayToDecode{DecodeMode::chain, 0, kFromRecycling}));
    comparing_.make();
    comparing_.finish();
    ctx->Yield(3);
    IM_CHECK_STR_EQ(state().comparison->sweep.contestants[2].way.name().c_str(), "chain (recycling)");
    ctx->ItemClick("//Compare/$$2/Column");
    ctx->Yield(3);
    ctx->ItemClick("//$FOCUSED/Plain");
    ctx->Yield(2);
    IM_CHECK(way() == WayToDecode{});
    IM_CHECK(!ctx->ItemExists("//$FOCUSED/From the text"));
  }));
}

TEST_F(CompareUi, ASweepIsMeasuredCancelledAndShown) {
  DrawnTexts texts;
  EXPECT_TRUE(ui_.run([&](ImGuiTestContext* ctx) {
    ctx->KeyPress(ImGuiKey_F3);
    ctx->Yield(3);
    wait_for_prompts(ctx);
    ctx->Yield(2);
    ctx->ItemClick("//Sweep/Start measuring");
    ctx->Yield(3);
    IM_CHECK_EQ(ui_.engine().count<Compare>(), 1u);
    IM_CHECK(ui_.engine().last<Compare>().kind == SweepKind::sweep);
    IM_CHECK(!ui_.engine().last<Compare>().file.empty());
    comparing_.make(100);
    texts.clear();
    ctx->Yield(3);
    IM_CHECK(texts.any_contains("of 240"));
    ctx->ItemClick("//Sweep/Pause measuring");
    ctx->Yield(2);
    IM_CHECK(ui_.engine().last<PauseComparison>().paused);
    ctx->ItemClick("//Sweep/Cancel measuring");
    ctx->Yield(3);
    IM_CHECK(!state().busy());
    IM_CHECK_EQ(state().sweep->sweep.runs.size(), 100u);
    IM_CHECK(texts.any_contains("Go on: 100 of 240"));
  }));
}

TEST_F(CompareUi, AnothersSweepIsLaidOverWhenItIsDropped) {
  Compare asked;
  asked.id = 77;
  asked.kind = SweepKind::sweep;
  asked.columns = app::columns_of({});
  asked.prompts = {{"gsm_01", "gsm", {{"user", "Count."}}}};
  asked.settings.repeats = 3;
  comparing_.begin(asked);
  comparing_.make();
  const std::string ours = (folder_.path() / "ours.json").string(), theirs = (folder_.path() / "theirs.json").string();
  std::ofstream(ours) << sweep_text(comparing_.sweep());
  Sweep other = comparing_.sweep();
  other.subjects[0].device = "GeForce RTX 4090";
  for (MeasuredRun& run : other.runs) run.decode_ms /= 2;
  std::ofstream(theirs) << sweep_text(other);
  show(app::WindowPage::sweep);
  ui_.resize(1280, 1500);  // all of it is in sight
  DrawnTexts texts;
  EXPECT_TRUE(ui_.run([&](ImGuiTestContext* ctx) {
    ui_.app().open_paths({ours});
    for (int i = 0; i < 500 && !state().sweep; ++i) ctx->SleepNoSkip(0.01f, 0.01f);
    IM_CHECK(state().sweep.has_value());
    ui_.app().open_paths({theirs});
    for (int i = 0; i < 500 && state().files.layers.empty(); ++i) ctx->SleepNoSkip(0.01f, 0.01f);
    IM_CHECK_EQ(state().files.layers.size(), 1u);
    texts.clear();
    ctx->Yield(4);
    IM_CHECK(texts.any_contains("Beside GeForce RTX 4090"));
    IM_CHECK(texts.any_contains("0.50"));
    IM_CHECK(texts.has("\u00d7 plain") && texts.has("Tokens per pass") && texts.has("\u00d7 plain there"));
    IM_CHECK(!texts.any_contains("S(N)") && !texts.any_contains("\u03c4"));
    const std::string plain = tooltip_of(ctx, "//Sweep/**/term Times plain decoding");
    IM_CHECK(contains(plain, "as fast as plain decoding"));
    IM_CHECK(contains(tooltip_of(ctx, "//Sweep/**/term Tokens per pass"), "Plain decoding brings"));
    IM_CHECK(contains(tooltip_of(ctx, "//Sweep/**/term Ratio"), "what it is compared with"));
  }));
}

// Frames stay cheap with four columns.
TEST_F(CompareUi, FourColumnsDrawWithinFourMilliseconds) {
  show(app::WindowPage::compare);
  ui_.app().run(app::ComparisonCommand(app::StartComparison{}));
  comparing_.make();
  comparing_.finish();
  ui_.app().pump();
  for (int i = 0; i < 5; ++i) ui_.frame();
  const auto start = std::chrono::steady_clock::now();
  constexpr int frames = 30;
  for (int i = 0; i < frames; ++i) ui_.frame();
  const double ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count() / frames;
  EXPECT_LT(ms, 4 * 4) << "four times the limit, as machines of tests are shared";
}

// At every size and scale: nothing leaves its window, and no text lies over another.
struct PageSize {
  float width, height, scale;
};

class ComparePages : public testing::TestWithParam<PageSize> {};

TEST_P(ComparePages, NothingIsCutOrOverlaps) {
  app::AppSettings settings;
  settings.user_scale = GetParam().scale;
  UiHarness ui(settings, GetParam().width, GetParam().height);
  ComparingEngine comparing(ui.engine());
  ui.engine().script = [&](ScriptedEngine&, const Command& command) {
    if (const auto* compare = std::get_if<Compare>(&command)) comparing.begin(*compare);
  };
  ui.engine().publish(small_model());
  ui.app().pump();
  for (const app::WindowPage page : {app::WindowPage::compare, app::WindowPage::sweep}) {
    ui.app().run(app::ShellCommand(app::ShowPage{page}));
    if (page == app::WindowPage::compare) {
      ui.app().run(app::ComparisonCommand(app::StartComparison{}));
      comparing.make();
      comparing.finish();
      ui.app().pump();
    }
    for (int i = 0; i < 4; ++i) ui.frame();
    DrawnTexts texts;
    ui.frame();
    EXPECT_GT(texts.all().size(), 20u);
    EXPECT_EQ(texts.cut(), std::vector<std::string>()) << "page " << static_cast<int>(page);
    EXPECT_EQ(texts.overlapping(), std::vector<std::string>()) << "page " << static_cast<int>(page);
    // A heading of which letters are left says nothing: it is whole, or not there.
    for (const std::string& text : texts.shortened())
      for (const std::string_view heading : {"Tokens per pass", "Per pass", "Passes", "Width", "Pass, ms"})
        EXPECT_FALSE(heading.starts_with(text.substr(0, text.rfind("\u2026")))) << text;
    EXPECT_TRUE(page != app::WindowPage::compare || texts.has("Tokens per pass") || texts.has("Per pass"))
        << "the figure that all is about";
  }
}

// In the smallest windows the set-up has lines of its own and columns scroll sideways; all of it can be reached.
TEST(ComparePagesOfSmallWindows, KeepTheirSetUpWholeAndTheirColumnsReadable) {
  for (const auto& [width, height, scale] : {PageSize{320, 480, 1}, PageSize{640, 480, 1}, PageSize{640, 480, 2}}) {
    app::AppSettings settings;
    settings.user_scale = scale;
    UiHarness ui(settings, width, height);
    ui.engine().publish(small_model());
    ui.app().pump();
    ui.app().run(app::ShellCommand(app::ShowPage{app::WindowPage::compare}));
    for (int i = 0; i < 4; ++i) ui.frame();
    {
      const DrawnTexts texts;
      ui.frame();
      EXPECT_EQ(texts.overlapping(), std::vector<std::string>()) << width << " at " << scale;
      for (const char* words : {"Prompt", "Repeats", "Tokens", "Plain"}) EXPECT_TRUE(texts.has(words)) << words;
      for (const std::string& text : texts.cut())
        EXPECT_TRUE(text != "Prompt" && text != "Repeats" && text != "Tokens" && text != "Plain") << text;
      EXPECT_TRUE(texts.has("Per pass") || texts.has("Tokens per pass")) << width << " at " << scale;
    }
    ui.app().run(app::ShellCommand(app::ShowPage{app::WindowPage::sweep}));
    for (int i = 0; i < 4; ++i) ui.frame();
    const DrawnTexts texts;
    ui.frame();
    EXPECT_TRUE(texts.has("Ways to decode"));
    EXPECT_EQ(texts.cut(), std::vector<std::string>()) << width << " at " << scale;
  }
}

INSTANTIATE_TEST_SUITE_P(, ComparePages,
                         testing::Values(PageSize{1280, 800, 1}, PageSize{900, 600, 1}, PageSize{1600, 1000, 1},
                                         PageSize{1920, 1080, 1.5f}, PageSize{1280, 800, 0.75f},
                                         PageSize{1280, 800, 2}));

}  // namespace
}  // namespace canopy::test
