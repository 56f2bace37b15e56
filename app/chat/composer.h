#pragma once

#include <imgui.h>

#include <string>

#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

/// How the next reply is asked for, in as many words as fit: "Temperature 0.5, seed 0, system prompt off".
std::string sampling_words(const ViewModel& view, float room);

/// The popup that changes it. Open it with ImGui::OpenPopup(kSamplingMenu); its lower left corner goes to `corner`.
inline constexpr const char* kSamplingMenu = "Sampling menu";
void draw_sampling_menu(const ViewModel& view, CommandSink& sink, ImVec2 corner);

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
