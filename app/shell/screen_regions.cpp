#include "app/shell/screen_regions.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <tuple>

#include "app/state/words.h"
#include "app/ui/look.h"
#include "app/ui/widgets.h"

namespace canopy::app {
namespace {

constexpr ImGuiWindowFlags kFixed = ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                                    ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoSavedSettings |
                                    ImGuiWindowFlags_NoBringToFrontOnFocus | ImGuiWindowFlags_NoScrollWithMouse |
                                    ImGuiWindowFlags_NoFocusOnAppearing;

}  // namespace

void draw_fixed(const char* name, ImVec2 pos, ImVec2 size, Colour background, const std::function<void()>& contents) {
  ImGui::SetNextWindowPos(pos);
  ImGui::SetNextWindowSize(size);
  ImGui::PushStyleColor(ImGuiCol_WindowBg, background);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowMinSize, {1, 1});
  ImGui::Begin(name, nullptr, kFixed);
  ImGui::PopStyleVar(2);
  contents();
  ImGui::End();
  ImGui::PopStyleColor();
}

namespace {

constexpr float kCardWidth = 620, kRegionsPad = 18, kDisc = 10, kWordsPitch = 17, kRowGap = 6, kNameWidth = 168;
constexpr float kLeastSide = 12, kCardHead = 34, kCardFoot = 44;

void draw_disc(ImDrawList* list, ImVec2 centre, size_t number, float reach) {
  const Theme& t = colours();
  const std::string figure = std::to_string(number);
  list->AddCircleFilled(centre, look().scale * reach, t.accent);
  draw_text_middle(list, centre.x - text_size(Type::mono_semibold, figure).x * 0.5f, centre.y, Type::mono_semibold,
                   t.on_accent, figure);
}

void draw_frames(ImDrawList* list, const std::vector<ScreenRegion>& told, const ImVec4& card) {
  for (const ScreenRegion& each : told) {
    const ImVec2 a = each.pos, b = {a.x + each.size.x, a.y + each.size.y};
    list->AddRect({a.x + px(2), a.y + px(2)}, {b.x - px(2), b.y - px(2)}, colours().accent, px(4), px(1.5f));
  }
  const std::vector<ImVec2> marks = region_marks(told, card, look().scale);
  for (size_t i = 0; i < marks.size(); ++i) draw_disc(list, marks[i], i + 1, kRegionMark);
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
      draw_disc(list, {at.x + px(kDisc), y + px(kDisc)}, i + 1, kDisc);
      draw_text_middle(list, at.x + px(kDisc) * 2 + px(8), y + px(kDisc), Type::base_semibold, colours().text,
                       elided(Type::base_semibold, region_title(told[i].name), px(kNameWidth - 2 * kDisc - 16)));
      block.draw(list, {at.x + px(kNameWidth), y + px(2)}, words, Type::base, colours().text2, px(kWordsPitch));
    }
    y += height + px(kRowGap);
  }
  return y - at.y;
}

/// Where the card is, in the middle of the window; beside it there is room for the marks of the parts.
ImVec4 region_card(const std::vector<ScreenRegion>& told, ImVec2 area) {
  const float width = std::min(px(kCardWidth), area.x - px(kRegionMark * 4 + 8));
  const float parts = list_parts(nullptr, told, {0, 0}, width - px(kRegionsPad) * 2);
  const float height = std::min(px(kRegionsPad) * 2 + px(kCardHead) + parts + px(kCardFoot), area.y - px(16));
  const float x = std::floor((area.x - width) * 0.5f), y = std::floor((area.y - height) * 0.5f);
  return {x, y, x + width, y + height};
}

/// Draws the card; true when one of its buttons was pressed.
bool draw_region_card(const std::vector<ScreenRegion>& told, const ImVec4& card, CommandSink& sink) {
  const float inner = card.z - card.x - px(kRegionsPad) * 2, parts = list_parts(nullptr, told, {0, 0}, inner);
  ImGui::SetCursorPos({card.x, card.y});
  ImGui::PushStyleColor(ImGuiCol_ChildBg, colours().raised);
  ImGui::PushStyleVar(ImGuiStyleVar_ChildRounding, px(8));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(kRegionsPad), px(kRegionsPad)});
  ImGui::BeginChild("Parts", {card.z - card.x, card.w - card.y},
                    ImGuiChildFlags_AlwaysUseWindowPadding | ImGuiChildFlags_Borders);
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

std::vector<ImVec2> region_marks(const std::vector<ScreenRegion>& told, const ImVec4& card, float scale) {
  const float reach = kRegionMark * scale, step = reach * 0.5f;
  std::vector<ImVec2> marks;
  const auto clear = [&](ImVec2 at) {
    const bool covered =
        at.x + reach > card.x && at.x - reach < card.z && at.y + reach > card.y && at.y - reach < card.w;
    return !covered && std::ranges::none_of(
                           marks, [&](ImVec2 other) { return std::hypot(other.x - at.x, other.y - at.y) < reach * 2; });
  };
  for (const ScreenRegion& each : told) {
    const float top = each.pos.y + reach, bottom = std::max(top, each.pos.y + each.size.y - reach);
    const ImVec2 corner = {each.pos.x + each.size.x - reach - scale, top};
    std::optional<ImVec2> place;
    for (const float x : {corner.x, each.pos.x + reach})
      for (float y = top; y <= bottom && !place; y += step)
        if (clear({x, y})) place = ImVec2(x, y);
    marks.push_back(place.value_or(corner));
  }
  return marks;
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
  const ImVec4 card = region_card(told, viewport->Size);
  const ImVec2 origin = viewport->Pos;
  draw_frames(ImGui::GetWindowDrawList(), told,
              {origin.x + card.x, origin.y + card.y, origin.x + card.z, origin.y + card.w});
  const bool left = draw_region_card(told, card, sink);
  const bool beside = ImGui::IsWindowHovered() && ImGui::IsMouseClicked(ImGuiMouseButton_Left);
  if (left || beside) sink.post(ShellCommand(ShowRegions{false}));
  ImGui::End();
}

}  // namespace canopy::app
