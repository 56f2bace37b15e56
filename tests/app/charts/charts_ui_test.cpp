// Budget, statistics, costs, cache and log, each panel alone under Dear ImGui's Test Engine.

#include <gtest/gtest.h>
#include <imgui_internal.h>
#include <implot.h>

#include <string>

#include "app/charts/budget_panel.h"
#include "app/charts/chart_frame.h"
#include "app/charts/cost_panels.h"
#include "app/charts/statistics_panel.h"
#include "app/state/process.h"
#include "app/ui/panel.h"
#include "tests/app/charts/chart_samples.h"
#include "tests/app/support/drawn_texts.h"
#include "tests/app/support/panel_harness.h"
#include "tests/app/support/sample_log.h"
#include "tests/app/support/tooltip_text.h"

namespace canopy::test {
namespace {

constexpr float kRight = 360, kRightHeight = 780, kBelow = 868, kBelowHeight = 254;

std::shared_ptr<SampleLog> log_of(size_t rounds, uint64_t seed = 1) {
  auto log = std::make_shared<SampleLog>();
  TraceBuilder builder(seed);
  builder.begin();
  for (size_t i = 0; i < rounds; ++i)
    log->add(timed(decided(builder.tree(96), tiled_cost, WidthObjective::per_round), 0.02));
  return log;
}

void show(PanelHarness& ui, const std::shared_ptr<SampleLog>& log, size_t round) {
  ui.view().rounds.log = log;
  ui.view().rounds.playback.shown = round;
  app::apply_chart_style(*ui.context().look().theme, 1);
}

// ---- empty ----------------------------------------------------------------------------------------------------------

TEST(ChartsUi, ChartsKeepTheirAxesBeforeTheFirstRound) {
  {
    app::StatisticsPanel panel;
    PanelHarness ui(panel, kRight, kRightHeight);
    EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
      for (const char* chart : {"Speed chart", "Accepted chart", "Depth chart"})
        IM_CHECK(ctx->ItemExists((std::string("//Live/**/") + chart).c_str()));
      IM_CHECK(contains(tooltip_of(ctx, "//Live/**/Tokens per pass"), "after the first pass"));
    }));
  }
  {
    app::BudgetPanel panel;
    PanelHarness ui(panel, kBelow, kBelowHeight);
    EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
      IM_CHECK(ctx->ItemExists("//Budget/**/S(N)"));
      IM_CHECK(!ctx->ItemExists("//Budget/**/Why"));
    }));
  }
  app::ResidualsPanel residuals;
  PanelHarness(residuals, kBelow, kBelowHeight).frames(3);
  app::RooflinePanel roofline;
  PanelHarness(roofline, kBelow, kBelowHeight).frames(3);
  app::KvPanel kv;
  PanelHarness(kv, kRight, kRightHeight).frames(3);
  app::CalibrationPanel calibration;
  PanelHarness(calibration, kRight, kRightHeight).frames(3);
}

// ---- statistics -----------------------------------------------------------------------------------------------------

TEST(ChartsUi, EveryFigureSaysWhatItWasCountedOver) {
  const auto log = log_of(40);
  app::StatisticsPanel panel;
  PanelHarness ui(panel, kRight, kRightHeight);
  show(ui, log, 39);
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    for (const char* figure : {"Speed figure", "Tokens per pass", "Pass time mean", "Best afterwards/pair"})
      IM_CHECK(contains(tooltip_of(ctx, (std::string("//Live/**/") + figure).c_str()), "40 passes"));
    IM_CHECK(contains(tooltip_of(ctx, "//Live/**/Guesses used"), "guesses that were checked"));
    IM_CHECK(contains(tooltip_of(ctx, "//Live/**/Passes by right guesses/title"), "40 passes"));
    IM_CHECK(contains(tooltip_of(ctx, "//Live/**/Pass time bars"), "Measured"));
  }));
}

TEST(ChartsUi, ScrubbingBackCountsTheRoundsUpToTheShownOne) {
  const auto log = log_of(40);
  app::StatisticsPanel panel;
  PanelHarness ui(panel, kRight, kRightHeight);
  show(ui, log, 39);
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    IM_CHECK(contains(tooltip_of(ctx, "//Live/**/Tokens per pass"), "over 40 passes"));
    ui.view().rounds.playback.shown = 9;
    IM_CHECK(contains(tooltip_of(ctx, "//Live/**/Tokens per pass"), "over 10 passes"));
    ui.view().rounds.playback.shown = 0;
    IM_CHECK(contains(tooltip_of(ctx, "//Live/**/Tokens per pass"), "over 1 pass,"));
  }));
}

TEST(ChartsUi, ABarSaysItsRounds) {
  const auto log = log_of(40);
  app::StatisticsPanel panel;
  PanelHarness ui(panel, kRight, kRightHeight);
  show(ui, log, 39);
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    const ImRect chart = ctx->ItemInfo("//Live/**/Accepted chart").RectFull;
    ctx->MouseMoveToPos({chart.Min.x + chart.GetWidth() * 0.3f, chart.GetCenter().y});
    IM_CHECK(contains(tooltip_here(ctx), "of 40 passes"));
  }));
}

/// look.md, section 8.
TEST(ChartsUi, KeyFiguresRefreshAtMostFourTimesASecondWhileAReplyIsWritten) {
  auto log = log_of(1);
  app::StatisticsPanel panel;
  PanelHarness ui(panel, kRight, kRightHeight);
  show(ui, log, 0);
  ui.view().reply_state = app::ReplyState::writing;
  TraceBuilder builder(4);
  builder.begin();
  ui.frame();
  const size_t before = panel.refreshes();
  for (int i = 0; i < 120; ++i) {  // two seconds
    log->add(builder.tree(16));
    ui.view().rounds.playback.shown = log->rounds() - 1;
    ui.frame();
  }
  EXPECT_GE(panel.refreshes() - before, 6u);
  EXPECT_LE(panel.refreshes() - before, 8u);
  ui.view().reply_state = app::ReplyState::idle;  // the last figures are the true ones
  ui.frame();
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    IM_CHECK(contains(tooltip_of(ctx, "//Live/**/Tokens per pass"), "over 121 passes"));
  }));
}

/// A narrow panel keeps the ratio, on a line of its own.
TEST(ChartsUi, TheRatioIsShownAtEveryWidth) {
  const auto log = log_of(40);
  log->reply().mode = DecodeMode::adaptive;
  for (const float width : {kRight, 220.0f}) {
    app::StatisticsPanel panel;
    PanelHarness ui(panel, width, kRightHeight);
    show(ui, log, 39);
    EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
      const std::string why = tooltip_of(ctx, "//Live/**/Ratio figure");
      IM_CHECK(contains(why, "of plain decoding, predicted for this pass"));
      const DrawnTexts drawn;
      ctx->Yield();
      IM_CHECK(drawn.overlapping().empty());
    }));
  }
}

// ---- budget ---------------------------------------------------------------------------------------------------------

TEST(ChartsUi, AWidthUnderTheMouseSaysItsNumbers) {
  const auto log = log_of(3);
  app::BudgetPanel panel;
  PanelHarness ui(panel, kBelow, kBelowHeight);
  show(ui, log, 2);
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    const ImRect chart = ctx->ItemInfo("//Budget/**/S(N)").RectFull;
    ctx->MouseMoveToPos({chart.Min.x + chart.GetWidth() * 0.18f, chart.GetCenter().y});
    const std::string text = tooltip_here(ctx);
    IM_CHECK(contains(text, " guess") && contains(text, ", a pass of "));
    IM_CHECK(contains(text, "predicted"));
  }));
}

TEST(ChartsUi, TheBudgetSaysWhyAndMarksTheChosenRow) {
  const auto log = log_of(3);
  const RoundRecord& record = *log->round(2);
  ASSERT_EQ(record.shape, DecodeMode::tree);
  app::BudgetPanel panel;
  PanelHarness ui(panel, kBelow, kBelowHeight);
  show(ui, log, 2);
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    IM_CHECK(ctx->ItemExists("//Budget/**/Why"));
    const std::string row = "//Budget/**/row " + std::to_string(record.width - 1);
    IM_CHECK(contains(tooltip_of(ctx, row.c_str()), "What the pass had"));
    IM_CHECK(ctx->ItemExists("//Budget/**/row plain"));
    IM_CHECK(contains(tooltip_of(ctx, "//Budget/**/Realised/pair"), "Measured"));
    IM_CHECK(contains(tooltip_of(ctx, "//Budget/**/Limits/pair"), "depth 15"));
  }));
}

/// The costs of the loaded models are not used for a trace from another machine.
TEST(ChartsUi, ATraceIsNotJudgedByTheCostsOfThisMachine) {
  app::RooflinePanel panel;
  PanelHarness ui(panel, kBelow, kBelowHeight);
  show(ui, log_of(3), 2);
  ui.view().calibration.costs = costs_of(tiled_cost);
  ui.frames(3);
  const size_t with_costs = ui.vertices();
  ui.view().rounds.log = std::make_shared<SampleLog>(false);
  ui.frames(3);
  EXPECT_LT(ui.vertices(), with_costs);
}

/// At every size that a dock may give and at every scale, nothing asserts and nothing is drawn outside the panel.
TEST(ChartsUi, PanelsStandAnySize) {
  const auto log = log_of(30);
  for (const ImVec2 size : {ImVec2(868, 254), ImVec2(360, 780), ImVec2(240, 120), ImVec2(60, 40), ImVec2(1900, 1000)}) {
    app::BudgetPanel budget;
    app::StatisticsPanel statistics;
    app::ResidualsPanel residuals;
    app::RooflinePanel roofline;
    app::CalibrationPanel calibration;
    app::KvPanel kv;
    for (app::Panel* panel :
         std::initializer_list<app::Panel*>{&budget, &statistics, &residuals, &roofline, &calibration, &kv}) {
      PanelHarness ui(*panel, size.x, size.y);
      show(ui, log, 29);
      ui.view().calibration.costs = costs_of(tiled_cost);
      for (const float scale : {1.0f, 3.0f, 0.75f}) {
        ui.context().look().scale = scale;
        app::apply_chart_style(*ui.context().look().theme, scale);
        ui.frames(3);
      }
      EXPECT_GT(ui.vertices(), 0u) << panel->name();
    }
  }
}

// ---- log ------------------------------------------------------------------------------------------------------------

TEST(ChartsUi, TheLogIsCopiedWhole) {
  auto messages = std::make_shared<app::MessageLog>();
  app::LogPanel panel(messages);
  PanelHarness ui(panel, kRight, kRightHeight);
  messages->add(LogLevel::warning, "The calibration was not kept.");
  messages->add(LogLevel::info, "Second");
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->ItemClick("//Log/**/Copy all");
    ctx->Yield(2);
  }));
  ASSERT_EQ(ui.context().posted.size(), 1u);
  const std::string text = std::get<app::CopyText>(ui.context().posted[0]).text;
  EXPECT_TRUE(contains(text, "warning  The calibration was not kept.\n"));
  EXPECT_TRUE(contains(text, "Second"));
}

}  // namespace
}  // namespace canopy::test
