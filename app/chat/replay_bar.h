#pragma once
// The bar below a recorded conversation, in place of the composer: where the recording comes from, and a button back to
// the own chat.

#include <imgui.h>

#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

/// Its height in pixels.
float replay_bar_height();

/// Draws it at the cursor.
void draw_replay_bar(const ViewModel& view, CommandSink& sink, float width);

/// Draws a note in place of the messages, for a recording without texts.
void draw_redacted_note(ImVec2 size);

/// "SmolLM2 135M Q4_1 with SmolLM2 DFlash on llvmpipe".
std::string origin_words(const ReplayOrigin& origin);

}  // namespace canopy::app
