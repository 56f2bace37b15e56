#pragma once

#include <imgui.h>

#include "app/ui_command.h"
#include "app/view_model.h"

namespace canopy::app {

/// The popup that chooses how replies are drafted. Open it with ImGui::OpenPopup(kDraftingMenu); its lower left corner
/// goes to `corner`. The view must have a model with a drafter.
inline constexpr const char* kDraftingMenu = "Drafting menu";
void draw_drafting_menu(const ViewModel& view, CommandSink& sink, ImVec2 corner);

}  // namespace canopy::app
