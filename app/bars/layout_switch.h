#pragma once

#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

/// Draws Watch | What if | Lab | Compare as one control, 32 px high at 100%, at the cursor.
void layout_switch(const ViewModel& view, CommandSink& sink);
float layout_switch_width(const ViewModel& view);

}  // namespace canopy::app
