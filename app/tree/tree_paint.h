#pragma once
// What the drawing of a tree is told, and the little that edges and nodes share.

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
  const std::vector<std::string>& labels;  // [nodes] whole
  ImVec2 origin;                           // of the canvas on the screen
  ImVec2 size;
  std::optional<uint32_t> hovered, selected;

  ImVec2 at(float x, float y) const { return {origin.x + x, origin.y + y}; }
  ImVec2 at(const NodeBox& box) const { return at(box.x, box.y); }
  /// Whether a box of the canvas can be seen at all.
  bool visible(float x0, float y0, float x1, float y1) const {
    return x1 >= 0 && y1 >= 0 && x0 <= size.x && y0 <= size.y;
  }
  /// What a node is drawn as: before the walk has come to it all drafted ones look alike.
  NodeFate shown_fate(uint32_t node) const {
    return reveal.nodes[node].judged ? tree.nodes[node].fate : NodeFate::not_reached;
  }
  float strength(uint32_t node) const { return reveal.nodes[node].shown * reveal.nodes[node].strength; }
};

/// Pixels; unlike px() not rounded, for strokes and curves.
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

/// In the order not reached, rejected, bonus, accepted; then the way from the root to the node under the pointer.
void draw_edges(ImDrawList* list, const TreePaint& paint);
void draw_nodes(ImDrawList* list, const TreePaint& paint);
/// Above all: the ring and, where its label is not drawn otherwise, the label of a node.
void draw_ring(ImDrawList* list, const TreePaint& paint, uint32_t node);

/// The badge of a state: check, cross, dot or star. reach: the radius of the check's disc.
void draw_fate_badge(ImDrawList* list, NodeFate fate, ImVec2 centre, float reach, Colour ground, float strength = 1);
Colour fate_colour(NodeFate fate);
Colour fate_text_colour(NodeFate fate);

}  // namespace canopy::app
