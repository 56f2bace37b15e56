#pragma once

#include <imgui.h>

#include <string>

#include "app/ui_command.h"
#include "app/view_model.h"

namespace canopy::app {

/// The box a message is written in. Enter sends, Shift+Enter starts a line; while a reply is written its button stops
/// it.
class Composer {
 public:
  /// The height it needs at this width; grows with its text up to a limit.
  float height(float width) const;
  void draw(const ViewModel& view, CommandSink& sink, float width);
  void focus() { focus_next_ = true; }
  void set_text(std::string text) { text_ = std::move(text); }

 private:
  float text_height_for(float width) const;
  void draw_input(ImVec2 pos, ImVec2 size);
  void draw_row(const ViewModel& view, CommandSink& sink, ImVec2 pos, float width);
  void send(const ViewModel& view, CommandSink& sink);

  std::string text_;
  bool entered_ = false;  // Enter was pressed in the input this frame
  bool focus_next_ = true;
};

}  // namespace canopy::app
