#pragma once
// Parts drawn over a tree: the line of depths, the small map, the phases of slow motion, and the words that fly from
// the tree into the text.

#include <imgui.h>

#include "app/state/rounds.h"
#include "app/tree/tree_canvas.h"
#include "app/tree/tree_paint.h"

namespace canopy::app {

/// Draws "so far", "next token", "2nd" ... above the columns, as far as there is room.
void draw_depths(ImDrawList* list, const TreePaint& paint);

/// Where the small map is on a canvas of this size, in pixels of the canvas.
TreeRect minimap_place(const TreePaint& paint);
/// Draws the small map: the whole tree, with a frame around the visible part.
void draw_minimap(ImDrawList* list, const TreePaint& paint);
/// The point of the canvas that a point of the small map shows.
TreePoint minimap_to_canvas(const TreePaint& paint, TreePoint point);

/// Draws the draft phase: the drafter's likeliest tokens at every position, all being filled at the same time. A round
/// in which no drafter was asked does not have it.
void draw_draft_positions(ImDrawList* list, const TreePaint& paint);

/// Draws the numbers of the nodes in the order in which they were added, in trees of up to 40 nodes.
void draw_order(ImDrawList* list, const TreePaint& paint);
/// Draws the check: light over the whole tree at once, to be drawn below it; and above it the number of guesses that go
/// through one pass.
void draw_one_pass(ImDrawList* list, const TreePaint& paint);
void draw_pass_count(ImDrawList* list, const TreePaint& paint);
/// Draws what plain decoding gets from one pass: the first of the tokens, once it is known.
void draw_plain_ghost(ImDrawList* list, const TreePaint& paint);

/// Draws one card for each of the six phases, the present one marked and with its sentence, in a strip of this width in
/// pixels. shown: the round, with its record.
void draw_phases(ImDrawList* list, ImVec2 pos, float width, Phase phase, float progress, const ShownTree& shown);
inline constexpr float kPhaseStrip = 56;  // its height at 100%

// Slow motion, "Keep": the confirmed words fly from the tree into the text.

/// Where a word is on its way: x eased, y evenly. t: share of its flight, in [0, 1].
ImVec2 flight(ImVec2 from, ImVec2 to, float t);

/// The share of its flight that word `index` has behind it at a moment of the phase: words start 60 ms apart, and all
/// have arrived when Playback::told() becomes true.
float flown(float progress, size_t index, size_t words);

/// Draws the words between the tree and the end of the text. Nothing outside the phase.
void draw_flying_words(ImDrawList* list, const TreeCanvas& tree, const Playback& playback, ImVec2 text_end);

}  // namespace canopy::app
