#pragma once

#include "app/state/ui_command.h"

namespace canopy::app {

/// The list of shortcuts, above the status bar at the right. Not a modal: work goes on beside it.
void draw_help(CommandSink& sink);

}  // namespace canopy::app
