#include "tests/app/ui_harness.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace canopy::test {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Stands in for a renderer: accepts every texture request.
void accept_textures() {
  for (ImTextureData* texture : ImGui::GetPlatformIO().Textures) {
    if (texture->Status == ImTextureStatus_WantCreate) texture->SetTexID(1);
    if (texture->Status == ImTextureStatus_WantDestroy) {
      texture->SetTexID(ImTextureID_Invalid);
      texture->SetStatus(ImTextureStatus_Destroyed);
    } else {
      texture->SetStatus(ImTextureStatus_OK);
    }
  }
}

}  // namespace

UiHarness::UiHarness(app::AppSettings settings, float width, float height)
    : context_(std::make_unique<app::ImguiContext>()) {
  settings.system_fonts = false;
  engine_.devices_ = some_devices();
  ImGuiIO& io = ImGui::GetIO();
  io.DisplaySize = {width, height};
  io.BackendFlags |= ImGuiBackendFlags_RendererHasTextures;
  app_ = std::make_unique<app::App>(engine_, settings);
  tests_ = ImGuiTestEngine_CreateContext();
  ImGuiTestEngineIO& test_io = ImGuiTestEngine_GetIO(tests_);
  test_io.ConfigRunSpeed = ImGuiTestRunSpeed_Fast;
  test_io.ConfigVerboseLevel = ImGuiTestVerboseLevel_Silent;
  test_io.ConfigVerboseLevelOnError = ImGuiTestVerboseLevel_Info;
  test_io.ConfigLogToTTY = true;
  test_io.ConfigSavedSettings = false;
  test_io.ConfigNoThrottle = true;
  // Time here is counted in frames; ctest has the clock.
  test_io.ConfigWatchdogWarning = test_io.ConfigWatchdogKillTest = 1e6f;
  ImGuiTestEngine_Start(tests_, ImGui::GetCurrentContext());
}

UiHarness::~UiHarness() {
  ImGuiTestEngine_Stop(tests_);
  app_.reset();
  for (ImTextureData* texture : ImGui::GetPlatformIO().Textures) {
    texture->SetTexID(ImTextureID_Invalid);
    texture->SetStatus(ImTextureStatus_Destroyed);
  }
  context_.reset();
  ImGuiTestEngine_DestroyContext(tests_);
}

void UiHarness::frame() {
  ImGui::GetIO().DeltaTime = 1.0f / 60;
  app_->pump();
  app_->prepare_frame();
  ImGui::NewFrame();
  app_->draw();
  ImGui::Render();
  accept_textures();
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
  ImGuiTest* test = ImGuiTestEngine_RegisterTest(tests_, "canopy", "actions", __FILE__, __LINE__);
  test->TestFunc = std::move(actions);
  ImGuiTestEngine_QueueTest(tests_, test);
  while (!ImGuiTestEngine_IsTestQueueEmpty(tests_)) frame();
  const bool passed = test->Output.Status == ImGuiTestStatus_Success;
  frame();
  ImGuiTestEngine_UnregisterTest(tests_, test);
  return passed;
}

}  // namespace canopy::test
