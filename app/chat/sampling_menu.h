#pragma once

#include <imgui.h>

#include <string>

#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

/// How the next reply is asked for, in as many words as fit: "Temperature 0.5, seed 0, system prompt off".
std::string sampling_words(const ViewModel& view, float room);

/// The popup that changes it. Open it with ImGui::OpenPopup(kSamplingMenu); its lower left corner goes to `corner`.
inline constexpr const char* kSamplingMenu = "Sampling menu";
void draw_sampling_menu(const ViewModel& view, CommandSink& sink, ImVec2 corner);

}  // namespace canopy::app
