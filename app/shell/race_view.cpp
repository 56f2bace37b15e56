#include "app/shell/race_view.h"

#include <algorithm>
#include <cmath>

#include "app/base/figures.h"
#include "app/charts/ticks.h"
#include "app/look/dash.h"
#include "app/look/widgets.h"

namespace canopy::app {
namespace {

constexpr double kFastestSeconds = 4;  // in which the fastest is done
constexpr float kRaceNames = 150, kRaceRight = 92, kRaceHead = 46, kRaceFoot = 24;

const char* words_of(TimesFrom times) {
  switch (times) {
    case TimesFrom::recorded: return "measured passes";
    case TimesFrom::measured_elsewhere: return "measured elsewhere";
    case TimesFrom::predicted: break;
  }
  return "predicted";
}

void draw_key(ImDrawList* list, float right, float middle) {
  const Theme& t = colours();
  const char* const plain = "plain, one token a pass";
  float x = right - text_size(Type::secondary, plain).x;
  draw_text_middle(list, x, middle, Type::secondary, t.text2, plain);
  const ImVec2 dots[] = {{x - px(28), middle}, {x - px(8), middle}};
  add_dashed(list, dots, {px(2), px(2)}, t.bonus, px(1.5f));
  const char* const added = "added by the big model";
  x -= px(44) + text_size(Type::secondary, added).x;
  draw_text_middle(list, x, middle, Type::secondary, t.text2, added);
  list->AddRectFilled({x - px(18), middle - px(1.5f)}, {x - px(8), middle + px(1.5f)}, t.bonus);
  const char* const guessed = "guessed";
  x -= px(34) + text_size(Type::secondary, guessed).x;
  draw_text_middle(list, x, middle, Type::secondary, t.text2, guessed);
  list->AddRectFilled({x - px(18), middle - px(5)}, {x - px(8), middle + px(5)}, t.accepted);
}

}  // namespace

void RaceView::take(const ViewModel& view) {
  const WhatIfAnswer& answer = view.what_if.answer;
  if (number_ == answer.number && lanes_ == answer.there.size()) return;
  const bool begins = number_ != answer.number;
  number_ = answer.number;
  lanes_ = answer.there.size();
  race_ = race_of(answer);
  if (!begins) return;
  // With motion reduced the end is shown at once.
  running_ = false;
  now_ms_ = race_.axis_ms;
}

void RaceView::draw_controls(ImVec2 pos, ImVec2 size) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float middle = pos.y + px(kRaceHead) * 0.5f;
  const auto control = [&](const char* id, Icon icon, const char* about, ButtonKind kind) {
    ButtonSpec spec{id, icon, kind};
    spec.show_label = false;
    spec.tooltip = about;
    spec.enabled = !race_.empty();
    const bool pressed = button(spec);
    ImGui::SameLine(0, px(8));
    return pressed;
  };
  ImGui::SetCursorScreenPos({pos.x + px(14), middle - px(14)});
  if (control("Begin the race", Icon::first, "From the beginning", ButtonKind::line)) {
    now_ms_ = 0;
    running_ = true;
  }
  if (control("Run the race", running_ ? Icon::pause : Icon::play, running_ ? "Pause" : "Run it on one clock",
              ButtonKind::primary)) {
    running_ = !running_;
    if (running_ && now_ms_ >= race_.axis_ms) now_ms_ = 0;
  }
  if (race_.empty()) return;
  const float x = ImGui::GetCursorScreenPos().x + px(6);
  const std::string clock = milliseconds(std::min(now_ms_, race_.axis_ms));
  draw_text_middle(list, x, middle, Type::figure, t.text, clock);
  const double slower = 1 / race_speed(race_, kFastestSeconds);
  const std::string tokens = counted(race_.lanes.front().tokens, "token", "tokens") + " on one clock";
  const std::string rate = slower >= 1.5 ? ", slowed " + grouped(static_cast<uint64_t>(std::lround(slower))) + " times"
                           : slower < 0.67
                               ? ", " + grouped(static_cast<uint64_t>(std::lround(1 / slower))) + " times as fast"
                               : "";
  const float words = x + text_size(Type::figure, clock).x + px(12), key = px(470);
  const float right = pos.x + size.x - px(14);
  const bool with_key = words + text_size(Type::secondary, tokens + rate).x + key < right;
  draw_text_middle(list, words, middle, Type::secondary, t.text2,
                   first_fitting(Type::secondary, {tokens + rate, tokens}, right - words - (with_key ? key : 0)));
  if (with_key) draw_key(list, right, middle);
}

void RaceView::draw_lane(const ViewModel& view, const RaceLane& lane, ImVec2 pos, ImVec2 size, float left,
                         float right) const {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const WhatIfThere& there = *view.what_if.answer.there[lane.there];
  const float height = size.y, base = pos.y + height * 0.66f;
  const std::string count = grouped(lane.tokens_at(now_ms_));
  const float count_x = left - px(10) - text_size(Type::mono, count).x;
  draw_text_middle(list, pos.x, pos.y + height * 0.38f, Type::base_medium, t.text,
                   elided(Type::base_medium, there.name, px(kRaceNames) - px(62)));
  if (height >= px(34))
    draw_text_middle(list, pos.x, pos.y + height * 0.78f, Type::caption, t.text3, words_of(there.times));
  draw_text_middle(list, count_x, pos.y + height * 0.38f, Type::mono, now_ms_ >= lane.ms ? t.accent_text : t.text2,
                   count);
  const auto x_of = [&](double ms) {
    return left + static_cast<float>(std::min(1.0, ms / race_.axis_ms)) * (right - left);
  };
  const float token = (base - pos.y - px(3)) / static_cast<float>(race_.most_tokens);
  double begin = 0;
  for (const RacePass& pass : lane.passes) {
    const float x0 = x_of(begin),
                x1 = std::max(x0 + 1, x_of(pass.end_ms) - (x_of(pass.end_ms) - x0 > px(4) ? px(1) : 0));
    const bool waits = pass.end_ms > now_ms_;
    const float strength = waits ? 0.35f : 1.0f;
    const float top = base - token * static_cast<float>(pass.guessed);
    list->AddRectFilled({x0, top}, {x1, base}, faded(t.accepted, strength));
    if (pass.added > 0)
      list->AddRectFilled({x0, std::max(pos.y, top - std::max(px(1.5f), std::min(token, px(3))))}, {x1, top},
                          faded(t.bonus, strength));
    begin = pass.end_ms;
    if (begin > race_.axis_ms) break;
  }
  if (lane.plain_ms > 0) {
    const ImVec2 dots[] = {{left, base + px(5)}, {x_of(lane.plain_ms), base + px(5)}};
    add_dashed(list, dots, {px(2), px(3)}, t.bonus, px(1));
  }
  const std::string end = milliseconds(lane.ms);
  const float end_x = std::min(x_of(lane.ms) + px(6), right + px(6));
  draw_text_middle(list, end_x, pos.y + height * 0.36f, Type::mono, now_ms_ >= lane.ms ? t.accent_text : t.text2, end);
  if (lane.plain_ms <= 0 || lane.plain_ms > race_.axis_ms || height < px(34)) return;
  const std::string plain = "plain " + milliseconds(lane.plain_ms);
  const float plain_x = x_of(lane.plain_ms) + px(6);
  if (plain_x + text_size(Type::caption, plain).x < pos.x + size.x)
    draw_text_middle(list, plain_x, base + px(5), Type::caption, t.text3, plain);
}

void RaceView::draw(const ViewModel& view, ImVec2 pos, ImVec2 size) {
  take(view);
  const Theme& t = colours();
  if (running_) {
    now_ms_ += ImGui::GetIO().DeltaTime * 1000 * race_speed(race_, kFastestSeconds);
    if (view.rounds.reduced_motion) now_ms_ = race_.axis_ms;
    running_ = now_ms_ < race_.axis_ms;
    if (running_) keep_drawing(0.1);
  }
  draw_controls(pos, size);
  if (race_.empty()) return;
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float left = pos.x + px(kRaceNames), right = pos.x + size.x - px(kRaceRight);
  const float top = pos.y + px(kRaceHead), bottom = pos.y + size.y - px(kRaceFoot);
  if (right - left < px(120) || bottom - top < px(20)) return;
  const Ticks ticks = ticks_to(race_.axis_ms, 6, false);
  for (size_t i = 0; i < ticks.at.size(); ++i) {
    if (ticks.at[i] > race_.axis_ms * 1.001) break;
    const float x = std::floor(left + static_cast<float>(ticks.at[i] / race_.axis_ms) * (right - left)) + 0.5f;
    list->AddLine({x, top}, {x, bottom}, t.grid);
    draw_text_middle(list, x - text_size(Type::caption, ticks.labels[i]).x * 0.5f, bottom + px(11), Type::caption,
                     t.text3, ticks.labels[i]);
  }
  draw_text_middle(list, right + px(20), bottom + px(11), Type::caption, t.text3, "milliseconds");
  const float lane = std::min((bottom - top) / static_cast<float>(race_.lanes.size()), px(48));
  for (size_t i = 0; i < race_.lanes.size(); ++i) {
    draw_lane(view, race_.lanes[i], {pos.x + px(14), top + lane * static_cast<float>(i)}, {size.x - px(28), lane}, left,
              right);
  }
  if (now_ms_ <= 0 || now_ms_ >= race_.axis_ms) return;
  const float x = left + static_cast<float>(now_ms_ / race_.axis_ms) * (right - left);
  list->AddLine({x, top}, {x, bottom}, t.text, px(1.5f));
  list->AddTriangleFilled({x, top}, {x - px(6), top - px(7)}, {x + px(6), top - px(7)}, t.text);
}

}  // namespace canopy::app
