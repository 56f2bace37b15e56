#pragma once

#include <imgui.h>

namespace canopy::app {

/// A Dear ImGui context, current for its life.
class ImguiContext {
 public:
  ImguiContext() : context_(ImGui::CreateContext()) { ImGui::SetCurrentContext(context_); }
  ~ImguiContext() { ImGui::DestroyContext(context_); }
  ImguiContext(const ImguiContext&) = delete;
  ImguiContext& operator=(const ImguiContext&) = delete;

 private:
  ImGuiContext* context_;
};

}  // namespace canopy::app
