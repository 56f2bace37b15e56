#pragma once

#include "app/panels/panel.h"
#include "app/tree/tree_canvas.h"

namespace canopy::app {

/// The panel of the shown round's draft tree: a line of figures above, the tree below.
class TreePanel final : public Panel {
 public:
  const char* name() const override { return "Tree"; }
  void draw(const ViewModel& view, CommandSink& sink) override;

  const TreeCanvas& canvas() const { return canvas_; }

 private:
  void draw_header(const RoundsState& rounds, ImVec2 pos, float width);
  void draw_tools(ImVec2 pos, float width);
  void draw_footer(ImVec2 pos, float width) const;
  void draw_empty(const ViewModel& view, ImVec2 pos, ImVec2 size, CommandSink& sink) const;

  TreeCanvas canvas_;
};

}  // namespace canopy::app
