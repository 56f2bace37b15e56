#pragma once
// What lies over a tree: the depths above it, the small map, the draft positions and the phases of slow motion.

#include "app/rounds/playback.h"
#include "app/tree/tree_paint.h"

namespace canopy::app {

/// "root 1 2 3 ..." over the columns, as far as there is room.
void draw_depths(ImDrawList* list, const TreePaint& paint);

/// The small map's place on a canvas of this size, in its own pixels.
TreeRect minimap_place(const TreePaint& paint);
/// All of a tree in little, with a frame around what is in the view.
void draw_minimap(ImDrawList* list, const TreePaint& paint);
/// What a point of the small map stands for, on the canvas.
TreePoint minimap_to_canvas(const TreePaint& paint, TreePoint point);

/// The first phase: what the drafter holds likeliest at every position, filling together.
void draw_draft_positions(ImDrawList* list, const TreePaint& paint);

/// Six cards with the phase under way marked, in a strip of this width.
void draw_phases(ImDrawList* list, ImVec2 pos, float width, Phase phase, float progress);
inline constexpr float kPhaseStrip = 56;  // its height at 100%

}  // namespace canopy::app
