#pragma once
// "Share": the box that makes a file for others of the shown round or of the whole recording.

#include <string>

#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

class ShareBox {
 public:
  /// Draws the box while ShareState::box_shown is set. It may be closed while a file is made, and opened again.
  void draw(const ViewModel& view, CommandSink& sink);

 private:
  void draw_kinds(const ViewModel& view, CommandSink& sink, float width);
  void draw_saving(const ViewModel& view, CommandSink& sink, float width);
  void suggest(const ViewModel& view);

  std::string path_, suggested_;
  bool open_ = false;
};

}  // namespace canopy::app
