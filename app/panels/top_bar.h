#pragma once

#include <string>

#include "app/panels/panel.h"

namespace canopy::app {

/// Model and device at the left, scale and theme at the right. 48 px high.
class TopBar final : public Panel {
 public:
  const char* name() const override { return "Top bar"; }
  bool wanted(const ViewModel&) const override { return true; }
  void draw(const ViewModel& view, CommandSink& sink) override;

 private:
  void draw_model_menu(const ViewModel& view, CommandSink& sink);
  void draw_device_menu(const ViewModel& view, CommandSink& sink);

  std::string path_;  // of the path box in the model menu
};

}  // namespace canopy::app
