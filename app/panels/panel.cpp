#include "app/panels/panel.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/base/terms.h"
#include "app/look/text_block.h"
#include "app/look/widgets.h"
#include "app/panels/term_words.h"

namespace canopy::app {
namespace {

constexpr float kLinePitch = 17;

}  // namespace

PanelBody::PanelBody(const char* id, float padding_x, float padding_y) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(padding_x), px(padding_y)});
  ImGui::PushStyleVar(ImGuiStyleVar_ChildBorderSize, 0);
  ImGui::PushStyleVar(ImGuiStyleVar_ChildRounding, 0);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, colours().panel);
  ImGui::BeginChild(id, {0, 0}, ImGuiChildFlags_AlwaysUseWindowPadding | ImGuiChildFlags_NavFlattened);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar(3);
}

PanelBody::~PanelBody() {
  ImGui::EndChild();
}

void empty_panel(std::string_view sentence) {
  const ImVec2 at = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
  TextBlock block;
  block.layout(sentence, Type::base, std::max(px(80), std::min(room.x, px(320))));
  const float pitch = px(20);
  const ImVec2 pos = {std::floor(at.x + (room.x - block.widest()) * 0.5f),
                      std::floor(at.y + std::max(0.0f, (room.y - block.height(pitch)) * 0.4f))};
  block.draw(ImGui::GetWindowDrawList(), pos, sentence, Type::base, colours().text3, pitch);
}

float bar_card(const char* id, float width, Colour bar, std::string_view title, const std::string& words,
               const std::string& more) {
  const Theme& t = colours();
  const float room = width - px(12 + 3 + 12), pitch = px(kLinePitch);
  TextBlock first, second;
  first.layout(words, Type::secondary, room);
  second.layout(more, Type::secondary, room);
  const float first_height = words.empty() ? 0 : first.height(pitch),
              second_height = more.empty() ? 0 : second.height(pitch);
  const float height = std::ceil(px(10 + 18 + 9) + first_height + second_height);
  const ImVec2 a = ImGui::GetCursorScreenPos(), b = {a.x + width, a.y + height};
  ImGui::InvisibleButton(id, {std::max(1.0f, width), height});
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(a, b, t.card, px(6));
  list->AddRect(a, b, t.line, px(6), px(1));
  list->AddRectFilled(a, {a.x + px(3), b.y}, bar, px(6), ImDrawFlags_RoundLeft);
  const float x = a.x + px(15);
  float y = a.y + px(9);
  draw_text(list, {x, y}, Type::secondary_semibold, t.text, elided(Type::secondary_semibold, title, room));
  y += px(19);
  if (!words.empty()) first.draw(list, {x, y}, words, Type::secondary, t.text2, pitch);
  if (!more.empty()) second.draw(list, {x, y + first_height}, more, Type::secondary, t.text2, pitch);
  return height;
}

void pair_line(std::string_view left, std::string_view right, const std::string& tooltip_text) {
  pair_line(ImGui::GetContentRegionAvail().x, left, right, tooltip_text);
}

void pair_line(float room, std::string_view left, std::string_view right, const std::string& tooltip_text) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = px(kLinePitch);
  ImGui::PushID(left.data(), left.data() + left.size());
  ImGui::InvisibleButton("pair", {std::max(1.0f, room), height});
  ImGui::PopID();
  term_tooltip(left, tooltip_text);
  ImDrawList* list = ImGui::GetWindowDrawList();
  draw_text_middle(list, at.x, at.y + height * 0.5f, Type::secondary, colours().text2, left);
  if (find_term(left))
    draw_term_line(list, at.x, at.x + text_size(Type::secondary, left).x, at.y + height * 0.5f + px(8));
  draw_text_middle(list, at.x + room - text_size(Type::mono, right).x, at.y + height * 0.5f, Type::mono, colours().text,
                   right);
}

}  // namespace canopy::app
