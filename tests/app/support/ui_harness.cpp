#include "tests/app/support/ui_harness.h"

#include <gtest/gtest.h>
#include <imgui_internal.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace canopy::test {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

UiHarness::UiHarness(app::AppSettings settings, float width, float height, std::vector<DeviceChoice> devices)
    : context_(std::make_unique<app::ImguiContext>()) {
  settings.system_fonts = false;
  if (!settings.layout) settings.layout = app::WindowLayout::lab;
  engine_.devices_ = std::move(devices);
  ImGuiIO& io = ImGui::GetIO();
  io.DisplaySize = {width, height};
  io.BackendFlags |= ImGuiBackendFlags_RendererHasTextures;
  app_ = std::make_unique<app::App>(engine_, settings);
  tests_ = start_test_engine();
}

UiHarness::~UiHarness() {
  ImGuiTestEngine_Stop(tests_);
  app_.reset();
  drop_textures();
  context_.reset();
  ImGuiTestEngine_DestroyContext(tests_);
}

void UiHarness::frame() {
  lay_out_frame(*app_);
  EXPECT_EQ(ImGui::GetCurrentContext()->ErrorCountCurrentFrame, 0)
      << "Dear ImGui was used wrongly, and says so in the window";
  ImGuiTestEngine_PostSwap(tests_);
  ++frames_;
  const double end = now();
  if (last_end_ > 0) longest_gap_ = std::max(longest_gap_, end - last_end_);
  last_end_ = end;
}

void UiHarness::resize(float width, float height) {
  ImGui::GetIO().DisplaySize = {width, height};
  app_->set_window_size(static_cast<uint32_t>(width), static_cast<uint32_t>(height));
}

void UiHarness::reset_gap() {
  last_end_ = longest_gap_ = 0;
}

bool UiHarness::run(std::function<void(ImGuiTestContext*)> actions) {
  return run_test(tests_, std::move(actions), [this] { frame(); });
}

}  // namespace canopy::test
