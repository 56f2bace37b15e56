#pragma once

#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

/// Draws AR | Chain | Tree | Adaptive as one control, and for Tree the number of its nodes. 32 px high at 100%, at the
/// cursor.
void mode_segment(const ViewModel& view, CommandSink& sink);
float mode_segment_width(const ViewModel& view);

/// The same as a drop-down, where there is no room for four words.
void mode_picker(const ViewModel& view, CommandSink& sink, float width);
float mode_picker_width(const ViewModel& view);

}  // namespace canopy::app
