#pragma once
// The row under a reply that a limit or the user ended: it says so and goes on with the reply.

#include <cstddef>

#include "app/panels/panel.h"

namespace canopy::app {

/// Whether message i has the row.
bool has_continue_row(const ViewModel& view, size_t i);

/// Draws the row at the cursor, `width` pixels wide and as high as a button.
void draw_continue_row(const ViewModel& view, size_t i, CommandSink& sink, float width);

}  // namespace canopy::app
