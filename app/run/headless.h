#pragma once

#include <memory>

#include "app/gfx/offscreen_target.h"
#include "app/look/imgui_context.h"
#include "app/run/app.h"

namespace canopy::app {

/// Draws the application into an image, without display and window system. Its clock advances by the same time in each
/// frame, so that equal states give equal pictures.
class Headless {
 public:
  Headless(EngineClient& engine, const AppSettings& settings, uint32_t width, uint32_t height, bool validate);

  App& app() { return *app_; }
  const UiDevice& device() const { return device_; }
  /// Draws one frame.
  Image frame();
  /// Draws frames until the layout no longer changes; returns the last one.
  Image settled_frame();

 private:
  ImguiContext context_;
  UiDevice device_;
  std::unique_ptr<App> app_;
  OffscreenTarget target_;
};

}  // namespace canopy::app
