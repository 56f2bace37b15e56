#pragma once
// Keeps a context of Dear ImGui and one of ImPlot current.

#include <imgui.h>
#include <imgui_internal.h>
#include <implot.h>

namespace canopy::app {

/// Makes a Dear ImGui and an ImPlot context and keeps them current until destroyed.
class ImguiContext {
 public:
  ImguiContext() : context_(ImGui::CreateContext()), plots_(ImPlot::CreateContext()) {
    ImGui::SetCurrentContext(context_);
    ImPlot::SetCurrentContext(plots_);
    // Its own list of windows would show their bare names; the parts of the window have keys of their own.
    context_->ConfigNavWindowingKeyNext = context_->ConfigNavWindowingKeyPrev = 0;
  }
  ~ImguiContext() {
    ImPlot::DestroyContext(plots_);
    ImGui::DestroyContext(context_);
  }
  ImguiContext(const ImguiContext&) = delete;
  ImguiContext& operator=(const ImguiContext&) = delete;

 private:
  ImGuiContext* context_;
  ImPlotContext* plots_;
};

}  // namespace canopy::app
