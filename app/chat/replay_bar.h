#pragma once
// What stands below a recorded conversation in place of the composer: where it comes from, and the way back.

#include <imgui.h>

#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

/// Its height in pixels.
float replay_bar_height();

/// Draws it from the cursor on.
void draw_replay_bar(const ViewModel& view, CommandSink& sink, float width);

/// In place of the messages of a recording without texts: that they were left out.
void draw_redacted_note(ImVec2 size);

/// "SmolLM2 135M Q4_1 with SmolLM2 DFlash on llvmpipe".
std::string origin_words(const ReplayOrigin& origin);

}  // namespace canopy::app
