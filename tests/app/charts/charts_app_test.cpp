// The panels of charts in the application, with a scripted engine: tabs, calibration, theme and scale.

#include <gtest/gtest.h>
#include <imgui_internal.h>
#include <implot.h>

#include <string>

#include "tests/app/charts/chart_samples.h"
#include "tests/app/support/tooltip_text.h"
#include "tests/app/support/ui_harness.h"

namespace canopy::test {
namespace {

ModelReady pair_of_models() {
  ModelReady model = small_model();
  model.drafter = "drafter.gguf";
  model.block = 16;
  return model;
}

/// Opens a target with a drafter.
void open_pair(UiHarness& ui, ImGuiTestContext* ctx) {
  ui.engine().script = [](ScriptedEngine& engine, const Command& command) {
    if (std::holds_alternative<LoadModel>(command)) engine.publish(pair_of_models());
  };
  ui.app().run(app::OpenModel{"/models/a.gguf"});
  ctx->Yield(4);
}

void bring_up(UiHarness& ui, ImGuiTestContext* ctx, const char* panel) {
  ui.app().run(app::ShellCommand(app::ShowPanel{panel, true}));
  ctx->Yield(4);
}

TEST(ChartsInTheApp, EveryPanelHasItsTab) {
  UiHarness ui({}, 1600, 1000);
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    open_pair(ui, ctx);
    for (const char* name : {"Budget", "Residuals", "Roofline", "Live", "KV", "Calibration", "Log"}) {
      bring_up(ui, ctx, name);
      const ImGuiWindow* window = ImGui::FindWindowByName(name);
      IM_CHECK(window != nullptr);
      IM_CHECK(window->DockIsActive);
      IM_CHECK(window->DockTabIsVisible);
    }
  }));
}

TEST(ChartsInTheApp, ACalibrationShowsItsProgressAndCanBeCancelled) {
  UiHarness ui({}, 1600, 1000);
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    open_pair(ui, ctx);
    bring_up(ui, ctx, "Calibration");
    ctx->ItemClick("//Calibration/**/Calibrate");
    ctx->Yield(2);
    IM_CHECK_EQ(ui.engine().count<Calibrate>(), 1u);
    IM_CHECK(!ctx->ItemExists("//Calibration/**/Calibrate"));
    ui.engine().publish(CalibrationProgress{30, 120, 42});
    ctx->Yield(2);
    IM_CHECK_EQ(ui.view().calibration.fraction(), 0.25f);
    ctx->ItemClick("//Calibration/**/Cancel calibration");
    ctx->Yield(2);
    IM_CHECK_EQ(ui.engine().count<CancelCalibration>(), 1u);
    Failure cancelled;
    cancelled.kind = ErrorKind::cancelled;
    ui.engine().publish(cancelled);
    ctx->Yield(2);
    IM_CHECK(ctx->ItemExists("//Calibration/**/Calibrate"));
    IM_CHECK(ui.view().cards.empty());  // no card, as the user has cancelled it
    IM_CHECK(!ui.view().calibration.costs);
  }));
}

TEST(ChartsInTheApp, AFinishedCalibrationFillsTheRoofline) {
  UiHarness ui({}, 1600, 1000);
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    open_pair(ui, ctx);
    bring_up(ui, ctx, "Calibration");
    ctx->ItemClick("//Calibration/**/Calibrate");
    ctx->Yield(2);
    ui.engine().publish(CalibrationProgress{119, 120, 1});
    ui.engine().publish(Calibrated{costs_of(tiled_cost)});
    ctx->Yield(2);
    IM_CHECK(!ui.view().calibration.busy());
    IM_CHECK(contains(tooltip_of(ctx, "//Calibration/**/Roofline off by/pair"), "roofline"));
    bring_up(ui, ctx, "Roofline");
    IM_CHECK(ctx->ItemExists("//Roofline/**/Roofline chart"));
  }));
}

TEST(ChartsInTheApp, AModelWithoutADrafterIsCalibratedToo) {
  UiHarness ui({}, 1600, 1000);
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ui.engine().script = answers_with({});
    ui.app().run(app::OpenModel{"/models/a.gguf"});
    ctx->Yield(4);
    bring_up(ui, ctx, "Calibration");
    ctx->ItemClick("//Calibration/**/Calibrate");
    ctx->Yield(2);
    IM_CHECK_EQ(ui.engine().count<Calibrate>(), 1u);
  }));
}

TEST(ChartsInTheApp, PlotsFollowThemeAndScale) {
  UiHarness ui;
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(2);
    const float thin = ImPlot::GetStyle().PlotPadding.x;
    ui.app().run(app::SetTheme{app::ThemeKind::light});
    ui.app().run(app::SetScale{2.0f});
    ctx->Yield(3);
    const app::Theme& light = app::theme(app::ThemeKind::light);
    IM_CHECK_EQ(ImGui::ColorConvertFloat4ToU32(ImPlot::GetStyle().Colors[ImPlotCol_AxisText]), light.text3);
    IM_CHECK_EQ(ImPlot::GetStyle().PlotPadding.x, 2 * thin);
  }));
}

}  // namespace
}  // namespace canopy::test
