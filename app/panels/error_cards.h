#pragma once

#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

/// Failures and warnings, newest last, each with its likely action first. Draws at the cursor, width pixels wide; never
/// a modal. No cards, no height.
void draw_error_cards(const ViewModel& view, CommandSink& sink, float width);

}  // namespace canopy::app
