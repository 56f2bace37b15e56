#pragma once
// The line of the timeline that begins a recording, says that one is under way, and ends it.

#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

/// Draws it from the cursor on, in this width.
void draw_recording_row(const ViewModel& view, CommandSink& sink, float width);

/// How a recording stands, in words: "recording, 12 rounds".
std::string recording_words(const RecordingState& recording);

}  // namespace canopy::app
