#pragma once

#include <vector>

#include <imgui.h>

#include "app/compare/sweep_view.h"

namespace canopy::app {

/// Draws the curves over the size of trees, with their errors; the first one is the shown sweep's. `ratios`: they are
/// ratios to the baseline, not tokens a second.
void draw_sweep_chart(const std::vector<SweepCurve>& curves, bool ratios, ImVec2 size);

}  // namespace canopy::app
