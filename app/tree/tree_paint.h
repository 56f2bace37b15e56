#pragma once
// Draws a tree with Dear ImGui: limbs and tufts, words, badges, rings and the note at the end of a chain.

#include <imgui.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "app/tree/limb_shapes.h"
#include "app/tree/tree_geometry.h"
#include "app/tree/tree_look.h"
#include "app/ui/look.h"
#include "app/ui/shapes.h"

namespace canopy::app {

// The input of all drawing of a tree, and helpers for limbs and words.

struct TreePaint {
  const TreeModel& tree;
  const TreeGeometry& geometry;
  const TreeReveal& reveal;
  const std::vector<std::string>& labels;  // [nodes] not shortened
  ImVec2 origin;                           // upper left corner of the canvas on the screen
  ImVec2 size;
  std::optional<uint32_t> hovered, selected;
  std::optional<uint32_t> open_tuft;  // shown by its card, so not drawn

  ImVec2 at(float x, float y) const { return {origin.x + x, origin.y + y}; }
  ImVec2 at(const NodeBox& box) const { return at(box.x, box.y); }
  /// Whether a box, in pixels of the canvas, is at least partly visible.
  bool visible(float x0, float y0, float x1, float y1) const {
    return x1 >= 0 && y1 >= 0 && x0 <= size.x && y0 <= size.y;
  }
  NodeLook look_of(uint32_t node) const { return app::look_of(tree, reveal, node); }
  NodeLook look_of(const Tuft& tuft) const { return app::look_of(reveal, tuft); }
  float width_of(uint32_t node) const { return pill_width(geometry, reveal, node); }
  float strength(uint32_t node) const { return strength_of(reveal, node); }
  float shown(const Tuft& tuft) const { return share_shown(reveal, tuft); }
};

/// Nodes from which on a tree is drawn with fewer vertices where that is hardly seen.
inline constexpr uint32_t kManyNodes = 400;

/// A length of the 100% design in pixels, not rounded as px() does: for strokes and curves.
inline float units(float length) {
  return length * look().scale;
}

inline Dash rejected_dash() {
  return {units(4), units(3)};
}
inline Dash bonus_dash() {
  return {units(2), units(2.4f)};
}

/// Draws limbs and tufts: not reached, undecided, rejected, then the accepted path with its glow and the bonus; then
/// the way to the hovered and to the selected node.
void draw_limbs(ImDrawList* list, const TreePaint& paint);
void draw_words(ImDrawList* list, const TreePaint& paint);
/// Draws the ring around a node, or around its tuft, over everything else.
void draw_ring(ImDrawList* list, const TreePaint& paint, uint32_t node);
/// Draws the note below the drafter's favourite where the accepted path leaves it.
void draw_chain_note(ImDrawList* list, const TreePaint& paint, const ChainEstimate& chain, size_t emitted);

/// Draws a word of the tree with its middle at height y, cut to `room` pixels; a line break is drawn as a return sign.
/// size: height of the letters in pixels.
void draw_word(ImDrawList* list, ImVec2 left_middle, Type type, float size, Colour colour, const std::string& label,
               float room);

/// Draws a ribbon. reached: the share of its width that is drawn, from the left.
void fill_ribbon(ImDrawList* list, const Ribbon& ribbon, Colour colour, float reached = 1);
/// Draws light around a ribbon, which fades out over `reach` pixels to both sides and over `soft` pixels at both ends.
void glow_ribbon(ImDrawList* list, const Ribbon& ribbon, Colour colour, float reach, float soft, float reached);
/// Draws its two edges as lines one pixel wide.
void outline_ribbon(ImDrawList* list, const Ribbon& ribbon, Colour colour, float reached = 1);

/// Fills the corner of a word that was found in the text. corner: the upper right one of its pill; side: pixels.
void draw_found_corner(ImDrawList* list, ImVec2 corner, float side, Colour colour);
/// Draws the sign of such words for a legend: a pill with square corners and that corner filled. reach: half its width.
void draw_found_sign(ImDrawList* list, ImVec2 centre, float reach, Colour colour);

/// Draws the badge of a state: check mark, cross, dot or star. reach: radius of the disc of the check mark, in pixels.
void draw_fate_badge(ImDrawList* list, NodeFate fate, ImVec2 centre, float reach, Colour ground, float strength = 1);

}  // namespace canopy::app
