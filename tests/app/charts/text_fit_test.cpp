// Figures of any size fit into the room that panels have for them.

#include <gtest/gtest.h>
#include <imgui_internal.h>

#include <string>

#include "app/charts/budget_panel.h"
#include "app/charts/chart_frame.h"
#include "app/charts/statistics_panel.h"
#include "app/state/words.h"
#include "tests/app/charts/chart_samples.h"
#include "tests/app/support/drawn_texts.h"
#include "tests/app/support/panel_harness.h"
#include "tests/app/support/sample_log.h"

namespace canopy::test {
namespace {

/// Milliseconds of a round, from a small model on a large card to a large model on a processor.
constexpr double kRoundTimes[] = {0.1, 1, 9.99, 99.99, 100, 404.27, 999.99, 1000, 12345.67, 99999};

std::shared_ptr<SampleLog> rounds_of(double ms, uint32_t width = 32, size_t count = 12) {
  auto log = std::make_shared<SampleLog>();
  TraceBuilder builder(3);
  builder.begin();
  const RoundCost cost = [ms](uint32_t n) { return ms * (n == 1 ? 0.4 : 0.9 + 0.1 * n / 32); };
  for (size_t i = 0; i < count; ++i)
    log->add(timed(decided(builder.tree(width), cost, WidthObjective::per_round), 0.02));
  return log;
}

void show(PanelHarness& ui, const std::shared_ptr<SampleLog>& log) {
  ui.view().rounds.log = log;
  ui.view().rounds.playback.shown = log->rounds() - 1;
  app::apply_chart_style(*ui.context().look().theme, 1);
}

ImRect rect_of(ImGuiTestContext* ctx, const char* item) {
  return ctx->ItemInfo(item).RectFull;
}

TEST(TextFit, TheFiguresOfTheStatisticsStayInTheirBoxes) {
  for (const double ms : kRoundTimes) {
    for (const float width : {300.0f, 360.0f, 480.0f}) {
      app::StatisticsPanel panel;
      PanelHarness ui(panel, width, 1000);
      show(ui, rounds_of(ms));
      EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
        ctx->Yield(3);
        const DrawnTexts drawn;
        ctx->Yield();
        const std::string what = std::to_string(ms) + " ms, " + std::to_string(width) + " px:";
        for (const char* box : {"//Live/**/Tokens per pass", "//Live/**/Guesses used", "//Live/**/Pass time mean"}) {
          const ImRect rect = rect_of(ctx, box);
          EXPECT_GT(rect.GetWidth(), 60) << what << box;
          // The padding of a box is 10 pixels; text may use the right one down to 4.
          EXPECT_EQ(drawn.leaving(rect.Min, {rect.Max.x - 4, rect.Max.y}), std::vector<std::string>{}) << what << box;
          EXPECT_LE(rect.Max.x, width) << what << box;
        }
        EXPECT_EQ(drawn.cut(), std::vector<std::string>{}) << what;
        EXPECT_EQ(drawn.overlapping(), std::vector<std::string>{}) << what;
        EXPECT_TRUE(drawn.any_contains(" ms")) << what;
      }));
    }
  }
}

TEST(TextFit, TheBarsOfTheStagesEndBeforeTheirSums) {
  for (const double ms : kRoundTimes) {
    app::StatisticsPanel panel;
    PanelHarness ui(panel, 360, 1000);
    const auto log = rounds_of(ms);
    show(ui, log);
    EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
      ctx->Yield(3);
      const DrawnTexts drawn;
      ctx->Yield();
      const ImRect bars = rect_of(ctx, "//Live/**/Pass time bars");
      const std::string sum = app::milliseconds(log->round(log->rounds() - 1)->ms.total());
      bool found = false;
      for (const app::DrawnText& t : drawn.all()) {
        if (t.text != sum || t.min.y < bars.Min.y || t.min.y > bars.Max.y) continue;
        found = true;
        EXPECT_LE(t.max.x, bars.Max.x + 1) << sum;
        EXPECT_GT(t.min.x, bars.Min.x + 100) << sum;  // there is room for a bar
      }
      EXPECT_TRUE(found) << sum;
    }));
  }
}

TEST(TextFit, TheLabelsOfTheBudgetChartDoNotCross) {
  for (const uint32_t tree : {2u, 3u, 4u, 6u, 9u, 16u, 64u, 96u}) {
    for (const float width : {560.0f, 868.0f, 1200.0f}) {
      app::BudgetPanel panel;
      PanelHarness ui(panel, width, 254);
      show(ui, rounds_of(387, tree, 3));
      EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
        ctx->Yield(3);
        const DrawnTexts drawn;
        ctx->Yield();
        const std::string what = std::to_string(tree) + " rows, " + std::to_string(width) + " px:";
        EXPECT_TRUE(drawn.has("realised")) << what;
        const ImRect chart = rect_of(ctx, "//Budget/**/S(N)");
        for (const std::string& pair : drawn.overlapping()) ADD_FAILURE() << what << pair;
        for (const app::DrawnText& t : drawn.all()) {
          if (t.text != "realised" && t.text != "chosen" && t.text != "best afterwards") continue;
          EXPECT_GE(t.min.x, chart.Min.x) << what << t.text;
          EXPECT_LE(t.max.x, chart.Max.x) << what << t.text;
          EXPECT_GE(t.min.y, chart.Min.y - 1) << what << t.text;
          EXPECT_LE(t.max.y, chart.Max.y + 1) << what << t.text;
        }
      }));
    }
  }
}

}  // namespace
}  // namespace canopy::test
