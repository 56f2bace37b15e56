#pragma once

#include <string>
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

}  // namespace canopy::app
