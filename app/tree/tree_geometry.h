#pragma once
// Positions of a tree's nodes, labels and edges in pixels of a canvas, and the level of detail. Pure: drawing,
// pointing, the small map and tests all use it.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "app/tree/tree_layout.h"
#include "app/tree/tree_model.h"

namespace canopy::app {

/// How much of a node is drawn. It depends on the height of a row (look.md, section 6), so that what is drawn can be
/// read.
enum class Detail : uint8_t {
  folded,   // under 2 px: the accepted path; rejected subtrees as wedges
  dots,     // from 2 px: badges without labels
  badges,   // from 5 px: badges, and labels along the path
  pills,    // from 14 px: a pill for each node, with its label and the bar of q
  figures,  // from 34 px: q below accepted and rejected nodes
  full,     // from 40 px: q inside each node
};

/// The level for a row height in pixels at 100%. `before` is the level so far: it changes only when the height is
/// clearly beyond the border, so that a view at a border does not flicker.
Detail detail_for(float row_height, std::optional<Detail> before = std::nullopt);

/// The least row height, in pixels at 100%, at which this level is drawn.
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

/// Which part of a tree is visible, and at which size.
struct TreeZoom {
  bool fit = true;       // show all of it; the other fields are ignored
  float row_height = 0;  // pixels at 100%
  TreePoint root;        // position of the root on the canvas, in pixels at 100%
};

struct CanvasSize {
  float width = 0, height = 0;  // pixels
  float scale = 1;              // pixels for each unit of the design
};

/// A node in pixels on the canvas. With pills, x is the left edge, where the badge is; without pills it is the middle.
struct NodeBox {
  float x = 0, y = 0;
  float width = 0;       // of the pill; 0 without
  float label_room = 0;  // for the label in the pill
  bool folded = false;   // inside a wedge, so not drawn
};

struct WedgeBox {
  TreePoint tip;
  float width = 0, reach = 0;  // reach: half its height, to either side of the middle
  TreeRect label;              // its two lines of text, to the right
  bool labelled = true;
};

/// A label below a badge, at levels without pills.
struct LabelBox {
  uint32_t node = 0;
  TreeRect rect;
};

struct TreeGeometry {
  Detail detail = Detail::full;
  float row_height = 0;      // pixels
  float fit_row_height = 0;  // pixels; the row height at which the whole tree fits
  float node_scale = 1;      // scale of pills and their text, besides the scale of the canvas
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

/// The input of arrange(): the tree and the canvas it is drawn on.
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
/// The middle of what is drawn for a node.
TreePoint centre_of(const TreeGeometry& geometry, uint32_t node);

/// The zoom after turning the wheel; the point under the pointer stays where it is. factor > 1 enlarges. Zooming out to
/// the whole tree sets `fit`.
TreeZoom zoomed_at(const TreeScene& scene, const TreeGeometry& now, TreePoint pointer, float factor);

/// The zoom that puts a node of `now` in the middle of the canvas, in the present size or, if that is larger, with rows
/// of least_row_height.
TreeZoom centred_on(const TreeScene& scene, const TreeGeometry& now, uint32_t node, float least_row_height);

/// The zoom after dragging by this many pixels; some of the tree stays visible.
TreeZoom panned(const TreeScene& scene, const TreeGeometry& now, TreePoint by);

}  // namespace canopy::app
