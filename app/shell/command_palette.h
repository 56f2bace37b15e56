#pragma once
// The list of actions on the screen: as a palette to be typed into, and as the help of keys.

#include <string>
#include <string_view>
#include <vector>

#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

/// Every action by name: typed, chosen with the arrow keys, run with Enter. Over the panels, not in their way.
class CommandPalette {
 public:
  /// Panels the window has, by name; each can be closed and opened.
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

/// How well a line of the palette answers what was typed; 0: not at all. Words of the query may come in any order, each
/// at the start of a word; failing that, its letters in order.
int palette_match(std::string_view query, std::string_view line);

/// The list of shortcuts, above the status bar at the right. Not a modal: work goes on beside it.
void draw_help(CommandSink& sink);

}  // namespace canopy::app
