#pragma once
// The panel of the shown round's draft tree, and the tree of Watch with its sentence and its legend.

#include <functional>

#include "app/tree/tree_canvas.h"
#include "app/ui/panel.h"

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

/// The tree of Watch with the sentence above it and the legend below it.
class WatchTree {
 public:
  /// Places in pixels from the window's upper left corner: x, y, width, height. Without a size a part is not drawn.
  struct Parts {
    ImVec4 numbers, caption, tree, legend, budget;
    bool subtitles = true;
  };

  const char* name() const { return "Watch tree"; }
  void draw(const ViewModel& view, CommandSink& sink, const Parts& parts);
  const TreeCanvas& canvas() const { return canvas_; }

 private:
  void draw_caption(const RoundsState& rounds, CommandSink& sink, const Parts& parts);
  void draw_sentence(ImVec2 left_middle, float room) const;
  void draw_phase(Phase phase, const ImVec4& caption, const ImVec4& canvas) const;
  void draw_legend(const RoundsState& rounds, ImVec2 pos, ImVec2 size) const;
  void draw_nothing(const ViewModel& view, ImVec2 pos, ImVec2 size, CommandSink& sink) const;

  TreeCanvas canvas_;
};

}  // namespace canopy::app
