#include "app/bars/layout_switch.h"

#include <cmath>

#include "app/look/widgets.h"

namespace canopy::app {
namespace {

struct LayoutChoice {
  WindowLayout layout;
  bool pages;  // in their place the pages of comparisons
  const char *words, *tip;
};
constexpr LayoutChoice kLayouts[] = {
    {WindowLayout::watch, false, "Watch", "The tree, large, with what it means  F4"},
    {WindowLayout::what_if, false, "What if", "What other devices would make of it"},
    {WindowLayout::lab, false, "Lab", "Every panel, chart and figure  F4"},
    {WindowLayout::lab, true, "Compare", "Ways to decode beside each other, and sweeps over many  F2"},
};
constexpr float kSwitchHeight = 32, kSwitchPad = 2, kChoicePad = 12;

// Of the window at 100%; in narrower ones the palette, or a key, leads there. In Lab the bar has a mode and memory,
// too.
constexpr float kRoomForWhatIf = 760, kRoomForCompare = 1000, kRoomForWhatIfInLab = 1360, kRoomForCompareInLab = 1760;

bool is_on(const LayoutChoice& choice, const ViewModel& view) {
  const bool pages = view.shell.page != WindowPage::rounds;
  return choice.pages ? pages : !pages && view.shell.layout == choice.layout;
}

bool is_shown(const LayoutChoice& choice, const ViewModel& view) {
  const bool what_if = choice.layout == WindowLayout::what_if;
  if ((!what_if && !choice.pages) || is_on(choice, view)) return true;
  const bool lab = view.shell.page == WindowPage::rounds && view.shell.layout == WindowLayout::lab;
  const float room =
      what_if ? (lab ? kRoomForWhatIfInLab : kRoomForWhatIf) : (lab ? kRoomForCompareInLab : kRoomForCompare);
  return ImGui::GetMainViewport()->Size.x >= room * look().scale;
}

float choice_width(const LayoutChoice& choice) {
  return std::ceil(text_size(Type::base_semibold, choice.words).x) + px(kChoicePad) * 2;
}

}  // namespace

float layout_switch_width(const ViewModel& view) {
  float width = px(kSwitchPad) * 2;
  for (const LayoutChoice& choice : kLayouts) width += is_shown(choice, view) ? choice_width(choice) : 0;
  return width;
}

void layout_switch(const ViewModel& view, CommandSink& sink) {
  const Theme& t = colours();
  const ImVec2 a = ImGui::GetCursorScreenPos(), size = {layout_switch_width(view), px(kSwitchHeight)};
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(a, {a.x + size.x, a.y + size.y}, t.card, px(6));
  list->AddRect(a, {a.x + size.x, a.y + size.y}, t.line, px(6));
  float x = a.x + px(kSwitchPad);
  for (const LayoutChoice& choice : kLayouts) {
    if (!is_shown(choice, view)) continue;
    const bool on = is_on(choice, view);
    const ImVec2 from = {x, a.y + px(kSwitchPad)}, room = {choice_width(choice), size.y - px(kSwitchPad) * 2};
    ImGui::SetCursorScreenPos(from);
    if (ImGui::InvisibleButton(choice.words, room, ImGuiButtonFlags_EnableNav))
      sink.post(choice.pages ? ShellCommand(ShowPage{WindowPage::compare}) : ShellCommand(SetLayout{choice.layout}));
    const ImVec2 to = {from.x + room.x, from.y + room.y};
    if (on)
      list->AddRectFilled(from, to, t.accent, px(4));
    else if (ImGui::IsItemHovered())
      list->AddRectFilled(from, to, mix(t.card, t.text, kHoverMix), px(4));
    const Type type = on ? Type::base_semibold : Type::base;
    draw_text_middle(list, from.x + (room.x - text_size(type, choice.words).x) * 0.5f, from.y + room.y * 0.5f, type,
                     on ? t.on_accent : t.text2, choice.words);
    tooltip(choice.tip);
    x += room.x;
  }
  ImGui::SetCursorScreenPos(a);
  ImGui::Dummy(size);
}

}  // namespace canopy::app
