// Pictures of the panels of charts, on whatever Vulkan device the machine has. CANOPY_PICTURES=folder keeps them.

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>

#include "app/charts/budget_panel.h"
#include "app/charts/chart_frame.h"
#include "app/charts/cost_panels.h"
#include "app/charts/statistics_panel.h"
#include "app/platform/image.h"
#include "app/platform/vulkan.h"
#include "tests/app/charts/chart_samples.h"
#include "tests/app/support/panel_context.h"
#include "tests/app/support/pixels.h"
#include "tests/app/support/sample_log.h"

namespace canopy::test {
namespace {

using app::ThemeKind;

struct ChartShot {
  std::string name;
  uint32_t width = 868, height = 254;
  ThemeKind theme = ThemeKind::dark;
  float scale = 1;
};

/// The log of a reply in mode Adaptive, on a device with the given cost.
std::shared_ptr<SampleLog> adaptive_log(const RoundCost& cost, size_t rounds) {
  auto log = std::make_shared<SampleLog>();
  log->reply().mode = DecodeMode::adaptive;
  log->reply().ar_tokens_per_second = 1000 / cost(1);
  TraceBuilder builder(41);
  builder.begin();
  std::mt19937 random(3);
  for (size_t i = 0; i < rounds; ++i) {
    const double off = static_cast<double>(random() % 100) / 1000 - 0.04;
    log->add(timed(decided(builder.tree(128), cost, WidthObjective::per_round), off));
  }
  return log;
}

app::Image picture(app::Panel& panel, const std::shared_ptr<SampleLog>& log, const ChartShot& shot,
                   std::shared_ptr<const CostSnapshot> costs = nullptr) {
  app::UiDevice device({});
  PanelContext context(panel, static_cast<float>(shot.width), static_cast<float>(shot.height), shot.theme, shot.scale);
  app::apply_chart_style(app::theme(shot.theme), shot.scale);
  app::OffscreenTarget target(device, {shot.width, shot.height});
  context.view.rounds.log = log;
  context.view.rounds.playback.shown = log->rounds() == 0 ? 0 : log->rounds() - 1;
  context.view.calibration.costs = std::move(costs);
  app::Image image;
  for (int frame = 0; frame < 4; ++frame) {
    ImGui::GetIO().DeltaTime = 1.0f / 60;
    target.new_frame();
    ImGui::NewFrame();
    context.draw();
    ImGui::Render();
    image = target.render(ImGui::GetDrawData(), app::theme(shot.theme).panel);
    context.fold();
  }
  keep_picture(image, shot.name);
  return image;
}

class ChartPictures : public testing::TestWithParam<ThemeKind> {
 protected:
  ChartShot shot(const std::string& name, uint32_t width, uint32_t height) const {
    return {name + (GetParam() == ThemeKind::dark ? "-dark" : "-light"), width, height, GetParam(), 1};
  }
  const app::Theme& t = app::theme(GetParam());
};

TEST_P(ChartPictures, TheBudgetHasItsMeasuredCurveAndItsChosenRow) {
  app::BudgetPanel panel;
  const app::Image image = picture(panel, adaptive_log(tiled_cost, 24), shot("budget", 868, 254));
  EXPECT_GT(pixels_of(image, t.accent), 300u);      // the stairs, the bar of the card
  EXPECT_GT(pixels_of(image, t.accent_bg), 1500u);  // the chosen row
}

TEST_P(ChartPictures, WhereSpeculationLosesTheCardWarns) {
  app::BudgetPanel panel;
  const app::Image image = picture(panel, adaptive_log(steep_cost, 12), shot("budget-loses", 868, 254));
  EXPECT_GT(pixels_of(image, t.bonus), 60u);  // the bar of a warning
}

TEST_P(ChartPictures, StatisticsHaveBarsOfAcceptedAndAllThreeStages) {
  app::StatisticsPanel panel;
  const app::Image image = picture(panel, adaptive_log(tiled_cost, 73), shot("statistics", 360, 782));
  EXPECT_GT(pixels_of(image, t.accepted), 2000u);
  for (const app::Colour stage : {t.draft, t.verify, t.rest}) EXPECT_GT(pixels_of(image, stage), 100u);
}

TEST_P(ChartPictures, CostsShowMeasuredPointsAndTheirRounds) {
  const auto log = adaptive_log(tiled_cost, 73);
  const auto costs = costs_of(tiled_cost);
  app::RooflinePanel roofline;
  EXPECT_GT(pixels_of(picture(roofline, log, shot("roofline", 868, 254), costs), t.accent), 200u);
  app::ResidualsPanel residuals;
  EXPECT_GT(pixels_of(picture(residuals, log, shot("residuals", 868, 254), costs), t.accent), 50u);
}

TEST_P(ChartPictures, CalibrationAndCache) {
  const auto log = adaptive_log(tiled_cost, 73);
  app::CalibrationPanel calibration;
  EXPECT_GT(pixels_of(picture(calibration, log, shot("calibration", 360, 782), costs_of(tiled_cost)), t.accepted), 60u);
  app::KvPanel kv;
  EXPECT_GT(pixels_of(picture(kv, log, shot("kv", 360, 782)), t.accepted), 60u);
}

INSTANTIATE_TEST_SUITE_P(Themes, ChartPictures, testing::Values(ThemeKind::dark, ThemeKind::light));

}  // namespace
}  // namespace canopy::test
