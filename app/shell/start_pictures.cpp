#include "app/shell/start_pictures.h"

#include <cmath>
#include <span>
#include <string_view>

#include "app/look/dash.h"
#include "app/look/fonts.h"
#include "app/look/icons.h"

namespace canopy::app {
namespace {

enum class Tip { root, accepted, rejected, unreached, bonus };

/// A node of the drawn tree: column, row, and parent.
struct TreeSpot {
  float column, row;
  int parent;
  Tip tip;
};
constexpr TreeSpot kTree[] = {
    {0, 0, -1, Tip::root},       {1, 0, 0, Tip::accepted},    {2, 0, 1, Tip::accepted},    {3, 0, 2, Tip::accepted},
    {4, 0, 3, Tip::accepted},    {5, 0, 4, Tip::accepted},    {6, 0, 5, Tip::accepted},    {7, 0, 6, Tip::bonus},
    {1, 2, 0, Tip::rejected},    {2, 2, 8, Tip::unreached},   {3, -2, 2, Tip::rejected},   {4, -2, 10, Tip::unreached},
    {5, -2, 11, Tip::unreached}, {6, -2, 12, Tip::unreached}, {7, -2, 13, Tip::unreached}, {8, -2, 14, Tip::unreached},
    {9, -2, 15, Tip::unreached}, {3, 1, 2, Tip::rejected},    {4, 1, 17, Tip::unreached},  {5, 1, 18, Tip::unreached},
    {6, 1, 19, Tip::unreached},  {7, 1, 20, Tip::unreached},  {7, -1, 6, Tip::rejected},   {8, -1, 22, Tip::unreached},
    {9, -1, 23, Tip::unreached},
};

Colour colour_of(Tip tip) {
  const Theme& t = colours();
  switch (tip) {
    case Tip::root: return t.text;
    case Tip::accepted: return t.accepted;
    case Tip::rejected: return t.rejected;
    case Tip::unreached: return t.unreached;
    case Tip::bonus: return t.bonus;
  }
  return t.text;
}

void draw_edge(ImDrawList* list, ImVec2 from, ImVec2 to, Tip tip) {
  const float half = (to.x - from.x) * 0.5f;
  const ImVec2 b = {from.x + half, from.y}, c = {to.x - half, to.y};
  const Colour colour = colour_of(tip);
  if (tip == Tip::rejected)
    add_dashed_bezier(list, from, b, c, to, {px(4), px(3)}, colour, px(1.4f));
  else if (tip == Tip::bonus)
    add_dashed_bezier(list, from, b, c, to, {px(2), px(2.4f)}, colour, px(2));
  else
    list->AddBezierCubic(from, b, c, to, colour, px(tip == Tip::accepted ? 4.0f : 1.4f));
}

void draw_spot(ImDrawList* list, ImVec2 at, Tip tip) {
  const Theme& t = colours();
  switch (tip) {
    case Tip::root: list->AddCircleFilled(at, px(7), t.text); break;
    case Tip::accepted: draw_check_disc(list, at, px(7), t.accepted, t.on_state); break;
    case Tip::rejected:
      list->AddCircleFilled(at, px(6), t.canvas);
      draw_cross(list, at, px(4), t.rejected, px(2.2f));
      break;
    case Tip::unreached: list->AddCircleFilled(at, px(3), t.unreached); break;
    case Tip::bonus:
      list->AddCircleFilled(at, px(9), t.canvas);
      draw_star(list, at, px(10), t.bonus);
      break;
  }
}

void centred(float x, float y, Type type, Colour colour, std::string_view words) {
  draw_text(ImGui::GetWindowDrawList(), {x - text_size(type, words).x * 0.5f, y}, type, colour, words);
}

}  // namespace

void draw_tree_picture(ImVec2 a, float width) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float left = a.x + std::floor((width - px(34) * 9) * 0.5f), middle = a.y + px(98);
  auto at = [&](const TreeSpot& s) { return ImVec2(left + px(34) * s.column, middle + px(21) * s.row); };
  for (const Tip drawn : {Tip::unreached, Tip::rejected, Tip::bonus, Tip::accepted})
    for (const TreeSpot& s : kTree)
      if (s.tip == drawn) draw_edge(list, at(kTree[s.parent]), at(s), s.tip);
  for (const TreeSpot& s : kTree) draw_spot(list, at(s), s.tip);
}

void draw_pair_picture(ImVec2 a, float width) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float inset = px(24), left = a.x + std::floor((width - px(252)) * 0.5f);
  add_dashed_rect(list, {a.x + inset, a.y + px(22)}, {a.x + width - inset, a.y + px(174)}, px(8), {px(6), px(5)}, t.ctl,
                  px(1.5f));
  constexpr int kLayers = 9, kAuxLayers = 4;
  const float drafter = left + px(178);
  for (int i = 0; i < kLayers; ++i) {
    const float y = a.y + px(38) + px(12) * static_cast<float>(i);
    list->AddRectFilled({left, y}, {left + px(116), y + px(8.5f)}, i % 2 ? t.verify : t.raised, px(2));
  }
  for (int i = 0; i < kAuxLayers; ++i) {
    const float y = a.y + px(60) + px(16) * static_cast<float>(i);
    list->AddRectFilled({drafter, y}, {drafter + px(74), y + px(11)}, t.draft, px(2));
    const ImVec2 from = {left + px(116), a.y + px(42.3f) + px(12) * static_cast<float>(2 * i + 1)};
    const ImVec2 to = {drafter, y + px(5.5f)};
    list->AddBezierCubic(from, {from.x + px(30), from.y}, {to.x - px(30), to.y}, to, t.verify, px(1.6f));
  }
  centred(left + px(58), a.y + px(150), Type::secondary, t.text2, "target");
  centred(drafter + px(37), a.y + px(130), Type::secondary, t.text2, "drafter");
}

}  // namespace canopy::app
