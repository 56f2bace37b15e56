#pragma once
// The drawings on the cards of the start page.

#include <imgui.h>

namespace canopy::app {

inline constexpr float kPictureHeight = 196;

/// Draws a small tree after a round: accepted nodes, rejected ones and the bonus token.
void draw_tree_picture(ImVec2 a, float width);
/// Draws the layers of a target that a drafter reads, in a dashed outline.
void draw_pair_picture(ImVec2 a, float width);

}  // namespace canopy::app
