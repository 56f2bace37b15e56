#pragma once

#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

/// Draws the cards of failures and warnings at the cursor, `width` pixels wide, the newest last, each with its most
/// likely action first. They never block the window. Without cards it takes no height.
void draw_error_cards(const ViewModel& view, CommandSink& sink, float width);

}  // namespace canopy::app
