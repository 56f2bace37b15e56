#pragma once
// The box in which messages are written, with its files, the menu of sampling and system prompt, and the meter of the
// context.

#include <imgui.h>

#include <string>
#include <string_view>

#include "app/state/conversation.h"
#include "app/state/view_model.h"
#include "app/ui/dialogs.h"

namespace canopy::app {

// Files that go with a question: as lines in its message, and as chips in the composer.

/// "main.cpp, 1,204 tokens"; without tokens that are not counted yet.
std::string attached_words(const Attachment& attachment);

/// Height of the lines of a message's files in pixels; 0 without any.
float attached_height(const Message& message);
/// Width of the widest of them in pixels, at most `room`.
float attached_width(const Message& message, float room);
void draw_attached(const Message& message, ImVec2 at, float room);

/// Height in pixels of the chips of files that go with the next question, and of what is wrong: a sentence or none.
float chips_height(const ViewModel& view, float width, const std::string& problem);
/// Draws them, each with a button that removes it.
void draw_chips(const ViewModel& view, CommandSink& sink, ImVec2 at, float width, const std::string& problem);

/// The part of the chat's settings for its system prompt: its text, and the prompts that are kept under names.
class PromptMenu {
 public:
  /// Draws at the cursor, `width` pixels wide.
  void draw(const ViewModel& view, CommandSink& sink, float width);

 private:
  void draw_choice(const ViewModel& view, CommandSink& sink, float width);
  void draw_keeping(const ViewModel& view, CommandSink& sink, float width);

  std::string name_;   // that is typed
  std::string known_;  // name of the prompt that the chat had in the last frame
};

/// The box in which messages are written. Enter sends, Shift+Enter begins a new line. While a reply is being written
/// its button stops the reply. What is typed while no other box has the keyboard is typed here.
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
  /// What is wrong with the next question, as a sentence; empty where nothing is.
  std::string problem(const ViewModel& view) const;
  std::string_view reading() const;
  float reading_height(float width) const;
  /// Height of what stands above the text, in a box of its own that scrolls where there is little room; and all of it.
  float above_height(const ViewModel& view, float width) const;
  float whole_above(const ViewModel& view, float width) const;
  void draw_above(const ViewModel& view, CommandSink& sink, ImVec2 at, float width);
  void draw_prompt_chip(const ViewModel& view, ImVec2 at, float width);
  void take_letters(bool popup);
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
  PathBrowser browser_;      // for that path
  PromptMenu prompts_;
  float top_ = 0;  // upper edge of the box on the screen
  bool active_ = false, has_selection_ = false;
  bool entered_ = false;  // Enter was pressed in the text box in this frame
  bool focus_next_ = true;
  bool taking_ = false;     // letters were taken, and the box does not have the keyboard yet
  bool menu_next_ = false;  // the menu with the system prompt is to be opened
  bool refused_ = false;    // it was not sent, because of a file that was not attached
};

}  // namespace canopy::app
