#include "app/chat/text_selection.h"

#include <algorithm>

#include "app/look/fonts.h"

namespace canopy::app {
namespace {

bool in_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

}  // namespace

TextSelection::Mouse TextSelection::item(uint64_t id, const MessageBody& body, ImVec2 a, ImVec2 b, ImVec2 pos,
                                         std::string_view text) {
  Mouse result;
  if (b.x <= a.x || b.y <= a.y) return result;
  ImGui::SetCursorScreenPos(a);
  ImGui::SetNextItemAllowOverlap();  // other items may be above it: the Copy button of a code block
  ImGui::InvisibleButton("text", {b.x - a.x, b.y - a.y});
  result.over = ImGui::IsItemHovered();
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  if (ImGui::IsItemActivated()) {
    press(id, body.byte_at(mouse, pos), text, ImGui::GetMouseClickedCount(ImGuiMouseButton_Left));
  } else if ((ImGui::IsItemActive() || ImGui::IsItemDeactivated()) && dragging_ && id_ == id) {
    caret_ = body.byte_at(mouse, pos);
    result.clicked = ImGui::IsItemDeactivated() && result.over && empty();
  }
  return result;
}

void TextSelection::draw(uint64_t id, const MessageBody& body, ImVec2 pos, ImDrawList* list) const {
  if (id_ != id || empty()) return;
  const Colour colour = selection_behind(colours());
  body.rects(pos, begin(), end(), [&](ImVec2 a, ImVec2 b) { list->AddRectFilled(a, b, colour); });
}

void TextSelection::press(uint64_t id, size_t byte, std::string_view text, int clicks) {
  const bool extend = ImGui::GetIO().KeyShift && id == id_;
  id_ = id;
  caret_ = byte;
  if (!extend) anchor_ = byte;
  dragging_ = clicks <= 1;
  if (dragging_) return;
  size_t from = std::min(byte, text.size()), to = from;
  auto belongs = [&](char c) { return clicks == 2 ? in_word(c) : c != '\n'; };
  while (from > 0 && belongs(text[from - 1])) --from;
  while (to < text.size() && belongs(text[to])) ++to;
  anchor_ = from;
  caret_ = to;
}

std::string TextSelection::of(std::string_view text) const {
  const size_t from = std::min(begin(), text.size());
  return std::string(text.substr(from, std::min(end(), text.size()) - from));
}

}  // namespace canopy::app
