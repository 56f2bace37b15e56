#include "app/shell/help.h"

#include <algorithm>

#include "app/look/widgets.h"
#include "app/panels/actions.h"

namespace canopy::app {

void draw_help(CommandSink& sink) {
  const Theme& t = colours();
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const float pitch = px(26), padding = px(14);
  const float width = std::min(px(264), viewport->Size.x - px(24));
  const auto with_keys = std::ranges::count_if(actions(), [](const Action& a) { return a.chord != 0; });
  const float height = padding * 2 + px(28) + pitch * (static_cast<float>(with_keys) + 4);
  const ImVec2 size = {width, std::min(height, viewport->Size.y - px(28 + 48 + 16))};
  ImGui::SetNextWindowPos(
      {viewport->Pos.x + viewport->Size.x - size.x - px(12), viewport->Pos.y + viewport->Size.y - size.y - px(36)});
  ImGui::SetNextWindowSize(size);
  ImGui::PushStyleColor(ImGuiCol_WindowBg, t.raised);
  ImGui::PushStyleColor(ImGuiCol_Border, t.ctl);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, px(6));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {padding, padding});
  ImGui::Begin("Help", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                   ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoFocusOnAppearing);
  ImGui::PopStyleVar(3);
  ImGui::PopStyleColor(2);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 a = ImGui::GetCursorScreenPos();
  const float inner = width - padding * 2;
  draw_text(list, a, Type::chat_semibold, t.text, "Keyboard");
  float y = a.y + px(32);
  auto row = [&](const char* what, const char* keys) {
    draw_text_middle(list, a.x, y + pitch * 0.5f, Type::base, t.text2, what);
    draw_text_middle(list, a.x + inner - text_size(Type::mono, keys).x, y + pitch * 0.5f, Type::mono, t.text, keys);
    y += pitch;
  };
  row("Send", "Enter");
  row("New line", "Shift+Enter");
  row("Scroll", "PgUp, PgDn");
  row("Copy what is selected", "Ctrl+C");
  for (const Action& action : actions())
    if (action.chord) row(action.name, action.keys);
  ImGui::SetCursorScreenPos(a);
  ImGui::Dummy({inner, y - a.y});
  ButtonSpec close{"Close help", Icon::close};
  close.show_label = false;
  ImGui::SetCursorScreenPos({a.x + inner - px(26), a.y - px(6)});
  if (button(close)) sink.post(ShowHelp{false});
  ImGui::End();
}

}  // namespace canopy::app
