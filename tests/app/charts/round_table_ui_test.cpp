// The table of rounds in the whole window, under Dear ImGui's Test Engine.

#include <gtest/gtest.h>
#include <imgui_internal.h>

#include <algorithm>
#include <string>

#include "app/state/words.h"
#include "engine/trace/trace_writer.h"
#include "tests/app/support/drawn_texts.h"
#include "tests/app/support/ui_harness.h"
#include "tests/base/temp_folder.h"
#include "tests/trace/trace_builder.h"

namespace canopy::test {
namespace {

using namespace app;  // NOLINT: the whole file is about it

constexpr const char* kDemo = CANOPY_SOURCE_DIR "/assets/demos/prose.canopytrace";

/// The window with a recorded reply and its table of rounds in front.
class TableUi {
 public:
  explicit TableUi(float width = 1600, float height = 1000, const std::string& trace = kDemo) : ui({}, width, height) {
    ui.app().run(OpenModel{trace});
    ui.app().run(ShellCommand(ShowPanel{"Passes", true}));
  }
  void show(ImGuiTestContext* ctx, size_t round) {
    ui.app().run(RoundsCommand(ShowRound{round}));
    ctx->Yield(4);
  }
  const RoundLog& log() const { return *ui.view().rounds.log; }
  UiHarness ui;
};

std::string row(size_t round) {
  return "//Passes/**/$$" + std::to_string(round) + "/Show round";
}

TEST(RoundTable, ALineHasTheFiguresOfItsRoundAndShowsIt) {
  TableUi table;
  EXPECT_TRUE(table.ui.run([&](ImGuiTestContext* ctx) {
    table.show(ctx, 0);
    ctx->ItemClick(row(5).c_str());
    ctx->Yield(3);
    IM_CHECK_EQ(table.ui.view().rounds.playback.shown, 5u);
    IM_CHECK(table.ui.view().rounds.playback.state == PlayState::paused);
    const float middle = ctx->ItemInfo(row(5).c_str()).RectFull.GetCenter().y;
    const DrawnTexts drawn;
    ctx->Yield();
    std::string line;
    for (const DrawnText& each : drawn.all())
      if (each.min.y < middle && each.max.y > middle && each.clip_min.x >= 360) line += each.text + "|";
    const RoundSummary& round = table.log().summary(5);
    const std::string expected = "6|Tree|" + grouped(round.width - 1) + "|" + grouped(round.accepted) + "|" +
                                 grouped(round.emitted) + "|" + millisecond_figure(round.ms.draft) + "|" +
                                 millisecond_figure(round.ms.verify) + "|" + millisecond_figure(round.ms.total()) + "|";
    IM_CHECK_STR_EQ(line.substr(0, expected.size()).c_str(), expected.c_str());
  }));
}

TEST(RoundTable, TheShownRoundStaysInSightAndScrollingIsFree) {
  TableUi table;
  EXPECT_TRUE(table.ui.run([&](ImGuiTestContext* ctx) {
    const size_t last = table.log().rounds() - 1;
    IM_CHECK_GT(last, 20u);
    table.show(ctx, last);
    const ImGuiWindow* const list = ctx->ItemInfo(row(last).c_str()).Window;
    IM_CHECK(list != nullptr);
    IM_CHECK(list->InnerClipRect.Contains(ctx->ItemInfo(row(last).c_str()).RectFull.GetCenter()));
    ctx->ScrollToTop(list->ID);
    ctx->Yield(4);
    IM_CHECK_EQ(list->Scroll.y, 0.0f);  // and stays there
  }));
}

TEST(RoundTable, NarrowAndLargeItLeavesColumnsOutRatherThanCutThem) {
  for (const float width : {1280.0f, 1600.0f}) {
    TableUi table(width, 800);
    EXPECT_TRUE(table.ui.run([&](ImGuiTestContext* ctx) {
      for (const float scale : {1.0f, 1.5f, 2.0f}) {
        table.ui.app().run(SetScale{scale});
        table.show(ctx, 3);
        const DrawnTexts drawn;
        ctx->Yield();
        IM_CHECK(drawn.has("accepted"));
        IM_CHECK_EQ(drawn.overlapping().size(), 0u);
      }
    }));
  }
}

/// A recording of as many rounds, which `change` makes what they are to be.
template <class Change>
std::string recorded(const TempFolder& folder, int rounds, Change&& change) {
  const std::string file = (folder.path() / "rounds.canopytrace").string();
  TraceBuilder builder;
  TraceWriter trace(file, builder.header(), builder.pieces());
  trace.begin(builder.begin(DecodeMode::tree));
  trace.prefilled(builder.prefill());
  for (int i = 0; i < rounds; ++i) {
    RoundRecord round = builder.tree(9);
    change(i, round);
    trace.append(round);
  }
  trace.end(builder.end());
  trace.finish();
  return file;
}

/// Passes of a model with experts, which went through 6.5, 7.5 and 8.5 of them.
std::string recorded_mixture(const TempFolder& folder) {
  return recorded(folder, 3, [](int i, RoundRecord& round) { round.distinct_experts = 6.5f + static_cast<float>(i); });
}

TEST(RoundTable, ShowsTheExpertsOfMixtures) {
  const TempFolder folder;
  TableUi table(1600, 1000, recorded_mixture(folder));
  EXPECT_TRUE(table.ui.run([&](ImGuiTestContext* ctx) {
    table.show(ctx, 1);
    const DrawnTexts drawn;
    ctx->Yield();
    for (const char* text : {"experts", "6.5", "7.5", "8.5"}) IM_CHECK(drawn.has(text));
    IM_CHECK_EQ(drawn.overlapping().size(), 0u);
  }));
}

/// A round that the drafter guessed, and one whose guesses are from the text alone.
std::string recorded_text_round(const TempFolder& folder) {
  return recorded(folder, 2, [](int i, RoundRecord& round) {
    if (i == 0) return;
    for (size_t node = 1; node < round.nodes.size(); ++node) round.nodes[node].node.sources = kFromSuffix;
    round.match = 14;
    round.ms.draft = 0;
  });
}

TEST(RoundTable, SaysWhoGuessedWhereTheTextDid) {
  const TempFolder folder;
  TableUi table(1600, 1000, recorded_text_round(folder));
  EXPECT_TRUE(table.ui.run([&](ImGuiTestContext* ctx) {
    table.show(ctx, 1);
    const DrawnTexts drawn;
    ctx->Yield();
    for (const char* text : {"from", "drafter", "text 14"}) IM_CHECK(drawn.has(text));
    IM_CHECK_EQ(drawn.overlapping().size(), 0u);
  }));
}

TEST(RoundTable, OfOtherModelsThereIsNoColumnOfExperts) {
  TableUi table;
  EXPECT_TRUE(table.ui.run([&](ImGuiTestContext* ctx) {
    table.show(ctx, 1);
    const DrawnTexts drawn;
    ctx->Yield();
    IM_CHECK(drawn.has("accepted"));
    IM_CHECK(!drawn.has("experts"));
    IM_CHECK(!drawn.has("from"));
  }));
}

TEST(RoundTable, WithoutRoundsItSaysSo) {
  UiHarness ui({}, 1600, 1000);
  ui.engine().script = [](ScriptedEngine& engine, const Command& command) {
    if (std::holds_alternative<LoadModel>(command)) engine.publish(small_model());
  };
  ui.app().run(OpenModel{"/models/a.gguf"});
  ui.app().run(ShellCommand(ShowPanel{"Passes", true}));
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(3);
    const DrawnTexts drawn;
    ctx->Yield();
    IM_CHECK(drawn.any_contains("No pass yet"));
  }));
}

}  // namespace
}  // namespace canopy::test
