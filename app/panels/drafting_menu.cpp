#include "app/panels/drafting_menu.h"

#include <algorithm>

#include "app/drafting.h"
#include "app/look/widgets.h"

namespace canopy::app {

void draw_drafting_menu(const ViewModel& view, CommandSink& sink, ImVec2 corner) {
  const float width = std::min(px(340), ImGui::GetMainViewport()->Size.x - px(48));
  ImGui::SetNextWindowPos(corner, ImGuiCond_Always, {0, 1});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(8), px(8)});
  if (ImGui::BeginPopup(kDraftingMenu)) {
    const DecodeMode now = mode_for(view.drafting, *view.model);
    for (const DecodeMode mode : {DecodeMode::adaptive, DecodeMode::tree, DecodeMode::chain, DecodeMode::ar}) {
      if (choice(mode_title(mode), mode_title(mode), mode_detail(mode), mode == now, true, width)) {
        sink.post(SetDrafting{mode});
        ImGui::CloseCurrentPopup();
      }
    }
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

}  // namespace canopy::app
