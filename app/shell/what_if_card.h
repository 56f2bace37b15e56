#pragma once
// One device of "What if": its speed against plain decoding, its verdict, and the widths it would choose.

#include <imgui.h>

#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

struct WhatIfPlace {
  size_t there = 0;  // in the answer
  ImVec2 pos, size;  // pixels
};

/// Draws the card. The menu of its name chooses another device; a button shows its trees.
void draw_what_if_card(const ViewModel& view, const WhatIfPlace& place, CommandSink& sink);

}  // namespace canopy::app
