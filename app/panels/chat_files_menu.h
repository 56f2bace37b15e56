#pragma once

#include <imgui.h>

#include "app/ui_command.h"
#include "app/view_model.h"

namespace canopy::app {

/// The popup that exports the chat that is shown and imports one. Open it with ImGui::OpenPopup(kChatFilesMenu); its
/// upper right corner goes to `corner`.
inline constexpr const char* kChatFilesMenu = "Export or import a chat";
void draw_chat_files_menu(const ViewModel& view, CommandSink& sink, ImVec2 corner);

}  // namespace canopy::app
