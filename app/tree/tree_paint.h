#pragma once
// The input of all drawing of a tree, and helpers for edges and nodes.

#include <optional>
#include <string>
#include <vector>

#include <imgui.h>

#include "app/look/dash.h"
#include "app/look/fonts.h"
#include "app/tree/tree_geometry.h"
#include "app/tree/tree_reveal.h"

namespace canopy::app {

struct TreePaint {
  const TreeModel& tree;
  const TreeGeometry& geometry;
  const TreeReveal& reveal;
  const std::vector<std::string>& labels;  // [nodes] not shortened
  ImVec2 origin;                           // upper left corner of the canvas on the screen
  ImVec2 size;
  std::optional<uint32_t> hovered, selected;

  ImVec2 at(float x, float y) const { return {origin.x + x, origin.y + y}; }
  ImVec2 at(const NodeBox& box) const { return at(box.x, box.y); }
  /// Whether a box, in pixels of the canvas, is at least partly visible.
  bool visible(float x0, float y0, float x1, float y1) const {
    return x1 >= 0 && y1 >= 0 && x0 <= size.x && y0 <= size.y;
  }
  /// The fate to draw. Before the walk has reached a node, all drafted nodes look the same.
  NodeFate shown_fate(uint32_t node) const {
    return reveal.nodes[node].judged ? tree.nodes[node].fate : NodeFate::not_reached;
  }
  float strength(uint32_t node) const { return reveal.nodes[node].shown * reveal.nodes[node].strength; }
};

/// A length of the 100% design in pixels, not rounded as px() does: for strokes and curves.
inline float units(float length) {
  return length * look().scale;
}

inline Colour faded(Colour colour, float strength) {
  return strength >= 1 ? colour : with_alpha(colour, strength);
}

inline Dash rejected_dash() {
  return {units(4), units(3)};
}
inline Dash bonus_dash() {
  return {units(2), units(2.4f)};
}

/// Draws the edges in the order not reached, rejected, bonus, accepted; then the path to the hovered node.
void draw_edges(ImDrawList* list, const TreePaint& paint);
void draw_nodes(ImDrawList* list, const TreePaint& paint);
/// Draws the ring around a node over everything else and, if its label is not shown otherwise, the label.
void draw_ring(ImDrawList* list, const TreePaint& paint, uint32_t node);

/// Draws the badge of a state: check mark, cross, dot or star. reach: radius of the disc of the check mark, in pixels.
void draw_fate_badge(ImDrawList* list, NodeFate fate, ImVec2 centre, float reach, Colour ground, float strength = 1);
Colour fate_colour(NodeFate fate);
Colour fate_text_colour(NodeFate fate);

}  // namespace canopy::app
