#include "app/tree/tree_geometry.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace canopy::app {
namespace {

constexpr std::array<float, 6> kFrom = {0, 2, 5, 14, 34, 40};  // least row height, in pixels at 100%, of each Detail
constexpr float kSlack = 0.05f;  // share of a border's value by which the level changes later, in either direction

using namespace tree_design;

constexpr float roomy_row = 34;  // height at 100% above which text grows

/// Scale of nodes and their text. The text grows in whole pixels, so that few glyph sizes are needed.
float node_scale_for(float row_height) {
  constexpr float kSize = 12;  // of a label at 100%
  if (row_height < 20) return (kSize - 1) / kSize;
  const float grown = std::clamp((row_height - roomy_row) / 5, 0.0f, 3.0f);
  return (kSize + std::floor(grown)) / kSize;
}

class Arrangement {
 public:
  Arrangement(const TreeScene& scene, const TreeZoom& zoom)
      : tree_(scene.tree),
        rows_(scene.rows),
        pinned_(scene.pinned),
        label_(scene.label_width),
        canvas_(scene.canvas),
        zoom_(zoom) {}

  TreeGeometry run(std::optional<Detail> before) {
    choose_row_height(before);
    place_at_this_height();
    if (zoom_.fit && g_.columns.tight && g_.row_height > px(roomy_row)) {
      // Where labels are cut, the width goes to whole labels before larger letters.
      g_.fit_row_height = g_.row_height = px(roomy_row);
      g_.detail = detail_for(roomy_row, before);
      place_at_this_height();
    }
    place_nodes();
    if (g_.detail == Detail::folded) place_wedges();
    if (!has_pills(g_.detail)) place_labels();
    measure_bounds();
    return std::move(g_);
  }

 private:
  float px(float length) const { return length * canvas_.scale; }
  float room_y() const { return std::max(px(1), canvas_.height - px(top) - px(bottom)); }
  float room_x() const { return std::max(px(1), canvas_.width - px(side) * 2); }

  /// Room in pixels for labels along a straight path: the rows below it move down by that much.
  float band() const { return pinned_ ? px(label_band) : 0; }

  void choose_row_height(std::optional<Detail> before) {
    const float count = static_cast<float>(rows_.count);
    float height = std::min(px(tallest_row), room_y() / count);
    if (height < px(least_row_height(Detail::pills))) height = std::max(0.0f, room_y() - band()) / count;
    g_.fit_row_height = height;
    g_.row_height = zoom_.fit ? height : std::max(px(zoom_.row_height), std::min(height, px(0.5f)));
    g_.detail = detail_for(g_.row_height / canvas_.scale, before);
    band_ = has_pills(g_.detail) ? 0 : band();
  }

  /// Width of all columns. The closer the view is, the more room labels get that the whole tree had no room for.
  float columns_room(std::span<const ColumnNeed> needs) const {
    float natural = px(gap) * g_.node_scale * static_cast<float>(needs.size() - 1);
    for (const ColumnNeed& need : needs)
      natural += std::max({need.label[0], need.label[1], need.label[2]}) + need.around;
    if (zoom_.fit || natural <= room_x()) return room_x();
    constexpr float kAllAt = 0.5f;  // zoom, from fitting to twice that, at which all labels have their full room
    const float from = std::min(g_.fit_row_height, px(roomy_row));
    const float closer = std::clamp((g_.row_height / from - 1) / kAllAt, 0.0f, 1.0f);
    return room_x() + (natural - room_x()) * closer;
  }

  void place_at_this_height() {
    g_.node_scale = node_scale_for(g_.row_height / canvas_.scale);
    g_.pill_height = std::min(px(pill_height) * g_.node_scale, g_.row_height - 1.5f * canvas_.scale);
    place_columns_for_detail();
  }

  void place_columns_for_detail() {
    const bool pills = has_pills(g_.detail);
    std::vector<ColumnNeed> needs(size_t{tree_.depth} + 1);
    float around = pills ? px(pad_left + pad_right) * g_.node_scale : px(6);
    if (g_.detail == Detail::full) around += px(figure) * g_.node_scale;
    for (ColumnNeed& need : needs) need.around = around;
    for (uint32_t i = 0; i < tree_.size(); ++i) {
      const NodeFate fate = tree_.nodes[i].fate;
      const size_t claim = fate == NodeFate::not_reached ? 2 : fate == NodeFate::rejected ? 1 : 0;
      if (!pills && claim > 0) continue;
      float& need = needs[tree_.nodes[i].depth].label[claim];
      need = std::max(need, label_[i] * g_.node_scale);
    }
    ColumnRoom room;
    room.width = columns_room(needs);
    room.gap = pills ? px(gap) * g_.node_scale : px(6);
    room.tight_gap = pills ? px(10) : px(6);
    room.shortest = pills ? px(18) : 0;
    g_.columns = place_columns(needs, room);
  }

  void place_nodes() {
    const float content = static_cast<float>(rows_.count) * g_.row_height + band_;
    const float root_row = static_cast<float>(rows_.row[0]);
    float root_y = px(top) + (room_y() - content) * 0.5f + (root_row + 0.5f) * g_.row_height;
    if (g_.detail == Detail::folded) root_y = px(top) + room_y() * 0.5f;
    if (!zoom_.fit) root_y = px(zoom_.root.y);
    g_.left = zoom_.fit ? px(side) : px(zoom_.root.x);
    g_.nodes.resize(tree_.size());
    for (uint32_t i = 0; i < tree_.size(); ++i) {
      const uint32_t depth = tree_.nodes[i].depth;
      NodeBox& box = g_.nodes[i];
      const float rows_below = static_cast<float>(rows_.row[i]) - root_row;
      box.y = root_y + rows_below * g_.row_height + (rows_below > 0 ? band_ : 0);
      box.x = g_.left + g_.columns.x[depth];
      if (has_pills(g_.detail)) {
        size_pill(i, box);
      } else {
        box.x += g_.columns.width[depth] * 0.5f;
        box.folded = g_.detail == Detail::folded && !tree_.on_path(i);
      }
      if (g_.detail == Detail::folded) box.y = root_y;
    }
  }

  void size_pill(uint32_t node, NodeBox& box) const {
    const NodeFate fate = tree_.nodes[node].fate;
    const size_t claim = fate == NodeFate::not_reached ? 2 : fate == NodeFate::rejected ? 1 : 0;
    box.label_room = std::min(label_[node] * g_.node_scale, g_.columns.label_room[claim]);
    box.width = box.label_room + px(pad_left + pad_right) * g_.node_scale;
    const bool drafted = fate != NodeFate::root && fate != NodeFate::bonus;
    if (g_.detail == Detail::full && drafted) box.width += px(figure) * g_.node_scale;
  }

  /// Places wedges above and below the path. Where columns are narrow, neighbours get different distances from it.
  void place_wedges() {
    constexpr float kAhead = 28, kAbove = 44, kBelow = 60, kStep = 32, kLabel = 46, kLine = 13;
    g_.wedges = fold_rejected(tree_);
    const float step = g_.columns.x.size() > 1 ? g_.columns.x[1] - g_.columns.x[0] : px(100);
    const int turns = std::clamp(static_cast<int>(std::ceil(px(78) / std::max(step, px(1)))), 1, 3);
    std::vector<TreeRect> taken;
    for (const TreeWedge& wedge : g_.wedges) {
      const NodeBox& from = g_.nodes[wedge.parent];
      const float away = kStep * static_cast<float>(tree_.nodes[wedge.parent].depth % static_cast<uint32_t>(turns));
      const float log = std::log2(static_cast<float>(wedge.nodes) + 1);
      WedgeBox box;
      box.tip = {from.x + px(kAhead), from.y + (wedge.likelier ? -px(kAbove + away) : px(kBelow + away))};
      box.width = px(8 + 1.2f * log);
      box.reach = px(3 + log);
      box.label = {box.tip.x + box.width + px(4), box.tip.y - px(kLine), 0, box.tip.y + px(kLine)};
      box.label.x1 = box.label.x0 + px(kLabel);
      box.labelled = claim_room(taken, box.label);
      g_.wedge_boxes.push_back(box);
    }
  }

  static bool claim_room(std::vector<TreeRect>& taken, const TreeRect& wanted) {
    for (const TreeRect& rect : taken)
      if (rect.overlaps(wanted)) return false;
    taken.push_back(wanted);
    return true;
  }

  /// Places labels along the path, the two ends first. A label without room is left out and shown only on pointing.
  void place_labels() {
    constexpr float kBelow = 6, kHeight = 16;
    std::vector<TreeRect> taken;
    std::vector<uint32_t> order = {tree_.path.back(), tree_.path.front()};
    order.insert(order.end(), tree_.path.begin(), tree_.path.end());
    for (size_t i = 0; i < order.size(); ++i) {
      if (i >= 2 && (order[i] == order[0] || order[i] == order[1])) continue;
      if (i == 1 && order[1] == order[0]) continue;
      const NodeBox& box = g_.nodes[order[i]];
      const float half = std::min(label_[order[i]] * g_.node_scale, g_.columns.label_room[0]) * 0.5f + px(2);
      const TreeRect rect = {box.x - half, box.y + px(kBelow), box.x + half, box.y + px(kBelow + kHeight)};
      if (claim_room(taken, rect)) g_.labels.push_back({order[i], rect});
    }
  }

  void measure_bounds() {
    TreeRect& b = g_.bounds;
    const float half = std::max(g_.pill_height * 0.5f, px(6));
    b = {g_.nodes[0].x, g_.nodes[0].y - half, g_.nodes[0].x, g_.nodes[0].y + half};
    const auto add = [&](float x0, float y0, float x1, float y1) {
      b = {std::min(b.x0, x0), std::min(b.y0, y0), std::max(b.x1, x1), std::max(b.y1, y1)};
    };
    for (const NodeBox& box : g_.nodes) add(box.x, box.y - half, box.x + box.width, box.y + half);
    for (const WedgeBox& w : g_.wedge_boxes) add(w.tip.x, w.tip.y - w.reach, w.label.x1, w.tip.y + w.reach);
  }

  const TreeModel& tree_;
  const TreeRows& rows_;
  bool pinned_;
  std::span<const float> label_;
  CanvasSize canvas_;
  TreeZoom zoom_;
  float band_ = 0;
  TreeGeometry g_;
};

/// Turns an x position into column + share of the way to the next column, which stays right when columns grow.
float column_at(const TreeColumns& columns, float x) {
  const size_t last = columns.x.size() - 1;
  size_t i = 0;
  while (i < last && columns.x[i + 1] <= x) ++i;
  const float length = i < last ? columns.x[i + 1] - columns.x[i] : std::max(1.0f, columns.width[i]);
  return static_cast<float>(i) + (x - columns.x[i]) / length;
}

float offset_of(const TreeColumns& columns, float column) {
  const size_t last = columns.x.size() - 1;
  const size_t i = std::min(static_cast<size_t>(std::max(0.0f, column)), last);
  const float length = i < last ? columns.x[i + 1] - columns.x[i] : std::max(1.0f, columns.width[i]);
  return columns.x[i] + (column - static_cast<float>(i)) * length;
}

/// Height between the path and the rows below it, in which the labels of the path stand.
float band_of(const TreeScene& scene, const TreeGeometry& g) {
  for (uint32_t i = 1; i < scene.tree.size(); ++i) {
    const int32_t below = scene.rows.row[i] - scene.rows.row[0];
    if (below > 0 && !g.nodes[i].folded) return g.nodes[i].y - g.nodes[0].y - static_cast<float>(below) * g.row_height;
  }
  return 0;
}

}  // namespace

float least_row_height(Detail detail) {
  return kFrom[static_cast<size_t>(detail)];
}

Detail detail_for(float row_height, std::optional<Detail> before) {
  size_t level = 0;
  for (size_t next = 1; next < kFrom.size(); ++next) {
    float border = kFrom[next];
    if (before) border *= next <= static_cast<size_t>(*before) ? 1 - kSlack : 1 + kSlack;
    if (row_height >= border) level = next;
  }
  return static_cast<Detail>(level);
}

bool TreeGeometry::inside(const CanvasSize& canvas) const {
  constexpr float kSlack = 1;
  return bounds.x0 >= -kSlack && bounds.y0 >= -kSlack && bounds.x1 <= canvas.width + kSlack &&
         bounds.y1 <= canvas.height + kSlack;
}

TreeGeometry arrange(const TreeScene& scene, const TreeZoom& zoom, std::optional<Detail> before) {
  return Arrangement(scene, zoom).run(before);
}

std::optional<uint32_t> node_at(const TreeGeometry& g, TreePoint point, float scale) {
  const float reach = 10 * scale;
  std::optional<uint32_t> best;
  float nearest = reach * reach;
  for (uint32_t i = 0; i < g.nodes.size(); ++i) {
    const NodeBox& box = g.nodes[i];
    if (box.folded) continue;
    const float badge = g.detail >= Detail::pills ? tree_design::badge * scale : 0;
    const float dx = std::max({box.x - badge - point.x, 0.0f, point.x - box.x - box.width});
    const float half = has_pills(g.detail) ? g.pill_height * 0.5f : 0;
    const float dy = std::max({box.y - half - point.y, 0.0f, point.y - box.y - half});
    const float limit = has_pills(g.detail) ? std::max(0.0f, reach - half) : reach;
    if (dx > (has_pills(g.detail) ? 0 : reach) || dy > limit) continue;
    const float away = dx * dx + dy * dy;
    if (away < nearest || (away == nearest && !best)) {
      nearest = away;
      best = i;
    }
  }
  return best;
}

TreePoint centre_of(const TreeGeometry& g, uint32_t node) {
  return {g.nodes[node].x + g.nodes[node].width * 0.5f, g.nodes[node].y};
}

TreeZoom zoomed_at(const TreeScene& scene, const TreeGeometry& now, TreePoint pointer, float factor) {
  const float scale = scene.canvas.scale;
  TreeZoom zoom;
  zoom.fit = false;
  zoom.row_height = std::min(now.row_height * factor / scale, largest_row);
  if (factor < 1 && zoom.row_height * scale <= now.fit_row_height) return {};
  const float grown = zoom.row_height * scale / now.row_height;
  const TreeGeometry next = arrange(scene, zoom, now.detail);
  const float below = pointer.y - now.nodes[0].y, band = band_of(scene, now);
  const float rows_below = below > 0 ? std::max(0.0f, below - band) : below;
  zoom.root.y = (pointer.y - rows_below * grown - (below > band ? band_of(scene, next) : 0)) / scale;
  const float column = column_at(now.columns, pointer.x - now.left);
  zoom.root.x = (pointer.x - offset_of(next.columns, column)) / scale;
  return zoom;
}

TreeZoom centred_on(const TreeScene& scene, const TreeGeometry& now, uint32_t node, float least_row) {
  const float scale = scene.canvas.scale;
  TreeZoom zoom;
  zoom.fit = false;
  zoom.row_height = std::max(now.row_height / scale, least_row);
  const TreeGeometry there = arrange(scene, zoom, now.detail);
  const TreePoint at = centre_of(there, node);
  zoom.root.x = (scene.canvas.width * 0.5f - (at.x - there.left)) / scale;
  zoom.root.y = (scene.canvas.height * 0.5f - (at.y - there.nodes[0].y)) / scale;
  return zoom;
}

TreeZoom panned(const TreeScene& scene, const TreeGeometry& now, TreePoint by) {
  const float scale = scene.canvas.scale, kept = 48 * scale;
  const TreeRect& b = now.bounds;
  const float x = std::clamp(by.x, kept - b.x1, std::max(kept - b.x1, scene.canvas.width - kept - b.x0));
  const float y = std::clamp(by.y, kept - b.y1, std::max(kept - b.y1, scene.canvas.height - kept - b.y0));
  return {false, now.row_height / scale, {(now.left + x) / scale, (now.nodes[0].y + y) / scale}};
}

}  // namespace canopy::app
