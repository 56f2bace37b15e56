#pragma once
// The tuft that the mouse is over, unfolded as a card over its neighbours: its likeliest words and the number of the
// others (look/watch.md, "Bundle").

#include <optional>

#include "app/tree/tree_paint.h"

namespace canopy::app {

struct OpenTuft {
  std::optional<uint32_t> open;  // index in TreeGeometry::tufts
  bool pinned = false;           // it stays open without the mouse

  /// Follows the mouse. at: where it is on the canvas, none when it is elsewhere. A tuft opens when the mouse has been
  /// over it for 120 ms, and closes when it has left it and its card. now: seconds.
  void point(const TreePaint& paint, std::optional<TreePoint> at, double now, bool reduced_motion);
  /// Pins the tuft at a point, or lets go of the one that is pinned; false where there is nothing to do.
  bool click(const TreeGeometry& geometry, TreePoint at);
  /// Whether a point is on the card.
  bool covers(TreePoint at) const { return open && card_.contains(at); }
  /// Closes the card; false if none is open.
  bool close();
  void draw(ImDrawList* list, const TreePaint& paint, double now) const;

 private:
  std::optional<uint32_t> pointed_;
  double since_ = 0;      // when the mouse came over it
  double opened_ = 0;     // when the card opened
  bool at_once_ = false;  // without motion
  TreeRect card_;
};

}  // namespace canopy::app
