#pragma once
// Slow motion, "Keep": the confirmed words fly from the tree into the text (look/watch.md).

#include <imgui.h>

#include "app/rounds/playback.h"
#include "app/tree/tree_canvas.h"

namespace canopy::app {

/// Where a word is on its way: x eased, y evenly. t: share of its flight, in [0, 1].
ImVec2 flight(ImVec2 from, ImVec2 to, float t);

/// The share of its flight that word `index` has behind it at a moment of the phase: words start 60 ms apart, and all
/// have arrived when Playback::told() becomes true.
float flown(float progress, size_t index, size_t words);

/// Draws the words between the tree and the end of the text. Nothing outside the phase.
void draw_flying_words(ImDrawList* list, const TreeCanvas& tree, const Playback& playback, ImVec2 text_end);

}  // namespace canopy::app
