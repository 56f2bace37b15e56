#include "app/shell/screen_regions.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

#include "app/base/terms.h"
#include "app/look/text_block.h"
#include "app/look/widgets.h"

namespace canopy::app {
namespace {

constexpr float kCardWidth = 620, kCardPad = 18, kDisc = 10, kWordsPitch = 17, kRowGap = 6, kNameWidth = 168;
constexpr float kLeastSide = 12, kCardHead = 34, kCardFoot = 44;

void draw_disc(ImDrawList* list, ImVec2 centre, size_t number) {
  const Theme& t = colours();
  const std::string figure = std::to_string(number);
  list->AddCircleFilled(centre, px(kDisc), t.accent);
  draw_text_middle(list, centre.x - text_size(Type::mono_semibold, figure).x * 0.5f, centre.y, Type::mono_semibold,
                   t.on_accent, figure);
}

void draw_frames(ImDrawList* list, const std::vector<ScreenRegion>& told) {
  for (size_t i = 0; i < told.size(); ++i) {
    const ImVec2 a = told[i].pos, b = {a.x + told[i].size.x, a.y + told[i].size.y};
    list->AddRect({a.x + px(2), a.y + px(2)}, {b.x - px(2), b.y - px(2)}, colours().accent, px(4), px(1.5f));
    draw_disc(list, {a.x + px(16), a.y + std::min(told[i].size.y * 0.5f, px(16))}, i + 1);
  }
}

/// Draws the list of parts, or only measures it without a draw list. Returns its height.
float list_parts(ImDrawList* list, const std::vector<ScreenRegion>& told, ImVec2 at, float width) {
  float y = at.y;
  for (size_t i = 0; i < told.size(); ++i) {
    const std::string words(region_words(told[i].name));
    TextBlock block;
    block.layout(words, Type::base, width - px(kNameWidth));
    const float height = std::max(px(kDisc) * 2, block.height(px(kWordsPitch)));
    if (list) {
      draw_disc(list, {at.x + px(kDisc), y + px(kDisc)}, i + 1);
      draw_text_middle(list, at.x + px(kDisc) * 2 + px(8), y + px(kDisc), Type::base_semibold, colours().text,
                       elided(Type::base_semibold, region_title(told[i].name), px(kNameWidth - 2 * kDisc - 16)));
      block.draw(list, {at.x + px(kNameWidth), y + px(2)}, words, Type::base, colours().text2, px(kWordsPitch));
    }
    y += height + px(kRowGap);
  }
  return y - at.y;
}

/// Draws the card in the middle of the window; true when one of its buttons was pressed.
bool draw_region_card(const std::vector<ScreenRegion>& told, ImVec2 area, CommandSink& sink) {
  const float width = std::min(px(kCardWidth), area.x - px(24)), inner = width - px(kCardPad) * 2;
  const float parts = list_parts(nullptr, told, {0, 0}, inner);
  const float height = std::min(px(kCardPad) * 2 + px(kCardHead) + parts + px(kCardFoot), area.y - px(16));
  ImGui::SetCursorPos({std::floor((area.x - width) * 0.5f), std::floor((area.y - height) * 0.5f)});
  ImGui::PushStyleColor(ImGuiCol_ChildBg, colours().raised);
  ImGui::PushStyleVar(ImGuiStyleVar_ChildRounding, px(8));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(kCardPad), px(kCardPad)});
  ImGui::BeginChild("Parts", {width, height}, ImGuiChildFlags_AlwaysUseWindowPadding | ImGuiChildFlags_Borders);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  draw_text_middle(list, at.x, at.y + px(10), Type::title, colours().text, "What am I looking at");
  list_parts(list, told, {at.x, at.y + px(kCardHead)}, inner);
  ImGui::SetCursorScreenPos({at.x, at.y + px(kCardHead) + parts + px(6)});
  ButtonSpec keys{"Keyboard shortcuts", Icon::none, ButtonKind::line}, close{"Close", Icon::none, ButtonKind::primary};
  close.tooltip = "Esc or F1";
  const bool closed = button(close);
  ImGui::SameLine(0, px(8));
  const bool wants_keys = button(keys);
  if (wants_keys) sink.post(ShowHelp{});
  ImGui::EndChild();
  ImGui::PopStyleVar(2);
  ImGui::PopStyleColor();
  return closed || wants_keys;
}

}  // namespace

std::vector<ScreenRegion> told_regions(const std::vector<ScreenRegion>& drawn) {
  std::vector<ScreenRegion> told;
  for (const ScreenRegion& each : drawn) {
    const bool room = each.size.x >= kLeastSide && each.size.y >= kLeastSide;
    const bool known = std::ranges::any_of(told, [&](const ScreenRegion& other) { return other.name == each.name; });
    if (room && !known && !region_words(each.name).empty()) told.push_back(each);
  }
  std::ranges::stable_sort(told, {}, [](const ScreenRegion& r) { return std::tuple(r.pos.y, r.pos.x); });
  return told;
}

void draw_regions(const std::vector<ScreenRegion>& drawn, CommandSink& sink) {
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  ImGui::SetNextWindowPos(viewport->Pos);
  ImGui::SetNextWindowSize(viewport->Size);
  ImGui::PushStyleColor(ImGuiCol_WindowBg, IM_COL32(5, 8, 7, 150));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 0);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, 0);
  ImGui::Begin("What am I looking at", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                   ImGuiWindowFlags_NoDocking);
  ImGui::PopStyleVar(3);
  ImGui::PopStyleColor();
  const std::vector<ScreenRegion> told = told_regions(drawn);
  draw_frames(ImGui::GetWindowDrawList(), told);
  const bool left = draw_region_card(told, viewport->Size, sink);
  const bool beside = ImGui::IsWindowHovered() && ImGui::IsMouseClicked(ImGuiMouseButton_Left);
  if (left || beside) sink.post(ShellCommand(ShowRegions{false}));
  ImGui::End();
}

}  // namespace canopy::app
