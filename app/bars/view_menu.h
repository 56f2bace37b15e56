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

/// The interface one step smaller (-1) or larger (+1), as an icon of 28 pixels at 100%.
void draw_scale_button(const ViewModel& view, CommandSink& sink, int step);

}  // namespace canopy::app
