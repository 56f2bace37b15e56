#include "app/shell.h"

#include <imgui.h>

#include "app/look/fonts.h"
#include "app/panels/chat_panel.h"
#include "app/panels/help.h"
#include "app/panels/shortcuts.h"
#include "app/panels/start_panel.h"
#include "app/panels/status_bar.h"
#include "app/panels/top_bar.h"

namespace canopy::app {
namespace {

constexpr float kTopBar = 48;
constexpr float kStatusBar = 28;

constexpr ImGuiWindowFlags kFixed = ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                                    ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoSavedSettings |
                                    ImGuiWindowFlags_NoBringToFrontOnFocus | ImGuiWindowFlags_NoScrollWithMouse |
                                    ImGuiWindowFlags_NoFocusOnAppearing;

void draw_in(Panel& panel, ImVec2 pos, ImVec2 size, Colour background, const ViewModel& view, CommandSink& sink) {
  ImGui::SetNextWindowPos(pos);
  ImGui::SetNextWindowSize(size);
  ImGui::PushStyleColor(ImGuiCol_WindowBg, background);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowMinSize, {1, 1});
  ImGui::Begin(panel.name(), nullptr, kFixed);
  ImGui::PopStyleVar(2);
  panel.draw(view, sink);
  ImGui::End();
  ImGui::PopStyleColor();
}

}  // namespace

Shell::Shell() : top_bar_(std::make_unique<TopBar>()), status_bar_(std::make_unique<StatusBar>()) {
  contents_.push_back(std::make_unique<StartPanel>());
  contents_.push_back(std::make_unique<ChatPanel>());
}

Shell::~Shell() = default;

void Shell::draw(const ViewModel& view, CommandSink& sink) {
  const Theme& t = colours();
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const ImVec2 origin = viewport->Pos, size = viewport->Size;
  const float top = px(kTopBar), bottom = px(kStatusBar);
  handle_shortcuts(view, sink);
  draw_in(*top_bar_, origin, {size.x, top}, t.panel, view, sink);
  for (const auto& panel : contents_) {
    if (!panel->wanted(view)) continue;
    draw_in(*panel, {origin.x, origin.y + top}, {size.x, size.y - top - bottom}, t.panel, view, sink);
    break;
  }
  draw_in(*status_bar_, {origin.x, origin.y + size.y - bottom}, {size.x, bottom}, t.back, view, sink);
  if (view.help_shown) draw_help(sink);
}

}  // namespace canopy::app
