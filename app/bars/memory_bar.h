#pragma once

#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

/// Draws a bar of the device memory that the loaded models take, by parts. A click opens a table of it and the choice
/// of the context. 32 px high at 100%, at the cursor. Draws nothing without a model.
void memory_bar(const ViewModel& view, CommandSink& sink, float width);

}  // namespace canopy::app
