#include "app/look/model_path_box.h"

#include <imgui.h>
#include <imgui_stdlib.h>

#include "app/look/widgets.h"

namespace canopy::app {

bool model_path_box(std::string& path, float width) {
  ButtonSpec open{"Open", Icon::none, ButtonKind::line};
  open.enabled = !path.empty();
  const float room = width - button_size(open).x - px(8);
  push_type(Type::base);
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 1);
  ImGui::PushStyleColor(ImGuiCol_Border, colours().ctl);
  ImGui::SetNextItemWidth(room);
  bool asked = ImGui::InputTextWithHint("##path", "or paste a path", &path,
                                        ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_ElideLeft);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  ImGui::PopFont();
  ImGui::SameLine(0, px(8));
  asked |= button(open);
  return asked && !path.empty();
}

}  // namespace canopy::app
