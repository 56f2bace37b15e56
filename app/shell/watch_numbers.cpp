#include "app/shell/watch_numbers.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "app/look/dash.h"
#include "app/look/widgets.h"
#include "app/panels/term_words.h"

namespace canopy::app {
namespace {

constexpr float kNumbersMargin = 16, kBetween = 18, kChipPad = 14;
constexpr const char* kDeviceMenuOfWatch = "Other devices";

void hover_area(const char* id, ImVec2 a, ImVec2 b, const std::string& why) {
  if (b.x <= a.x || b.y <= a.y) return;
  ImGui::SetCursorScreenPos(a);
  ImGui::InvisibleButton(id, {b.x - a.x, b.y - a.y});
  term_tooltip(id, why);
}

/// Draws a number with its title and subtitle at its right; returns the right edge, or `x` if there is no room.
float draw_number(const char* id, const WatchNumber& number, float x, float right, ImVec2 pos, ImVec2 size, float em,
                  bool subtitles) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float middle = pos.y + size.y * 0.5f, height = text_height(Type::key_figure, em);
  const float scale = height / text_height(Type::key_figure);
  const float figure = text_size(Type::key_figure, number.value).x * scale;
  const float unit = number.unit.empty() ? 0 : px(6) + text_size(Type::figure, number.unit).x;
  const bool second = subtitles && !number.subtitle.empty();
  const float words_x = x + figure + unit + px(12);
  const float title = text_size(Type::base_semibold, number.title).x;
  if (words_x + std::min(title, px(60)) > right) return x;
  list->AddText(font_of(Type::key_figure), height, {x, std::floor(middle - height * 0.5f)}, t.text, number.value.data(),
                number.value.data() + number.value.size());
  if (unit > 0) draw_text_middle(list, x + figure + px(6), middle + px(3), Type::figure, t.text3, number.unit);
  const float room = right - words_x;
  const std::string words = elided(Type::base_semibold, number.title, room);
  draw_text_middle(list, words_x, middle - (second ? px(9) : 0), Type::base_semibold, t.text, words);
  float end = words_x + text_size(Type::base_semibold, words).x;
  draw_term_line(list, words_x, end, middle - (second ? px(9) : 0) + px(9));
  if (second) {
    const std::string below = elided(Type::secondary, number.subtitle, room);
    draw_text_middle(list, words_x, middle + px(9), Type::secondary, t.text3, below);
    end = std::max(end, words_x + text_size(Type::secondary, below).x);
  }
  hover_area(id, {x, pos.y + px(4)}, {end, pos.y + size.y - px(4)}, number.why);
  return end;
}

void draw_divider(float x, ImVec2 pos, ImVec2 size) {
  ImGui::GetWindowDrawList()->AddLine({std::floor(x) + 0.5f, pos.y + px(12)},
                                      {std::floor(x) + 0.5f, pos.y + size.y - px(12)}, colours().line);
}

void draw_dashed_badge(ImDrawList* list, float x, float middle, const std::string& words) {
  const Theme& t = colours();
  const float width = text_size(Type::caption, words).x + px(10);
  add_dashed_rect(list, {x, middle - px(9)}, {x + width, middle + px(9)}, px(3), {px(3), px(2)}, t.text3, px(1));
  draw_text_middle(list, x + px(5), middle, Type::caption, t.text2, words);
}

void draw_device_choices(const ViewModel& view, ImVec2 corner, CommandSink& sink) {
  ImGui::SetNextWindowPos(corner, ImGuiCond_Always, {1, 0});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(8), px(8)});
  if (ImGui::BeginPopup(kDeviceMenuOfWatch)) {
    label(Type::secondary, colours().text2, "Predicted from a profile of the device");
    for (const WhatIfDevice& each : view.what_if.known) {
      const bool chosen = as_if_device(view.shell) == each.choice;
      if (!choice(each.choice.c_str(), each.name, each.detail, chosen, true, px(280))) continue;
      sink.post(ShellCommand(SetAsIfOn{each.choice}));
      ImGui::CloseCurrentPopup();
    }
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

/// Draws the chip at the right end; returns its left edge.
float draw_chip(const ViewModel& view, const WatchNumber& number, const std::string& name, float right, ImVec2 pos,
                ImVec2 size, bool subtitles, CommandSink& sink) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float middle = pos.y + size.y * 0.5f, half = std::min(px(23), size.y * 0.5f - px(5));
  const float caption = std::max(text_size(Type::caption, "as if on").x, text_size(Type::base_medium, name).x);
  const float figure = text_size(Type::ratio, number.value).x;
  const float badge =
      std::max(text_size(Type::caption, number.badge).x + px(10), text_size(Type::caption, "over plain").x);
  const float width = px(kChipPad) * 2 + caption + px(14) + figure + px(12) + badge + px(22);
  const float left = right - width;
  if (left < pos.x + px(kNumbersMargin)) return right;
  ImGui::SetCursorScreenPos({left, middle - half});
  if (ImGui::InvisibleButton("As if on", {width, half * 2}, ImGuiButtonFlags_EnableNav))
    ImGui::OpenPopup(kDeviceMenuOfWatch);
  if (ImGui::IsItemHovered()) list->AddRectFilled({left, middle - half}, {right, middle + half}, t.card, px(6));
  tooltip(number.why.c_str());
  add_dashed_rect(list, {left, middle - half}, {right, middle + half}, px(6), {px(4), px(3)}, t.ctl, px(1));
  float x = left + px(kChipPad);
  const bool two = subtitles && half > px(16);
  if (two) draw_text_middle(list, x, middle - px(9), Type::caption, t.text2, "as if on");
  draw_text_middle(list, x, middle + (two ? px(8) : 0), Type::base_medium, t.text, name);
  x += caption + px(14);
  draw_text_middle(list, x, middle, Type::ratio, number.shown ? t.accent_text : t.text3, number.value);
  x += figure + px(12);
  draw_dashed_badge(list, x, middle - (two ? px(9) : 0), number.badge);
  if (two) draw_text_middle(list, x, middle + px(10), Type::caption, t.text2, "over plain");
  draw_icon(list, Icon::chevron, {right - px(16), middle}, px(14), t.text2);
  draw_device_choices(view, {right, middle + half + px(4)}, sink);
  return left;
}

void draw_sparkline(ImDrawList* list, const BudgetLine& line, ImVec2 a, ImVec2 b) {
  const Theme& t = colours();
  const auto at = [&](float x, float y) { return ImVec2(a.x + (b.x - a.x) * x, b.y - (b.y - a.y) * y); };
  if (line.plain >= 0) {
    const ImVec2 level[] = {at(0, line.plain), at(1, line.plain)};
    add_dashed(list, level, {px(1), px(3)}, t.text3, px(1));
  }
  for (const BudgetLine::Point& point : line.curve) list->PathLineTo(at(point.x, point.y));
  list->PathStroke(t.accent, px(1.5f));
  const ImVec2 own = at(line.own.x, line.own.y);
  list->AddCircleFilled(own, px(3), t.text, 12);
}

}  // namespace

void draw_watch_numbers(const ViewModel& view, const WatchNumbers& numbers, ImVec2 pos, ImVec2 size, bool subtitles,
                        CommandSink& sink) {
  const float margin = px(kNumbersMargin), gap = px(kBetween);
  float right = pos.x + size.x - margin;
  if (numbers.elsewhere.shown)
    right = draw_chip(view, numbers.elsewhere, numbers.device, right, pos, size, subtitles, sink) - gap;
  float x = pos.x + margin;
  if (numbers.tokens.shown) {
    x = draw_number("Tokens per pass", numbers.tokens, x, right, pos, size, subtitles ? 40 : 28, subtitles);
    if (x + gap * 2 + px(120) < right && numbers.cost.shown) draw_divider(x + gap, pos, size);
    x += gap * 2;
  }
  if (numbers.cost.shown)
    draw_number("Cost of a pass", numbers.cost, x, right, pos, size, subtitles ? 24 : 20, subtitles);
}

/// Draws the question of the game with its answers.
static void draw_question(ImVec2 pos, ImVec2 size, float right, WidthGame& game) {
  const float middle = pos.y + size.y * 0.5f, x = pos.x + px(kNumbersMargin);
  float answers = 0;
  for (const WidthAnswer& answer : kWidthAnswers) {
    ButtonSpec spec{answer.words, Icon::none, ButtonKind::line};
    spec.height = 24;
    answers += button_size(spec).x + px(6);
  }
  const std::string question =
      first_fitting(Type::base_semibold,
                    {"How many guesses would have been best for this pass?", "How many guesses were best?", "Best?"},
                    right - x - answers - px(12));
  draw_text_middle(ImGui::GetWindowDrawList(), x, middle, Type::base_semibold, colours().text, question);
  float at = x + text_size(Type::base_semibold, question).x + px(12);
  for (size_t i = 0; i < kWidthAnswers.size(); ++i) {
    ButtonSpec spec{kWidthAnswers[i].words, Icon::none, ButtonKind::line};
    spec.height = 24;
    ImGui::SetCursorScreenPos({at, std::floor(middle - px(12))});
    if (button(spec)) game.answer(i);
    at += button_size(spec).x + px(6);
  }
}

/// Draws words as far as they fit before `right`; returns where they end, or `x` if there is no room.
static float put(float x, float right, float middle, Type type, Colour colour, const std::string& words) {
  if (words.empty() || x + px(24) > right) return x;
  const std::string fits = elided(type, words, right - x);
  draw_text_middle(ImGui::GetWindowDrawList(), x, middle, type, colour, fits);
  return x + text_size(type, fits).x;
}

static float badge_width(const std::string& badge) {
  return badge.empty() ? 0 : px(18) + text_size(Type::caption, badge).x;
}

/// The width of the question and its answer with their badge.
static float said_width(const BudgetLine& line) {
  return text_size(Type::base_semibold, line.question).x + px(12) + text_size(Type::base, line.sentence).x +
         badge_width(line.badge);
}

/// Draws the question and its answer, then what another device would do. Nothing that is predicted stands there without
/// its badge: the answer is cut before it, and the other device is left out.
static void draw_said(const BudgetLine& line, float x, float middle, float right) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float answer = px(12) + put(x, right, middle, Type::base_semibold, t.text, line.question);
  x = put(answer, right - badge_width(line.badge), middle, Type::base, t.text2, line.sentence);
  if (x == answer) return;
  if (!line.badge.empty()) draw_dashed_badge(list, x + px(8), middle, line.badge);
  x += badge_width(line.badge) + px(14);
  for (const std::string* words : {&line.elsewhere, &line.elsewhere_brief}) {
    if (words->empty() || x + text_size(Type::base, *words).x + badge_width("predicted") > right) continue;
    x = put(x, right, middle, Type::base, t.text2, *words);
    draw_dashed_badge(list, x + px(8), middle, "predicted");
    return;
  }
}

bool draw_budget_line(const BudgetLine& line, ImVec2 pos, ImVec2 size, bool unfolded, WidthGame& game) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float middle = pos.y + size.y * 0.5f;
  ButtonSpec unfold{"Unfold", Icon::none};
  unfold.words = unfolded ? "Fold" : "Unfold";
  unfold.on = unfolded;
  unfold.tooltip = "The whole curve: speed for every number of guesses";
  const ImVec2 wanted = button_size(unfold);
  float right = pos.x + size.x - px(8) - wanted.x;
  ImGui::SetCursorScreenPos({right, std::floor(middle - wanted.y * 0.5f)});
  const bool pressed = button(unfold);
  ButtonSpec play{"Guess it", Icon::none};
  play.words = game.on() ? "End the game" : "Guess it";
  play.on = game.on();
  play.tooltip = "For each pass, guess how many guesses would have been best, before it is said";
  right -= button_size(play).x + px(4);
  ImGui::SetCursorScreenPos({right, std::floor(middle - wanted.y * 0.5f)});
  if (button(play)) game.set(!game.on());
  if (game.asking()) {
    draw_question(pos, size, right - px(8), game);
    return pressed;
  }
  if (!line.curve.empty() && pos.x + px(kNumbersMargin) + said_width(line) < right - px(160 + 16)) {
    draw_sparkline(list, line, {right - px(160), pos.y + px(7)}, {right - px(16), pos.y + size.y - px(7)});
    right -= px(160);
  }
  right -= px(16);
  const float x = pos.x + px(kNumbersMargin);
  if (game.verdict().empty()) {
    draw_said(line, x, middle, right);
    return pressed;
  }
  const float end = put(x, right, middle, Type::base_semibold, t.text, game.verdict());
  put(end + px(12), right, middle, Type::base, t.text2, game.points());
  return pressed;
}

}  // namespace canopy::app
