#pragma once
// Draws the numbers of Watch and its budget line (look/watch.md, "Layout").

#include <imgui.h>

#include <string>

#include "app/charts/watch_source.h"
#include "app/charts/width_game.h"
#include "app/state/ui_command.h"

namespace canopy::app {

/// Draws tokens per pass, what a pass costs here, and the chip "as if on ...", as far as there is room; each says on
/// hover how it is computed. The menu of the chip chooses its device. subtitles: draw the second lines.
void draw_watch_numbers(const ViewModel& view, const WatchNumbers& numbers, ImVec2 pos, ImVec2 size, bool subtitles,
                        CommandSink& sink);

/// Draws the line about the size of the tree with its curve. True when its button was pressed. unfolded: the whole
/// chart is shown. game: where it is on, its question stands there until it is answered.
bool draw_budget_line(const BudgetLine& line, ImVec2 pos, ImVec2 size, bool unfolded, WidthGame& game);

}  // namespace canopy::app
