#pragma once
// Points and rectangles of a canvas, in pixels; y grows downward.

namespace canopy::app {

struct TreePoint {
  float x = 0, y = 0;
  bool operator==(const TreePoint&) const = default;
};

struct TreeRect {
  float x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  bool contains(TreePoint p) const { return p.x >= x0 && p.x <= x1 && p.y >= y0 && p.y <= y1; }
  bool overlaps(const TreeRect& o) const { return x0 < o.x1 && o.x0 < x1 && y0 < o.y1 && o.y0 < y1; }
};

}  // namespace canopy::app
