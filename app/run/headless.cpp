#include "app/run/headless.h"

namespace canopy::app {
namespace {

constexpr float kFrameSeconds = 1.0f / 60;
constexpr int kSettleFrames = 4;

}  // namespace

Headless::Headless(EngineClient& engine, const AppSettings& settings, uint32_t width, uint32_t height, bool validate)
    : device_({{}, validate, {}}), app_(std::make_unique<App>(engine, settings)), target_(device_, {width, height}) {
  ImGuiIO& io = ImGui::GetIO();
  io.DisplaySize = {static_cast<float>(width), static_cast<float>(height)};
  io.BackendPlatformName = "off-screen";
}

Image Headless::frame() {
  ImGui::GetIO().DeltaTime = kFrameSeconds;
  app_->prepare_frame();
  target_.new_frame();
  ImGui::NewFrame();
  app_->draw();
  ImGui::Render();
  return target_.render(ImGui::GetDrawData(), app_->background());
}

Image Headless::settled_frame() {
  app_->await_answers();
  for (int i = 1; i < kSettleFrames; ++i) frame();
  return frame();
}

}  // namespace canopy::app
