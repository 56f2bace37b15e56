#pragma once
// The actions as lists on the screen: the command palette, in which one types, and the help of shortcuts.

#include <string>
#include <string_view>
#include <vector>

#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

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
