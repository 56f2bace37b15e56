#pragma once
// A tree's rows and columns as pixels of a canvas: what is where, at which level of detail. Pure; drawing reads it, and
// so do pointing, the small map and tests.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "app/tree/tree_layout.h"
#include "app/tree/tree_model.h"

namespace canopy::app {

/// How much of a node is drawn, by the height of a row (look.md, section 6). Readability sets it, not speed.
enum class Detail : uint8_t {
  folded,   // under 2: the path; rejected subtrees are wedges
  dots,     // from 2: badges without labels
  badges,   // from 5: badges, labels along the path
  pills,    // from 14: every node in a pill with its label and the bar of q
  figures,  // from 34: q under accepted and rejected nodes, clear of the row below
  full,     // from 40: q inside every node
};

/// row_height: pixels at 100%. before: the level so far, which stays within 10% around a border, so that a view on the
/// border does not flicker.
Detail detail_for(float row_height, std::optional<Detail> before = std::nullopt);

/// The least height of a row at which a level is drawn.
float least_row_height(Detail detail);

inline bool has_pills(Detail detail) {
  return detail >= Detail::pills;
}

struct TreePoint {
  float x = 0, y = 0;
};

struct TreeRect {
  float x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  bool contains(TreePoint p) const { return p.x >= x0 && p.x <= x1 && p.y >= y0 && p.y <= y1; }
  bool overlaps(const TreeRect& o) const { return x0 < o.x1 && o.x0 < x1 && y0 < o.y1 && o.y0 < y1; }
};

/// Which part of a tree is in the view, and how large.
struct TreeZoom {
  bool fit = true;       // all of it; the rest is ignored
  float row_height = 0;  // pixels at 100%
  TreePoint root;        // of the root on the canvas, pixels at 100%
};

struct CanvasSize {
  float width = 0, height = 0;  // pixels
  float scale = 1;              // pixels for each unit of the design
};

/// In pixels on the canvas. With pills x is the left border, on which the badge sits; without it is the middle.
struct NodeBox {
  float x = 0, y = 0;
  float width = 0;       // of the pill; 0 without
  float label_room = 0;  // in the pill
  bool folded = false;   // inside a wedge: not drawn
};

struct WedgeBox {
  TreePoint tip;
  float width = 0, reach = 0;  // reach: to either side
  TreeRect label;              // its two lines, to the right
  bool labelled = true;
};

/// A label of its own, below its badge.
struct LabelBox {
  uint32_t node = 0;
  TreeRect rect;
};

struct TreeGeometry {
  Detail detail = Detail::full;
  float row_height = 0;      // pixels
  float fit_row_height = 0;  // pixels: what all of the tree would have
  float node_scale = 1;      // of pills and their text, times the canvas's scale
  float pill_height = 0;     // pixels
  TreeColumns columns;
  std::vector<NodeBox> nodes;
  std::vector<LabelBox> labels;   // of levels without pills; none overlaps another
  std::vector<TreeWedge> wedges;  // of the folded level
  std::vector<WedgeBox> wedge_boxes;
  TreeRect bounds;  // of everything

  float column_end(uint32_t depth) const { return columns.x[depth] + columns.width[depth] + left; }
  float left = 0;  // of the first column on the canvas
  /// Whether everything lies on a canvas of this size.
  bool inside(const CanvasSize& canvas) const;
};

/// The design's lengths at 100% (look.md, section 6).
namespace tree_design {
inline constexpr float pill_height = 21, pad_left = 12, pad_right = 7, badge = 6.5f, figure = 26, gap = 14;
inline constexpr float label_band = 22, top = 26, bottom = 14, side = 14, tallest_row = 44, largest_row = 64;
}  // namespace tree_design

/// What is drawn, and on what.
struct TreeScene {
  const TreeModel& tree;
  const TreeRows& rows;
  bool pinned = true;
  std::span<const float> label_width;  // [nodes] pixels on the canvas, of labels set in 12 px
  CanvasSize canvas;
};

TreeGeometry arrange(const TreeScene& scene, const TreeZoom& zoom, std::optional<Detail> before = std::nullopt);

/// The node under a point: its pill, made 20 px high where it is lower, or the nearest badge within 10 px.
std::optional<uint32_t> node_at(const TreeGeometry& geometry, TreePoint point, float scale);
/// The middle of what is drawn of a node.
TreePoint centre_of(const TreeGeometry& geometry, uint32_t node);

/// The zoom after turning the wheel: what is under the pointer stays there. factor > 1: closer. Out of the whole tree
/// leads back to all of it.
TreeZoom zoomed_at(const TreeScene& scene, const TreeGeometry& now, TreePoint pointer, float factor);

/// The zoom that shows a node of `now` in the middle of the canvas, no larger than it is.
TreeZoom centred_on(const TreeScene& scene, const TreeGeometry& now, uint32_t node, float least_row_height);

/// The zoom after dragging; some of the tree stays in the view.
TreeZoom panned(const TreeScene& scene, const TreeGeometry& now, TreePoint by);

}  // namespace canopy::app
