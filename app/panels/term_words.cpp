#include "app/panels/term_words.h"

#include <algorithm>

#include "app/base/terms.h"
#include "app/look/dash.h"
#include "app/look/widgets.h"

namespace canopy::app {
namespace {

constexpr float kTermWidth = 340;

}  // namespace

void term_tooltip(std::string_view label_words, const std::string& more) {
  const Term* term = find_term(label_words);
  if (!term) {
    if (!more.empty()) tooltip(more.c_str());
    return;
  }
  if (!ImGui::IsItemHovered(ImGuiHoveredFlags_ForTooltip | ImGuiHoveredFlags_AllowWhenDisabled)) return;
  ImGui::BeginTooltip();
  ImGui::PushTextWrapPos(px(kTermWidth));
  label(Type::secondary_semibold, colours().text, term->name);
  label(Type::secondary, colours().text, term->meaning);
  if (!more.empty()) {
    ImGui::Dummy({0, px(2)});
    label(Type::secondary, colours().text2, more);
  }
  ImGui::PopTextWrapPos();
  ImGui::EndTooltip();
}

void draw_term_line(ImDrawList* list, float x0, float x1, float y) {
  const ImVec2 line[] = {{x0, y}, {x1, y}};
  add_dashed(list, line, {std::max(1.0f, px(1)), px(3)}, colours().text3, std::max(1.0f, px(1)));
}

void term_area(std::string_view label_words, ImVec2 a, ImVec2 b, const std::string& more) {
  const Term* term = find_term(label_words);
  if (!term || b.x <= a.x || b.y <= a.y) return;
  const ImVec2 cursor = ImGui::GetCursorScreenPos();
  draw_term_line(ImGui::GetWindowDrawList(), a.x, b.x, b.y);
  ImGui::SetCursorScreenPos(a);
  const std::string id = "term " + std::string(term->name);
  ImGui::SetNextItemAllowOverlap();
  ImGui::InvisibleButton(id.c_str(), {b.x - a.x, b.y - a.y});
  term_tooltip(label_words, more);
  ImGui::SetCursorScreenPos(cursor);
}

}  // namespace canopy::app
