#pragma once
// The lanes of Compare: all columns on one clock, a bar for each round, as wide as its time and as high as its tokens.

#include <vector>

#include <imgui.h>

#include "app/compare/compare_figures.h"
#include "app/state/ui_command.h"

namespace canopy::app {

/// Draws the controls of the clock and the lanes into the rectangle; a press in the lanes moves the clock.
void draw_race(const ComparisonState& state, const CompareFigures& figures, ImVec2 pos, ImVec2 size, CommandSink& sink);

/// The height at 100% that so many lanes need.
float race_height(size_t lanes);

}  // namespace canopy::app
