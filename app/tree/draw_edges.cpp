#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "app/tree/tree_paint.h"

namespace canopy::app {
namespace {

/// Width in pixels: 4 at path probability 1, 1 at 0.01 and below, so that the tree gets thinner towards its leaves.
float branch_width(double path) {
  return 1 + 3 * static_cast<float>(std::max(0.0, 1 + std::log10(std::max(path, 1e-9)) / 2));
}

struct Stroke {
  Colour colour;
  float width;  // pixels
  std::optional<Dash> dash;
};

class Edges {
 public:
  Edges(ImDrawList* list, const TreePaint& paint) : list_(list), p_(paint), g_(paint.geometry) {}

  void draw(NodeFate fate) {
    for (uint32_t node = 1; node < p_.tree.size(); ++node) {
      if (p_.shown_fate(node) != fate || g_.nodes[node].folded || p_.strength(node) <= 0) continue;
      edge(node, stroke_of(node, fate));
    }
  }

  /// Detail level `dots`: straight lines, one vertical line for all children of a node, as curves this close together
  /// could not be told apart.
  void trunks(NodeFate fate) {
    for (uint32_t parent = 0; parent < p_.tree.size(); ++parent) {
      const NodeBox& from = g_.nodes[parent];
      float top = from.y, bottom = from.y, strength = 0;
      Stroke stroke{};
      for (const uint32_t child : p_.tree.children(parent)) {
        if (p_.shown_fate(child) != fate || p_.strength(child) <= 0) continue;
        top = std::min(top, g_.nodes[child].y);
        bottom = std::max(bottom, g_.nodes[child].y);
        strength = std::max(strength, p_.strength(child));
        stroke = stroke_of(child, fate);
      }
      if (strength <= 0 || top == bottom) continue;
      const float x = trunk_x(from);
      if (p_.visible(x, top, x, bottom)) line({x, top}, {x, bottom}, stroke);
    }
  }

  /// Draws the path from the root to a node, one pixel wider than usual.
  void way_to(uint32_t node) {
    for (; node != 0; node = p_.tree.nodes[node].parent) {
      if (g_.nodes[node].folded || p_.strength(node) <= 0) continue;
      const NodeFate fate = p_.shown_fate(node);
      Stroke stroke = stroke_of(node, fate);
      stroke.width += units(1);
      if (fate == NodeFate::not_reached) stroke.colour = colours().text2;
      edge(node, stroke);
      if (g_.detail == Detail::dots) {
        const NodeBox &from = g_.nodes[p_.tree.nodes[node].parent], &to = g_.nodes[node];
        line({trunk_x(from), from.y}, {trunk_x(from), to.y}, stroke);
      }
    }
  }

  void wedges() {
    for (size_t i = 0; i < g_.wedges.size(); ++i) {
      const NodeBox& from = g_.nodes[g_.wedges[i].parent];
      const TreePoint tip = g_.wedge_boxes[i].tip;
      const ImVec2 a = p_.at(from), b = p_.at(tip.x - units(2), tip.y);
      add_dashed_bezier(list_, a, {a.x + units(20), a.y}, {b.x - units(20), b.y}, b, rejected_dash(),
                        colours().rejected, units(1.4f));
    }
  }

 private:
  bool dense() const { return !has_pills(g_.detail); }
  static float trunk_x(const NodeBox& from) { return std::floor(from.x + units(9)); }

  /// Longer dashes in the smallest trees: those have many edges, and each dash costs vertices.
  Dash dash_of_rejected() const { return g_.detail == Detail::dots ? Dash{units(7), units(5)} : rejected_dash(); }

  Stroke stroke_of(uint32_t node, NodeFate fate) const {
    const Theme& t = colours();
    const float strength = p_.strength(node), width = branch_width(p_.tree.nodes[node].path);
    switch (fate) {
      case NodeFate::rejected:
        return {faded(t.rejected, strength), units(dense() ? 1 : std::max(1.2f, width * 0.6f)), dash_of_rejected()};
      case NodeFate::bonus: return {faded(t.bonus, strength), units(2), bonus_dash()};
      case NodeFate::accepted: return {faded(t.accepted, strength), units(dense() ? std::max(2.0f, width) : width), {}};
      default: break;
    }
    if (dense()) return {faded(t.unreached_edge, strength * 0.8f), std::max(1.0f, std::floor(units(1))), {}};
    return {faded(t.unreached_edge, strength), units(std::max(1.0f, width * 0.7f)), {}};
  }

  void edge(uint32_t node, const Stroke& stroke) {
    const uint32_t parent = p_.tree.nodes[node].parent;
    const NodeBox &from = g_.nodes[parent], &to = g_.nodes[node];
    if (!p_.visible(from.x, std::min(from.y, to.y) - 4, to.x, std::max(from.y, to.y) + 4)) return;
    if (g_.detail == Detail::dots) {
      Stroke straight = stroke;
      if (p_.shown_fate(node) == NodeFate::rejected) straight.dash.reset();  // only its trunk is dashed
      const bool level = std::abs(from.y - to.y) <= 0.5f;
      line({level ? from.x : trunk_x(from), to.y}, {to.x, to.y}, straight);
    } else if (dense()) {
      dense_curve(from, to, stroke);
    } else {
      const float end = p_.shown_fate(node) == NodeFate::not_reached ? 0 : tree_design::badge * 0.9f;
      curve(from, {to.x - units(end), to.y}, g_.column_end(p_.tree.nodes[parent].depth), stroke);
    }
  }

  /// Straight to the end of the column, so that no edge crosses a node; then a curve to the next column.
  void curve(const NodeBox& from, TreePoint to, float column_end, const Stroke& stroke) {
    const float begin = from.x + from.width, turn = std::min(std::max(begin, column_end), to.x);
    const float half = (to.x - turn) * 0.5f;
    list_->PathClear();
    list_->PathLineTo(p_.at(begin, from.y));
    if (std::abs(from.y - to.y) > 0.5f) {
      if (turn > begin) list_->PathLineTo(p_.at(turn, from.y));
      list_->PathBezierCubicCurveTo(p_.at(turn + half, from.y), p_.at(to.x - half, to.y), p_.at(to.x, to.y));
    } else {
      list_->PathLineTo(p_.at(to.x, to.y));
    }
    stroke_path(stroke);
  }

  void dense_curve(const NodeBox& from, const NodeBox& to, const Stroke& stroke) {
    const float reach = std::min(units(14), (to.x - from.x) * 0.45f);
    list_->PathClear();
    list_->PathLineTo(p_.at(from));
    if (std::abs(from.y - to.y) > 0.5f)
      list_->PathBezierCubicCurveTo(p_.at(from.x + reach, from.y), p_.at(from.x + reach * 0.4f, to.y),
                                    p_.at(from.x + reach * 1.57f, to.y), 8);
    list_->PathLineTo(p_.at(to));
    stroke_path(stroke);
  }

  /// Draws a horizontal or vertical line as a rectangle, which needs the fewest vertices.
  void line(TreePoint a, TreePoint b, const Stroke& stroke) {
    const ImVec2 ends[] = {p_.at(a.x, a.y), p_.at(b.x, b.y)};
    pieces_.assign(std::begin(ends), std::end(ends));
    if (stroke.dash) {
      pieces_.clear();
      dash_pieces(ends, *stroke.dash, false, pieces_);
    }
    const float half = stroke.width * 0.5f;
    const ImVec2 reach = a.x == b.x ? ImVec2(half, 0) : ImVec2(0, half);
    for (size_t i = 0; i + 1 < pieces_.size(); i += 2) {
      const ImVec2 p = pieces_[i], q = pieces_[i + 1];
      list_->AddRectFilled({std::min(p.x, q.x) - reach.x, std::min(p.y, q.y) - reach.y},
                           {std::max(p.x, q.x) + reach.x, std::max(p.y, q.y) + reach.y}, stroke.colour);
    }
  }

  void stroke_path(const Stroke& stroke) {
    if (!stroke.dash) {
      list_->PathStroke(stroke.colour, stroke.width);
      return;
    }
    points_.assign(list_->_Path.begin(), list_->_Path.end());
    list_->PathClear();
    add_dashed(list_, points_, *stroke.dash, stroke.colour, stroke.width);
  }

  ImDrawList* list_;
  const TreePaint& p_;
  const TreeGeometry& g_;
  std::vector<ImVec2> points_, pieces_;
};

}  // namespace

void draw_edges(ImDrawList* list, const TreePaint& paint) {
  Edges edges(list, paint);
  if (paint.geometry.detail == Detail::folded) edges.wedges();
  for (const NodeFate fate : {NodeFate::not_reached, NodeFate::rejected, NodeFate::bonus, NodeFate::accepted}) {
    if (paint.geometry.detail == Detail::dots) edges.trunks(fate);
    edges.draw(fate);
  }
  if (paint.selected) edges.way_to(*paint.selected);
  if (paint.hovered && paint.hovered != paint.selected) edges.way_to(*paint.hovered);
}

}  // namespace canopy::app
