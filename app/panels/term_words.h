#pragma once
// The meaning of a term, shown on hover after the delay of tooltips (app/base/terms.h).

#include <string>
#include <string_view>

#include <imgui.h>

namespace canopy::app {

/// The tooltip of the item drawn last: the meaning of this label, where it is a term, and `more` below it: how the
/// number came about. Without both there is none.
void term_tooltip(std::string_view label, const std::string& more = {});

/// Makes an item of a label that was drawn from a to b: a dotted line under it says that it can be asked, and its
/// meaning opens on hover. Nothing where the label is no term. The item's id is "term " and the term's name; the cursor
/// is left where it was.
void term_area(std::string_view label, ImVec2 a, ImVec2 b, const std::string& more = {});

/// The dotted line alone, under a label from x0 to x1.
void draw_term_line(ImDrawList* list, float x0, float x1, float y);

}  // namespace canopy::app
