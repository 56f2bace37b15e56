#pragma once

#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

/// What the loaded pair takes of the device, part by part, and whether it fits; pressed, the same as a table, with the
/// choice of a context. 32 px high, at the cursor. Nothing without a model.
void memory_bar(const ViewModel& view, CommandSink& sink, float width);

}  // namespace canopy::app
