#include "app/shell/tour_overlay.h"

#include <imgui_internal.h>

#include <algorithm>
#include <cmath>

#include "app/look/widgets.h"

namespace canopy::app {
namespace {

constexpr float kCardWidth = 388, kCardPad = 20, kLine = 21, kBarRow = 23, kToken = 36, kButtons = 30;
constexpr float kScrim = 0.74f, kAround = 6;

/// Lays out words within a width, broken at spaces; with list == null it only measures. Returns the height.
float flow(ImDrawList* list, ImVec2 at, float width, const std::vector<TourWords>& words) {
  const Theme& t = colours();
  const float pitch = px(kLine);
  float x = 0, y = 0;
  for (const TourWords& part : words) {
    const bool token = part.kind != TourWords::Kind::plain;
    const Type type = token ? Type::figure : Type::chat;
    const Colour colour = part.kind == TourWords::Kind::accepted   ? t.accepted_text
                          : part.kind == TourWords::Kind::rejected ? t.rejected_text
                          : part.kind == TourWords::Kind::bonus    ? t.bonus_text
                                                                   : t.text;
    std::string_view rest = part.text;
    while (!rest.empty()) {
      size_t end = token ? std::string_view::npos : rest.find(' ');
      end = end == std::string_view::npos ? rest.size() : end + 1;
      const std::string_view word = rest.substr(0, end);
      rest.remove_prefix(end);
      const float wide = text_size(type, word.substr(0, word.find_last_not_of(' ') + 1)).x;
      if (x > 0 && x + wide > width) {
        x = 0;
        y += pitch;
      }
      if (x == 0 && word == " ") continue;
      if (list) draw_text_middle(list, at.x + x, at.y + y + pitch * 0.5f, type, colour, word);
      x += text_size(type, word).x;
    }
  }
  return y + pitch;
}

float figure_height(const TourStep& step) {
  return step.figure.empty() ? 0 : px(kBarRow) * static_cast<float>(step.figure.size()) + px(8);
}

void draw_figure(ImDrawList* list, ImVec2 at, float width, const TourStep& step) {
  const Theme& t = colours();
  float name = 0;
  uint32_t most = 1;
  for (const TourBar& bar : step.figure) {
    name = std::max(name, text_size(Type::secondary, bar.name).x);
    most = std::max(most, bar.tokens);
  }
  const float token = std::min(px(kToken), (width - name - px(48)) / static_cast<float>(most) - px(4));
  for (const TourBar& bar : step.figure) {
    const float middle = at.y + px(kBarRow) * 0.5f;
    draw_text_middle(list, at.x, middle, Type::secondary, t.text2, bar.name);
    float x = at.x + name + px(14);
    for (uint32_t i = 0; i < bar.tokens; ++i) {
      const Colour colour = i + bar.bonus >= bar.tokens ? t.bonus : t.accepted;
      list->AddRectFilled({x, middle - px(7)}, {x + token, middle + px(7)}, colour, px(3));
      x += token + px(4);
    }
    draw_text_middle(list, x + px(6), middle, Type::mono_semibold, t.text, std::to_string(bar.tokens));
    at.y += px(kBarRow);
  }
}

void add_part(std::vector<ImVec4>& holes, const ImVec4& place) {
  if (place.z > place.x && place.w > place.y) holes.push_back(place);
}

std::vector<ImVec4> holes_of(const TourStep& step, const TourPlaces& places) {
  std::vector<ImVec4> holes;
  for (const TourPart part : step.parts) {
    switch (part) {
      case TourPart::chat: add_part(holes, places.chat); break;
      case TourPart::caption: add_part(holes, places.caption); break;
      case TourPart::tree: add_part(holes, places.tree); break;
      case TourPart::numbers: add_part(holes, places.numbers); break;
      case TourPart::budget: add_part(holes, places.budget); break;
      case TourPart::path:
        for (const ImVec4& place : places.path) add_part(holes, place);
        break;
    }
  }
  return holes;
}

/// Dims everything outside the holes: strips between the heights at which one begins or ends.
void draw_scrim(ImDrawList* list, ImVec2 pos, ImVec2 size, const std::vector<ImVec4>& holes) {
  const Colour dim = with_alpha(colours().scrim, kScrim);
  std::vector<float> edges = {pos.y, pos.y + size.y};
  for (const ImVec4& hole : holes) {
    edges.push_back(std::clamp(hole.y, pos.y, pos.y + size.y));
    edges.push_back(std::clamp(hole.w, pos.y, pos.y + size.y));
  }
  std::sort(edges.begin(), edges.end());
  for (size_t i = 0; i + 1 < edges.size(); ++i) {
    const float top = edges[i], bottom = edges[i + 1];
    if (bottom <= top) continue;
    std::vector<std::pair<float, float>> open;
    for (const ImVec4& hole : holes)
      if (hole.y <= top && hole.w >= bottom) open.push_back({hole.x, hole.z});
    std::sort(open.begin(), open.end());
    float x = pos.x;
    for (const auto& [from, to] : open) {
      if (from > x) list->AddRectFilled({x, top}, {from, bottom}, dim);
      x = std::max(x, to);
    }
    if (x < pos.x + size.x) list->AddRectFilled({x, top}, {pos.x + size.x, bottom}, dim);
  }
  for (const ImVec4& hole : holes) list->AddRect({hole.x, hole.y}, {hole.z, hole.w}, colours().accent, px(8), px(2));
}

float overlap_of(const ImVec4& a, const ImVec4& b) {
  const float w = std::min(a.z, b.z) - std::max(a.x, b.x), h = std::min(a.w, b.w) - std::max(a.y, b.y);
  return w > 0 && h > 0 ? w * h : 0;
}

void draw_dots(ImDrawList* list, ImVec2 at, uint32_t step) {
  const Theme& t = colours();
  for (uint32_t i = 0; i < kTourSteps; ++i) {
    const bool now = i == step;
    const float wide = now ? px(18) : px(7);
    list->AddRectFilled({at.x, at.y - px(3.5f)}, {at.x + wide, at.y + px(3.5f)}, i <= step ? t.accent : t.ctl,
                        px(3.5f));
    at.x += wide + px(6);
  }
}

void draw_tour_buttons(CommandSink& sink, ImVec2 right_middle, uint32_t step) {
  const bool last = step + 1 == kTourSteps;
  ButtonSpec skip{"Skip", Icon::none}, back{"Back", Icon::none, ButtonKind::line},
      next{"Next", Icon::none, ButtonKind::primary};
  skip.tooltip = "Esc. The tour goes on here when you come back";
  next.words = last ? "Done" : "Next";
  back.enabled = step > 0;
  float x = right_middle.x;
  const auto put = [&](const ButtonSpec& spec) {
    const ImVec2 size = button_size(spec);
    x -= size.x;
    ImGui::SetCursorScreenPos({x, std::floor(right_middle.y - size.y * 0.5f)});
    const bool pressed = button(spec);
    x -= px(8);
    return pressed;
  };
  if (put(next)) sink.post(ShellCommand(StepTour{1}));
  if (put(back)) sink.post(ShellCommand(StepTour{-1}));
  if (put(skip)) sink.post(ShellCommand(ShowTour{false}));
}

void use_tour_keys(CommandSink& sink, uint32_t step) {
  const auto pressed = [](ImGuiKey key) { return ImGui::IsKeyPressed(key, false) && ImGui::GetIO().KeyMods == 0; };
  // A presenter has PageUp and PageDown.
  if (pressed(ImGuiKey_RightArrow) || pressed(ImGuiKey_PageDown) || pressed(ImGuiKey_Enter))
    sink.post(ShellCommand(StepTour{1}));
  if ((pressed(ImGuiKey_LeftArrow) || pressed(ImGuiKey_PageUp)) && step > 0) sink.post(ShellCommand(StepTour{-1}));
  if (pressed(ImGuiKey_Escape)) sink.post(ShellCommand(ShowTour{false}));
}

}  // namespace

ImVec2 tour_card_place(ImVec2 card, ImVec2 window, const std::vector<ImVec4>& holes) {
  const float gap = px(20), edge = px(12);
  std::vector<ImVec2> places = {{(window.x - card.x) * 0.5f, (window.y - card.y) * 0.5f},
                                {window.x - card.x - edge, window.y - card.y - edge},
                                {window.x - card.x - edge, edge},
                                {edge, window.y - card.y - edge}};
  for (const ImVec4& hole : holes) {
    const float middle_x = (hole.x + hole.z - card.x) * 0.5f, middle_y = (hole.y + hole.w - card.y) * 0.5f;
    places.push_back({hole.z + gap, middle_y});
    places.push_back({hole.x - gap - card.x, middle_y});
    places.push_back({middle_x, hole.w + gap});
    places.push_back({middle_x, hole.y - gap - card.y});
  }
  ImVec2 best = places.front();
  float least = -1;
  for (ImVec2 place : places) {
    place.x = std::floor(std::clamp(place.x, edge, std::max(edge, window.x - card.x - edge)));
    place.y = std::floor(std::clamp(place.y, edge, std::max(edge, window.y - card.y - edge)));
    float covered = 0;
    for (const ImVec4& hole : holes)
      covered += overlap_of({place.x, place.y, place.x + card.x, place.y + card.y}, hole);
    if (least >= 0 && covered >= least) continue;
    least = covered;
    best = place;
  }
  return best;
}

void TourOverlay::draw(const ViewModel& view, CommandSink& sink, const TourPlaces& places, const TourFacts& facts) {
  const uint32_t index = view.shell.tour.step;
  const TourStep step = tour_step(index, facts);
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  std::vector<ImVec4> holes = holes_of(step, places);
  for (ImVec4& hole : holes)
    hole = {std::max(hole.x - px(kAround), viewport->Pos.x + px(3)),
            std::max(hole.y - px(kAround), viewport->Pos.y + px(3)),
            std::min(hole.z + px(kAround), viewport->Pos.x + viewport->Size.x - px(3)),
            std::min(hole.w + px(kAround), viewport->Pos.y + viewport->Size.y - px(3))};
  ImGui::SetNextWindowPos(viewport->Pos);
  ImGui::SetNextWindowSize(viewport->Size);
  if (drawn_step_ != index) ImGui::SetNextWindowFocus();
  drawn_step_ = index;
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
  ImGui::Begin("Tour", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoDocking |
                   ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoBackground | ImGuiWindowFlags_NoNavInputs);
  ImGui::PopStyleVar();
  ImDrawList* list = ImGui::GetWindowDrawList();
  draw_scrim(list, viewport->Pos, viewport->Size, holes);
  const Theme& t = colours();
  const float width = std::min(px(kCardWidth), viewport->Size.x - px(24)), inner = width - px(kCardPad) * 2;
  const float height = px(kCardPad) * 2 + px(18 + 30) + flow(nullptr, {}, inner, step.words) + px(8) +
                       figure_height(step) + px(14 + kButtons);
  const ImVec2 place = tour_card_place({width, height}, viewport->Size, holes);
  const ImVec2 a = {viewport->Pos.x + place.x, viewport->Pos.y + place.y}, b = {a.x + width, a.y + height};
  list->AddRectFilled(a, b, t.raised, px(10));
  list->AddRect(a, b, t.ctl, px(10));
  float x = a.x + px(kCardPad), y = a.y + px(kCardPad);
  draw_text_middle(list, x, y + px(7), Type::secondary, t.text2,
                   "Tour, step " + std::to_string(index + 1) + " of " + std::to_string(kTourSteps));
  draw_text_middle(list, x, y + px(32), Type::card_title, t.text, elided(Type::card_title, step.title, inner));
  y += px(18 + 30 + 4);
  y += flow(list, {x, y}, inner, step.words) + px(8);
  draw_figure(list, {x, y}, inner, step);
  const float row = b.y - px(kCardPad) - px(kButtons) * 0.5f;
  draw_dots(list, {x, row}, index);
  draw_tour_buttons(sink, {b.x - px(kCardPad), row}, index);
  use_tour_keys(sink, index);
  ImGui::End();
}

}  // namespace canopy::app
