#include "app/chat/find_bar.h"

#include <imgui.h>
#include <imgui_stdlib.h>

#include <algorithm>
#include <utility>

#include "app/look/widgets.h"

namespace canopy::app {

bool FindBar::close() {
  active_ = false;
  hits_.clear();
  searched_.clear();
  return std::exchange(open_, false);
}

/// Searches again if text or conversation changed. True when the hits are other ones than before.
bool FindBar::search(const ViewModel& view) {
  const bool empty = view.conversation().empty();
  const uint64_t leaf = empty ? 0 : view.conversation().back().id;
  const size_t bytes = empty ? 0 : view.conversation().back().text.size(), messages = view.conversation().size();
  if (wanted_ == searched_ && leaf == leaf_ && bytes == bytes_ && messages == messages_) return false;
  const bool typed = wanted_ != searched_;
  searched_ = wanted_;
  leaf_ = leaf;
  bytes_ = bytes;
  messages_ = messages;
  hits_ = find_in(view.conversation(), wanted_);
  at_ = typed ? (hits_.empty() ? 0 : hits_.size() - 1) : std::min(at_, hits_.empty() ? 0 : hits_.size() - 1);
  return typed;
}

bool FindBar::draw(const ViewModel& view, CommandSink& sink, float width) {
  const ImVec2 a = ImGui::GetCursorScreenPos();
  const float row = px(28);
  bool moved = search(view);
  const std::string count =
      wanted_.empty() ? "" : (hits_.empty() ? "none" : std::to_string(at_ + 1) + " of " + std::to_string(hits_.size()));
  const float figures = px(64), buttons = row * 3;
  ImGui::SetNextItemWidth(std::max(px(60), width - figures - buttons));
  const bool opened = !std::exchange(open_, true);
  if (opened) ImGui::SetKeyboardFocusHere();
  const bool entered =
      ImGui::InputTextWithHint("##Find", "Find in this chat", &wanted_,
                               ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_AutoSelectAll);
  active_ = ImGui::IsItemActive() || entered || opened;
  const bool escaped = ImGui::IsItemDeactivated() && ImGui::IsKeyPressed(ImGuiKey_Escape, false);
  if (entered) ImGui::SetKeyboardFocusHere(-1);
  draw_text_middle(ImGui::GetWindowDrawList(), a.x + width - buttons - figures + px(8), a.y + row * 0.5f,
                   Type::mono_caption, colours().text3, count);
  ImGui::SetCursorScreenPos({a.x + width - buttons, a.y});
  // Enter goes back from the newest hit, Shift+Enter forward
  int step = entered ? (ImGui::GetIO().KeyShift ? 1 : -1) : 0;
  auto icon = [&](const char* label, Icon icon_of, const char* about, bool enabled) {
    ButtonSpec spec{label, icon_of};
    spec.show_label = false;
    spec.tooltip = about;
    spec.enabled = enabled;
    const bool pressed = button(spec);
    ImGui::SameLine(0, 0);
    return pressed;
  };
  if (icon("Earlier", Icon::left, "Earlier  Enter", !hits_.empty())) step = -1;
  if (icon("Later", Icon::right, "Later  Shift+Enter", !hits_.empty())) step = 1;
  if (icon("Close find", Icon::close, "Close  Esc", true) || escaped) sink.post(ShowFind{false});
  if (step != 0 && !hits_.empty()) {
    at_ = (at_ + hits_.size() + (step > 0 ? 1 : hits_.size() - 1)) % hits_.size();
    moved = true;
  }
  ImGui::SetCursorScreenPos({a.x, a.y + row + px(6)});
  ImGui::Dummy({0, 0});
  return moved && !hits_.empty();
}

}  // namespace canopy::app
