#pragma once
// "Report this device": the box that measures the device, shows what was found and saves it as a file to send.

#include <string>

#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

class ReportBox {
 public:
  /// Draws the box while ReportState::box_shown is set. It may be closed while it measures, and opened again.
  void draw(const ViewModel& view, CommandSink& sink);

 private:
  void draw_measuring(const ViewModel& view, CommandSink& sink, float width);
  void draw_start(const ViewModel& view, CommandSink& sink, float width);
  void draw_saving(const ViewModel& view, CommandSink& sink, float width);
  void suggest(const ViewModel& view);

  std::string path_, suggested_;
  bool open_ = false;
};

}  // namespace canopy::app
