#pragma once

#include <imgui.h>

#include <string>

#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

/// The box a message is written in. Enter sends, Shift+Enter starts a line; while a reply is written its button stops
/// it.
class Composer {
 public:
  /// The height it needs at this width; grows with its text up to a limit.
  float height(float width) const;
  void draw(const ViewModel& view, CommandSink& sink, float width);
  void focus() { focus_next_ = true; }
  /// Whether it has the keyboard.
  bool active() const { return active_; }
  /// Whether a part of its own text is selected.
  bool has_selection() const { return has_selection_; }

 private:
  float text_height_for(float width) const;
  void draw_input(ImVec2 pos, ImVec2 size);
  /// The button of the sampling settings and its menu. Returns its width.
  float draw_sampling(const ViewModel& view, CommandSink& sink, ImVec2 pos, float room);
  void draw_row(const ViewModel& view, CommandSink& sink, ImVec2 pos, float width);
  void send(const ViewModel& view, CommandSink& sink);

  std::string text_;
  float top_ = 0;  // of the box, on the screen
  bool active_ = false, has_selection_ = false;
  bool entered_ = false;  // Enter was pressed in the input this frame
  bool focus_next_ = true;
};

}  // namespace canopy::app
