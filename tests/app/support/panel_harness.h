#pragma once
// Runs one panel under Dear ImGui's Test Engine.

#include <functional>

#include "tests/app/support/panel_context.h"
#include "tests/app/support/test_engine.h"

namespace canopy::test {

class PanelHarness {
 public:
  explicit PanelHarness(app::Panel& panel, float width = 868, float height = 524);
  ~PanelHarness();
  PanelHarness(const PanelHarness&) = delete;
  PanelHarness& operator=(const PanelHarness&) = delete;

  app::ViewModel& view() { return context_->view; }
  PanelContext& context() { return *context_; }

  void frame();
  void frames(int count);
  /// Runs actions as a user would; true when every check in them passed.
  bool run(std::function<void(ImGuiTestContext*)> actions);
  size_t vertices() const { return vertices_; }  // of the last frame

 private:
  std::unique_ptr<PanelContext> context_;
  ImGuiTestEngine* tests_ = nullptr;
  size_t vertices_ = 0;
};

}  // namespace canopy::test
