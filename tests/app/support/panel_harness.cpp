#include "tests/app/support/panel_harness.h"

#include <imgui.h>

#include <utility>

namespace canopy::test {

PanelHarness::PanelHarness(app::Panel& panel, float width, float height)
    : context_(std::make_unique<PanelContext>(panel, width, height)) {
  ImGui::GetIO().BackendFlags |= ImGuiBackendFlags_RendererHasTextures | ImGuiBackendFlags_RendererHasVtxOffset;
  tests_ = start_test_engine();
}

PanelHarness::~PanelHarness() {
  ImGuiTestEngine_Stop(tests_);
  drop_textures();
  context_.reset();
  ImGuiTestEngine_DestroyContext(tests_);
}

void PanelHarness::frame() {
  ImGui::GetIO().DeltaTime = 1.0f / 60;
  ImGui::NewFrame();
  context_->draw();
  ImGui::Render();
  accept_textures();
  vertices_ = static_cast<size_t>(ImGui::GetDrawData()->TotalVtxCount);
  ImGuiTestEngine_PostSwap(tests_);
  context_->fold();
}

void PanelHarness::frames(int count) {
  for (int i = 0; i < count; ++i) frame();
}

bool PanelHarness::run(std::function<void(ImGuiTestContext*)> actions) {
  return run_test(tests_, std::move(actions), [this] { frame(); });
}

}  // namespace canopy::test
