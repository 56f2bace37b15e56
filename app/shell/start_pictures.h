#pragma once
// The drawings on the cards of the start page.

#include <imgui.h>

namespace canopy::app {

inline constexpr float kPictureHeight = 196;

/// A small tree after a round: where the target agreed, where it did not, and its own token at the end.
void draw_tree_picture(ImVec2 a, float width);
/// Layers of a target that a drafter reads, in an outline waiting for a file.
void draw_pair_picture(ImVec2 a, float width);
/// Four bars for the same text.
void draw_compare_picture(ImVec2 a, float width);

}  // namespace canopy::app
