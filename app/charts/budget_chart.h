#pragma once
// S(N): what each width promised and what it would have brought.

#include <imgui.h>

#include "app/charts/budget_view.h"

namespace canopy::app {

/// In the given size, the caption of the width axis included. view: none before the first round.
void draw_budget_chart(const BudgetView* view, ImVec2 size);

}  // namespace canopy::app
