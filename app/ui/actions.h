#pragma once
// All actions of keys and menus in one list, their shortcuts, and the two places that list them on the screen: the
// command palette, in which one types, and the help of shortcuts.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/state/view_model.h"

namespace canopy::app {

// Shortcuts, help and palette are made from the list. A new action is one line in actions.cpp; a test checks that no
// two have the same shortcut.

struct Action {
  const char* group;  // heading in help
  const char* name;   // "New chat"
  const char* keys;   // for the user: "Ctrl+N"; "" without a shortcut
  int chord;          // ImGuiKeyChord; 0 without one
  /// The command to post; nothing if the action is not possible now.
  std::optional<UiCommand> (*command)(const ViewModel& view);
};

std::span<const Action> actions();

/// Posts the commands of the shortcuts pressed in this frame, wherever the keyboard focus is. popup: a popup was open
/// when the last frame ended; then Esc closes that instead.
void handle_shortcuts(const ViewModel& view, bool popup, CommandSink& sink);

/// The command that shows or hides the list of chats in Watch. search: whoever asks by a key types there at once.
UiCommand switch_chat_list(const ViewModel& view, bool search);

/// The next larger (direction 1) or smaller (-1) scale, in the steps known from browsers: 0.9, 1, 1.1, 1.25 ...
float next_scale(float scale, int direction);

// The actions as lists on the screen: the command palette, in which one types, and the help of shortcuts.

/// The command palette: all actions by name, searched by typing, chosen with the arrow keys and run with Enter. Shown
/// above the panels.
class CommandPalette {
 public:
  /// names: those of the window's panels; each gets an action that opens or closes it.
  void set_panels(std::vector<std::string> names) { panels_ = std::move(names); }
  void draw(const ViewModel& view, CommandSink& sink);

 private:
  struct Line {
    std::string words;
    std::string keys;
    UiCommand command;
  };
  std::vector<Line> matching(const ViewModel& view) const;
  void draw_input();
  void draw_lines(const std::vector<Line>& lines, CommandSink& sink);
  void close(CommandSink& sink);

  std::vector<std::string> panels_;
  std::string query_;
  int chosen_ = 0;
  bool open_ = false, moved_ = false, entered_ = false;
};

/// How well a line of the palette matches what was typed; 0: not at all. The words of the query may come in any order,
/// each at the start of a word of the line; else the letters of the query must occur in their order.
int palette_match(std::string_view query, std::string_view line);

/// Draws the list of shortcuts above the status bar at the right. The window stays usable meanwhile.
void draw_help(CommandSink& sink);

}  // namespace canopy::app
