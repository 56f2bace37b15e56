#pragma once

#include <imgui.h>

#include <string>
#include <vector>

#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

inline constexpr const char* kViewMenu = "View menu";

/// What the window shows: panels by name, their layout, scale, theme, motion, keys. Its upper right corner goes to
/// `corner`. It stays open while panels are chosen. Open it with ImGui::OpenPopup(kViewMenu).
void draw_view_menu(const ViewModel& view, CommandSink& sink, const std::vector<std::string>& panels, ImVec2 corner);

/// The interface's scale between two buttons that make it one step smaller and larger, from the cursor on, 28 high.
/// Lengths at 100%: figure is the room of the percentage, gap lies on either side of it.
void draw_scale_control(const ViewModel& view, CommandSink& sink, float figure, float gap);
/// Its width in pixels.
float scale_control_width(float figure, float gap);

}  // namespace canopy::app
