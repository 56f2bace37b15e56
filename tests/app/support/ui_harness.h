#pragma once
// Runs the whole application under Dear ImGui's Test Engine: without window and device, but with the real fonts and
// textures.

#include <imgui_te_context.h>
#include <imgui_te_engine.h>

#include <functional>
#include <memory>

#include "app/app.h"
#include "app/platform/imgui_context.h"
#include "tests/app/support/scripted_engine.h"
#include "tests/app/support/test_engine.h"

namespace canopy::test {

class UiHarness {
 public:
  /// devices: those of the machine.
  explicit UiHarness(app::AppSettings settings = {}, float width = 1280, float height = 800,
                     std::vector<DeviceChoice> devices = some_devices());
  ~UiHarness();
  UiHarness(const UiHarness&) = delete;
  UiHarness& operator=(const UiHarness&) = delete;

  ScriptedEngine& engine() { return engine_; }
  app::App& app() { return *app_; }
  void resize(float width, float height);
  const app::ViewModel& view() const { return app_->view(); }
  size_t frames() const { return frames_; }
  double longest_gap() const { return longest_gap_; }  // seconds between the ends of two frames
  void reset_gap();

  /// Runs actions as a user would; true when every check in them passed.
  bool run(std::function<void(ImGuiTestContext*)> actions);
  /// Draws one frame. Between frames, input may be put into ImGuiIO directly.
  void frame();

 private:
  ScriptedEngine engine_;
  std::unique_ptr<app::ImguiContext> context_;
  std::unique_ptr<app::App> app_;
  ImGuiTestEngine* tests_ = nullptr;
  size_t frames_ = 0;
  double last_end_ = 0, longest_gap_ = 0;
};

}  // namespace canopy::test
