#pragma once

#include <imgui.h>

#include <string>
#include <vector>

#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

inline constexpr const char* kViewMenu = "View menu";

/// Draws the View menu with its upper right corner at `corner`: panels by name, layout, scale, theme, motion, keys. It
/// stays open while panels are switched on and off. Open it with ImGui::OpenPopup(kViewMenu).
void draw_view_menu(const ViewModel& view, CommandSink& sink, const std::vector<std::string>& panels, ImVec2 corner);

/// Draws the interface's scale between two buttons that change it by a step, at the cursor, 28 px high. Lengths are at
/// 100%: `figure` is the room of the percentage, `gap` is on either side of it.
void draw_scale_control(const ViewModel& view, CommandSink& sink, float figure, float gap);
/// Width of that control in pixels.
float scale_control_width(float figure, float gap);

}  // namespace canopy::app
