#pragma once
// The controls of time: back, pause, on; follow, slow motion, speed.

#include "app/panels/panel.h"

namespace canopy::app {

/// Draws two rows of controls from the cursor on, in this width.
void draw_transport(const RoundsState& rounds, CommandSink& sink, float width);

/// The keys of time, while the window they are drawn in has the keyboard: Space, the arrows, Home and End.
void handle_transport_keys(const RoundsState& rounds, CommandSink& sink);

/// The width of the controls at 100%.
inline constexpr float kTransportWidth = 340;

}  // namespace canopy::app
