#pragma once
// The menu of a column of Compare: how it decodes, and with what.

#include <cstddef>
#include <optional>
#include <string>

#include <imgui.h>

#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

class ColumnMenu {
 public:
  /// Opens it for that column, below a point.
  void open(const ViewModel& view, size_t column, ImVec2 at);
  /// Draws it while it is open.
  void draw(const ViewModel& view, CommandSink& sink);

 private:
  void draw_ways(ComparisonColumn& column, float width);
  void draw_subject(const ViewModel& view, ComparisonColumn& column, float width);
  void draw_ends(const ViewModel& view, CommandSink& sink, float width);

  size_t column_ = 0;
  bool opening_ = false;
  ImVec2 at_{};
  int budget_ = 16;
  std::string model_, drafter_, server_;  // as they are typed
};

}  // namespace canopy::app
