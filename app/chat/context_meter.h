#pragma once

#include <imgui.h>

#include "app/state/view_model.h"

namespace canopy::app {

/// Width of the meter in pixels: a ring, and the share in figures when little is left and there is room for them.
float context_meter_width(const ViewModel& view, bool room);

/// Draws how much of the model's context the chat takes, in a row 28 px high. Nothing without a model.
void draw_context_meter(const ViewModel& view, ImVec2 at, bool room);

}  // namespace canopy::app
