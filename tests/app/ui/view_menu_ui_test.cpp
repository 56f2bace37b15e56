// The View menu, the device list of the first run, and a slow search for models, in the application.

#include <gtest/gtest.h>
#include <imgui_internal.h>

#include <algorithm>
#include <chrono>
#include <latch>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "tests/app/support/drawn_texts.h"
#include "tests/app/support/ui_harness.h"

namespace canopy::test {
namespace {

bool panel_is_open(const char* name) {
  const ImGuiWindow* window = ImGui::FindWindowByName(name);
  return window && window->Active;
}

TEST(ViewMenu, ClosesAndOpensPanelsAndResetsTheLayout) {
  UiHarness ui({}, 1600, 1000);
  ui.engine().script = answers_with({"Yes."});
  ui.app().run(app::OpenModel{"/models/a.gguf"});
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(4);
    ctx->ItemClick("//Top bar/View");
    // Every panel can be reached; the menu stays open from one to the next.
    for (const char* panel : {"Chat", "History", "Tree", "Passes", "Budget", "Residuals", "Roofline", "Live", "KV",
                              "Calibration", "Log", "Timeline"})
      IM_CHECK_SILENT(ctx->ItemExists((std::string("//$FOCUSED/") + panel).c_str()));
    ctx->ItemClick("//$FOCUSED/Tree");
    ctx->ItemClick("//$FOCUSED/Log");
    ctx->Yield(3);
    IM_CHECK(ui.view().shell.closed.contains("Tree"));
    IM_CHECK(!panel_is_open("Tree"));
    IM_CHECK(ui.view().shell.closed.contains("Log"));
    ctx->ItemClick("//$FOCUSED/Tree");
    ctx->ItemClick("//$FOCUSED/Log");
    ctx->Yield(4);
    IM_CHECK(panel_is_open("Tree"));
    IM_CHECK(ImGui::FindWindowByName("Log")->DockTabIsVisible);  // in front of the tabs beside it
    ctx->ItemClick("//$FOCUSED/Reset layout");
    ctx->Yield(4);
    IM_CHECK(ui.view().shell.closed.empty());
    IM_CHECK_EQ(ui.view().shell.layout_resets, 1u);
  }));
}

TEST(ViewMenu, ChoosesThemeScaleAndShowsTheKeys) {
  UiHarness ui({}, 1600, 1000);
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(3);
    ctx->ItemClick("//Top bar/View");
    ctx->ItemClick("//$FOCUSED/Light theme");
    ctx->Yield(2);
    IM_CHECK(ui.view().theme == app::ThemeKind::light);
    ctx->ItemClick("//$FOCUSED/Larger");
    ctx->Yield(3);
    IM_CHECK_EQ(ui.view().user_scale, 1.1f);
    ctx->ItemClick("//$FOCUSED/Actual size");
    ctx->Yield(3);
    IM_CHECK_EQ(ui.view().user_scale, 1.0f);
    ctx->ItemClick("//$FOCUSED/Keyboard shortcuts");
    ctx->Yield(2);
    IM_CHECK(ui.view().help_shown);
    ctx->ItemClick("//Top bar/View");
    ctx->ItemClick("//$FOCUSED/Commands");
    ctx->Yield(2);
    IM_CHECK(ui.view().shell.palette_shown);
  }));
}

// gui.md, criterion 23: every entry can be reached at every scale; the menu scrolls if it must.
TEST(ViewMenu, StaysInsideTheWindowAtEveryScale) {
  for (const float scale : {0.75f, 1.0f, 1.5f, 2.0f, 3.0f}) {
    UiHarness ui({}, 1280, 800);
    ui.app().run(app::SetScale{scale});
    EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
      ctx->Yield(4);
      ctx->ItemClick("//Top bar/View");
      ctx->Yield(3);
      const ImGuiWindow* menu = ctx->GetWindowByRef("//$FOCUSED");
      IM_CHECK(menu != nullptr);
      const ImRect display({0, 0}, ImGui::GetIO().DisplaySize);
      EXPECT_TRUE(display.Contains(menu->Rect())) << scale;
      ctx->ItemClick("//$FOCUSED/Reduced motion");
      ctx->Yield(2);
      EXPECT_TRUE(ui.view().rounds.reduced_motion) << scale;
    }));
  }
}

// gui.md, section 1: memory, driver and self-test of each device, and the reason if it cannot be used.
TEST(FirstRun, SaysOfEachDeviceWhatItHasAndWhyItCannotBeUsed) {
  app::AppSettings settings;
  settings.saved.device_tests = {{"Radeon RX 7900 XTX", "RADV 25.2", true, "Exactness checked."}};
  UiHarness ui(settings, 1600, 1000);
  for (int i = 0; i < 3; ++i) ui.frame();
  const DrawnTexts drawn;
  ui.frame();
  for (const char* words : {"25.77 GB", "66.57 GB shared", "Vulkan 1.3, RADV 25.2", "Vulkan 1.3, llvmpipe Mesa 22.3.6",
                            "passed the self-test", "works, slow; not tested yet", "Vulkan 1.2; 1.3 is needed"})
    EXPECT_TRUE(drawn.has(words)) << words;
  EXPECT_EQ(drawn.shortened(), std::vector<std::string>{});
  EXPECT_EQ(drawn.overlapping(), std::vector<std::string>{});
}

TEST(FirstRun, ANarrowWindowKeepsNameAndMemoryOfADevice) {
  UiHarness ui({}, 900, 1400);
  for (int i = 0; i < 3; ++i) ui.frame();
  const DrawnTexts drawn;
  ui.frame();
  EXPECT_TRUE(drawn.any_contains("discrete, 25.77 GB"));
  EXPECT_EQ(drawn.overlapping(), std::vector<std::string>{});
}

TEST(ModelMenu, HasTheModelOfTheSetUpOnce) {
  app::AppSettings settings;
  settings.default_model = "/models/SmolLM2-135M-Instruct.Q4_1.gguf";
  settings.model_lister = [&](const app::ModelSearchRequest& request, const std::stop_token&) {
    app::ModelSearchResult result;
    result.target = request.target;
    result.found.push_back({request.standard, "SmolLM2-135M-Instruct.Q4_1.gguf", 80 << 20, false, "", true});
    result.found.push_back({"/models/other.gguf", "other.gguf", 1 << 30, false, ""});
    return result;
  };
  UiHarness ui(settings, 1600, 1000);
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->ItemClick("//Top bar/Model");
    for (int i = 0; i < 500 && !ui.view().models.looked; ++i) ctx->Yield();
    ctx->Yield();
    const DrawnTexts drawn;
    ctx->Yield();
    IM_CHECK(drawn.any_contains("other.gguf"));
    IM_CHECK(ctx->ItemExists("//$FOCUSED/Default model"));
    std::set<float> rows;
    for (const app::DrawnText& each : drawn.all())
      if (each.text == "SmolLM2-135M-Instruct.Q4_1.gguf") rows.insert(each.min.y);
    IM_CHECK_EQ(rows.size(), 1u);
  }));
}

TEST(ModelMenu, TheWindowStaysAliveWhileASlowFolderIsRead) {
  std::latch answer(1);
  app::AppSettings settings;
  settings.model_lister = [&](const app::ModelSearchRequest& request, const std::stop_token&) {
    answer.wait();
    app::ModelSearchResult result;
    result.target = request.target;
    result.found.push_back({"/models/slow.gguf", "From a slow disk", 1 << 30, false, ""});
    return result;
  };
  UiHarness ui(settings, 1600, 1000);
  // Release the search in any case, so that a failed check does not leave this test waiting for it.
  const std::shared_ptr<void> release(nullptr, [&](void*) {
    if (!answer.try_wait()) answer.count_down();
  });
  bool shown = false;
  EXPECT_TRUE(ui.run([&](ImGuiTestContext* ctx) {
    ctx->Yield(3);
    ctx->ItemClick("//Top bar/Model");
    ctx->Yield(20);  // frames are drawn although the search has not answered
    IM_CHECK(ui.view().models.looking);
    IM_CHECK(!ui.view().models.looked);
    {
      const DrawnTexts drawn;
      ctx->Yield();
      ctx->Yield();
      IM_CHECK(ctx->ItemExists("//$FOCUSED/Open model"));
      IM_CHECK(drawn.any_contains("Looking for models"));
    }
    answer.count_down();
    for (int i = 0; i < 20000 && !ui.view().models.looked; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ctx->Yield();
    }
    ctx->Yield(2);
    const DrawnTexts drawn;
    ctx->Yield();
    shown = drawn.has("From a slow disk");
  }));
  EXPECT_TRUE(shown);
  EXPECT_FALSE(ui.view().models.looking);
}

// App::engine_busy() paces frames; a calibration keeps the processor busy as a reply does.
TEST(EngineBusy, CountsACalibration) {
  UiHarness ui;
  ModelReady model = small_model();
  model.drafter = "drafter.gguf";
  ui.engine().script = [model](ScriptedEngine& engine, const Command& command) {
    if (std::holds_alternative<LoadModel>(command)) engine.publish(model);
  };
  ui.app().run(app::OpenModel{"/models/a.gguf"});
  ui.frame();
  EXPECT_FALSE(ui.app().engine_busy());
  ui.app().run(app::CalibrationCommand(app::StartCalibration{}));
  EXPECT_TRUE(ui.app().engine_busy());
  ui.engine().publish(CalibrationProgress{3, 12, 40});
  ui.frame();
  EXPECT_TRUE(ui.app().engine_busy());
  ui.engine().publish(Calibrated{});
  ui.frame();
  EXPECT_FALSE(ui.app().engine_busy());
}

}  // namespace
}  // namespace canopy::test
