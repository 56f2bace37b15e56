#include "tests/app/support/panel_context.h"

#include <imgui.h>

#include <utility>

#include "app/ui/look.h"

namespace canopy::test {

PanelContext::PanelContext(app::Panel& panel, float width, float height, app::ThemeKind theme, float scale)
    : panel_(panel) {
  ImGuiIO& io = ImGui::GetIO();
  io.DisplaySize = {width, height};
  io.ConfigFlags |= ImGuiConfigFlags_NavEnableKeyboard;
  io.IniFilename = nullptr;
  io.UserData = &look_;
  look_.fonts = app::load_fonts(false);
  look_.theme = &app::theme(theme);
  look_.scale = scale;
  ImGuiStyle& style = ImGui::GetStyle();
  app::apply_style(style, *look_.theme, scale);
  style.FontScaleMain = scale;
  style.FontSizeBase = app::font_size(app::Type::base);
  view.theme = theme;
}

void PanelContext::draw() {
  ImGui::SetNextWindowPos({0, 0});
  ImGui::SetNextWindowSize(ImGui::GetIO().DisplaySize);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
  ImGui::Begin(panel_.name(), nullptr, ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove);
  ImGui::PopStyleVar();
  panel_.draw(view, sink_);
  ImGui::End();
}

void PanelContext::fold() {
  for (app::UiCommand& command : sink_.take()) {
    if (const auto* rounds = std::get_if<app::RoundsCommand>(&command)) app::update(view.rounds, *rounds);
    posted.push_back(std::move(command));
  }
}

}  // namespace canopy::test
