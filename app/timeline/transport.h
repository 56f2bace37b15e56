#pragma once
// The controls of the replay: back, pause, forward, follow, slow motion and speed.

#include "app/panels/panel.h"

namespace canopy::app {

/// Draws two rows of controls at the cursor, in this width. buttons_only: the first of them alone.
void draw_transport(const RoundsState& rounds, CommandSink& sink, float width, bool buttons_only = false);

/// Handles the keys of the replay while the current window has the focus: Space, the arrows, Home and End.
void handle_transport_keys(const RoundsState& rounds, CommandSink& sink);

/// The width of the controls at 100%.
inline constexpr float kTransportWidth = 340;

}  // namespace canopy::app
