#pragma once
// Reads tooltips by resting the mouse.

#include <imgui_internal.h>
#include <imgui_te_context.h>

#include <string>

namespace canopy::test {

/// The text of the tooltip at the present place of the mouse.
inline std::string tooltip_here(ImGuiTestContext* ctx) {
  ctx->SleepNoSkip(0.6f, 1.0f / 60);
  ImGui::LogToBuffer();
  ImGui::GetCurrentContext()->LogWindow = nullptr;  // or its end would be taken for the end of the log
  ctx->Yield(1);
  std::string text = ImGui::GetCurrentContext()->LogBuffer.c_str();
  ImGui::LogFinish();
  return text;
}

inline std::string tooltip_of(ImGuiTestContext* ctx, const char* item) {
  ctx->MouseMove(item, ImGuiTestOpFlags_NoFocusWindow);
  return tooltip_here(ctx);
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace canopy::test
