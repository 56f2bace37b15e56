#pragma once

#include <imgui.h>

#include <string>

#include "app/chat/prompt_menu.h"
#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

/// The box in which messages are written. Enter sends, Shift+Enter begins a new line. While a reply is being written
/// its button stops the reply.
class Composer {
 public:
  /// Height in pixels at this width; grows with the text up to a limit.
  float height(const ViewModel& view, float width) const;
  void draw(const ViewModel& view, CommandSink& sink, float width);
  void focus() { focus_next_ = true; }
  /// Whether it has the keyboard focus.
  bool active() const { return active_; }
  /// Whether some of its text is selected.
  bool has_selection() const { return has_selection_; }

 private:
  /// Whether there is only room for one line and, beside it, the button.
  bool tiny() const;
  float text_height_for(float width) const;
  void draw_input(ImVec2 pos, ImVec2 size);
  /// Draws the button of the sampling settings and its menu. Returns the button's width in pixels.
  float draw_sampling(const ViewModel& view, CommandSink& sink, ImVec2 pos, float room);
  /// Draws thinking, attaching and the meter of the context. Returns their width in pixels.
  float draw_tools(const ViewModel& view, CommandSink& sink, ImVec2 pos, float width);
  void draw_attach_menu(CommandSink& sink, ImVec2 corner);
  bool can_send_now(const ViewModel& view) const;
  void draw_row(const ViewModel& view, CommandSink& sink, ImVec2 pos, float width, bool only_button);
  void send(const ViewModel& view, CommandSink& sink);

  std::string text_;
  std::string attach_path_;  // that is typed, where there is no file dialog
  PromptMenu prompts_;
  float top_ = 0;  // upper edge of the box on the screen
  bool active_ = false, has_selection_ = false;
  bool entered_ = false;  // Enter was pressed in the text box in this frame
  bool focus_next_ = true;
};

}  // namespace canopy::app
