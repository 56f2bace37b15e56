#include "app/shell/tour_overlay.h"

#include <imgui_internal.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "app/look/widgets.h"

namespace canopy::app {
namespace {

constexpr float kCardWidths[] = {388, 520, 680};
constexpr float kCardPad = 20, kBriefPad = 14, kStepLine = 18, kTitleLine = 30, kLine = 21, kBarRow = 23, kToken = 36,
                kButtons = 30;
constexpr float kScrim = 0.74f, kAround = 6, kHoleRound = 8;

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
      case TourPart::tree: add_part(holes, places.tree); break;
      case TourPart::numbers: add_part(holes, places.numbers); break;
      case TourPart::path:
        for (const ImVec4& place : places.path) add_part(holes, place);
        break;
    }
  }
  return holes;
}

/// Dims the corners of a hole outside its round frame, but not where they are in another hole.
void round_corners(ImDrawList* list, const ImVec4& hole, const std::vector<ImVec4>& holes, Colour dim) {
  constexpr float kHalfTurn = 3.1415927f;
  const float r = px(kHoleRound);
  const std::array<std::pair<ImVec2, ImVec2>, 4> corners = {{{{hole.x, hole.y}, {hole.x + r, hole.y + r}},
                                                             {{hole.z, hole.y}, {hole.z - r, hole.y + r}},
                                                             {{hole.z, hole.w}, {hole.z - r, hole.w - r}},
                                                             {{hole.x, hole.w}, {hole.x + r, hole.w - r}}}};
  for (size_t i = 0; i < corners.size(); ++i) {
    const ImVec2 at = corners[i].first;
    const bool inside = std::ranges::any_of(holes, [&](const ImVec4& other) {
      return &other != &hole && at.x >= other.x && at.x <= other.z && at.y >= other.y && at.y <= other.w;
    });
    if (inside) continue;
    const float begin = kHalfTurn * (1 + static_cast<float>(i) * 0.5f);
    list->PathLineTo(at);  // first, as the triangles of the fill all begin there
    list->PathArcTo(corners[i].second, r, begin, begin + kHalfTurn * 0.5f, 8);
    list->PathFillConvex(dim);
  }
}

/// Draws the frame of a hole where it is not inside another one, so that overlapping holes have one outline. area: what
/// is left to draw in, with the holes before `next` taken out of it.
void frame_outside(ImDrawList* list, const ImVec4& hole, const std::vector<ImVec4>& holes, size_t next,
                   const ImVec4& area) {
  if (area.z <= area.x || area.w <= area.y) return;
  if (next == holes.size()) {
    list->PushClipRect({area.x, area.y}, {area.z, area.w}, true);
    list->AddRect({hole.x, hole.y}, {hole.z, hole.w}, colours().accent, px(kHoleRound), px(2));
    list->PopClipRect();
    return;
  }
  ImVec4 out = holes[next];
  if (&holes[next] == &hole || overlap_of(out, hole) <= 0) return frame_outside(list, hole, holes, next + 1, area);
  const float line = px(2);  // its own frame lies inside it
  out = {std::clamp(out.x + line, area.x, area.z), std::clamp(out.y + line, area.y, area.w),
         std::clamp(out.z - line, area.x, area.z), std::clamp(out.w - line, area.y, area.w)};
  frame_outside(list, hole, holes, next + 1, {area.x, area.y, area.z, out.y});
  frame_outside(list, hole, holes, next + 1, {area.x, out.w, area.z, area.w});
  frame_outside(list, hole, holes, next + 1, {area.x, out.y, out.x, out.w});
  frame_outside(list, hole, holes, next + 1, {out.z, out.y, area.z, out.w});
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
  const ImDrawFlags flags = list->Flags;
  list->Flags &= ~ImDrawFlags_AAFill;  // the frame covers the edge
  for (const ImVec4& hole : holes) round_corners(list, hole, holes, dim);
  list->Flags = flags;
  for (const ImVec4& hole : holes) frame_outside(list, hole, holes, 0, {pos.x, pos.y, pos.x + size.x, pos.y + size.y});
}

/// The forms that the card of a step can have: narrow and high; lower and wider, where that leaves more to see; and for
/// small windows without the figure and the line above the title.
std::vector<TourCardForm> card_forms(const TourStep& step, float window_width) {
  std::vector<TourCardForm> forms;
  for (const bool brief : {false, true}) {
    float last = 0;
    for (const float wide : kCardWidths) {
      const float width = std::min(px(wide), window_width - px(24)), pad = px(brief ? kBriefPad : kCardPad);
      if (width <= last) break;
      last = width;
      const float words = flow(nullptr, {}, width - pad * 2, step.words) + px(8);
      const float more = brief ? 0 : px(kStepLine) + figure_height(step);
      forms.push_back({{width, pad * 2 + px(kTitleLine) + words + more + px((brief ? 4 : 14) + kButtons)}, brief});
    }
  }
  return forms;
}

/// Gives overlapping holes the same top and bottom where they nearly have, so that their outline has no small steps.
void align(std::vector<ImVec4>& holes) {
  const float near = px(kHoleRound) * 1.5f;
  for (ImVec4& a : holes)
    for (ImVec4& b : holes) {
      if (overlap_of(a, b) <= 0) continue;
      if (std::abs(a.y - b.y) < near) a.y = b.y = std::min(a.y, b.y);
      if (std::abs(a.w - b.w) < near) a.w = b.w = std::max(a.w, b.w);
    }
}

std::vector<ImVec4> moved(std::vector<ImVec4> rects, ImVec2 by) {
  for (ImVec4& r : rects) r = {r.x - by.x, r.y - by.y, r.z - by.x, r.w - by.y};
  return rects;
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

void TourOverlay::draw_card(ImDrawList* list, CommandSink& sink, ImVec2 a, const TourCardForm& form,
                            const TourStep& step, uint32_t index) {
  const Theme& t = colours();
  const ImVec2 b = {a.x + form.size.x, a.y + form.size.y};
  list->AddRectFilled(a, b, t.raised, px(10));
  list->AddRect(a, b, t.ctl, px(10));
  const float pad = px(form.brief ? kBriefPad : kCardPad), inner = form.size.x - pad * 2;
  float x = a.x + pad, y = a.y + pad;
  if (!form.brief) {
    draw_text_middle(list, x, y + px(7), Type::secondary, t.text2,
                     "Tour, step " + std::to_string(index + 1) + " of " + std::to_string(kTourSteps));
    y += px(kStepLine);
  }
  draw_text_middle(list, x, y + px(14), Type::card_title, t.text, elided(Type::card_title, step.title, inner));
  y += px(kTitleLine + 4);
  y += flow(list, {x, y}, inner, step.words) + px(8);
  if (!form.brief) draw_figure(list, {x, y}, inner, step);
  const float row = b.y - pad - px(kButtons) * 0.5f;
  draw_dots(list, {x, row}, index);
  draw_tour_buttons(sink, {b.x - pad, row}, index);
}

void TourOverlay::draw(const ViewModel& view, CommandSink& sink, const TourPlaces& places, const TourFacts& facts) {
  const uint32_t index = view.shell.tour.step;
  const TourStep step = tour_step(index, facts);
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  std::vector<ImVec4> holes = holes_of(step, places);
  for (ImVec4& hole : holes)
    // On whole pixels, so that no seams are seen between the parts of the scrim.
    hole = {std::floor(std::max(hole.x - px(kAround), viewport->Pos.x + px(3))),
            std::floor(std::max(hole.y - px(kAround), viewport->Pos.y + px(3))),
            std::floor(std::min(hole.z + px(kAround), viewport->Pos.x + viewport->Size.x - px(3))),
            std::floor(std::min(hole.w + px(kAround), viewport->Pos.y + viewport->Size.y - px(3)))};
  align(holes);
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
  const TourClear clear = {moved(holes, viewport->Pos), moved(places.pills, viewport->Pos),
                           moved(places.words, viewport->Pos)};
  const std::vector<TourCardForm> forms = card_forms(step, viewport->Size.x);
  const TourCard card = place_tour_card(forms, viewport->Size, clear, look().scale);
  draw_card(list, sink, {viewport->Pos.x + card.pos.x, viewport->Pos.y + card.pos.y}, forms[card.form], step, index);
  use_tour_keys(sink, index);
  ImGui::End();
}

}  // namespace canopy::app
