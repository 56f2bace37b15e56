#pragma once
// The line below a reply that says whether plain decoding writes the same text.

#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

/// Whether a reply has such a line now.
bool has_check_row(const ViewModel& view, const Message& reply);

/// Draws it from the cursor on, 28 px high at 100%.
void draw_check_row(const ViewModel& view, const Message& reply, CommandSink& sink, float width);

}  // namespace canopy::app
