#include "app/bars/layout_switch.h"

#include <algorithm>
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
constexpr float kSwitchHeight = 32, kSwitchPad = 2, kChoicePad = 8, kMoreWidth = 20, kMoreMenuWidth = 300;
constexpr const char* kMoreMenu = "More layouts menu";

// Of the window at 100%; in narrower ones a menu behind the others leads there. In Lab the bar has a mode and memory,
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

bool all_shown(const ViewModel& view) {
  return std::ranges::all_of(kLayouts, [&](const LayoutChoice& choice) { return is_shown(choice, view); });
}

UiCommand command_of(const LayoutChoice& choice) {
  return choice.pages ? ShellCommand(ShowPage{WindowPage::compare}) : ShellCommand(SetLayout{choice.layout});
}

/// The menu of what has no room in the bar, behind a chevron in this place.
void draw_more(const ViewModel& view, CommandSink& sink, ImVec2 from, ImVec2 room) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 to = {from.x + room.x, from.y + room.y};
  ImGui::SetCursorScreenPos(from);
  if (ImGui::InvisibleButton("More layouts", room, ImGuiButtonFlags_EnableNav)) ImGui::OpenPopup(kMoreMenu);
  if (ImGui::IsItemHovered() || ImGui::IsPopupOpen(kMoreMenu))
    list->AddRectFilled(from, to, mix(t.card, t.text, kHoverMix), px(4));
  tooltip("What has no room here");
  draw_icon(list, Icon::chevron, {from.x + room.x * 0.5f, from.y + room.y * 0.5f}, px(12), t.text2);
  ImGui::SetNextWindowPos({from.x, to.y + px(6)}, ImGuiCond_Always);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(8), px(8)});
  if (ImGui::BeginPopup(kMoreMenu)) {
    const ImGuiViewport* viewport = ImGui::GetMainViewport();
    const float width = std::min(px(kMoreMenuWidth), viewport->Pos.x + viewport->Size.x - from.x - px(24));
    for (const LayoutChoice& each : kLayouts) {
      if (is_shown(each, view)) continue;
      if (!choice(each.words, each.words, each.tip, false, true, width)) continue;
      sink.post(command_of(each));
      ImGui::CloseCurrentPopup();
    }
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

}  // namespace

float layout_switch_width(const ViewModel& view) {
  float width = px(kSwitchPad) * 2 + (all_shown(view) ? 0 : px(kMoreWidth));
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
    if (ImGui::InvisibleButton(choice.words, room, ImGuiButtonFlags_EnableNav)) sink.post(command_of(choice));
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
  if (!all_shown(view)) draw_more(view, sink, {x, a.y + px(kSwitchPad)}, {px(kMoreWidth), size.y - px(kSwitchPad) * 2});
  ImGui::SetCursorScreenPos(a);
  ImGui::Dummy(size);
}

}  // namespace canopy::app
