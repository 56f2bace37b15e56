#include "app/compare/race_lanes.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "app/charts/ticks.h"
#include "app/look/widgets.h"

namespace canopy::app {
namespace {

constexpr float kRaceHead = 44, kLane = 30, kAxis = 28, kLaneBar = 20;
constexpr float kNames = 132, kEnds = 76, kRaceInset = 16;
constexpr float kFutureAlpha = 0.35f;
constexpr float kOwnCap = 2.5f;

std::string seconds_words(double ms) {
  const double s = ms / 1000;
  return fixed(s, s < 1 ? 3 : s < 100 ? 2 : 1) + " s";
}

/// Where the clock is in the lanes.
struct RaceScale {
  float left = 0, right = 0;
  double end_ms = 1;

  float x(double ms) const { return left + (right - left) * static_cast<float>(ms / end_ms); }
  double ms(float x) const { return std::clamp(double{x - left} / double{right - left}, 0.0, 1.0) * end_ms; }
};

void draw_race_head(const ComparisonState& state, ImVec2 pos, float width, CommandSink& sink) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const bool there = state.race_end() > 0 && !state.writing;
  const float top = pos.y + px(8), middle = top + px(14);
  ImGui::SetCursorScreenPos({pos.x + px(kRaceInset), top});
  if (icon_button("To the start", Icon::first, "To the start", there)) sink.post(ComparisonCommand(SeekRace{0.0}));
  ImGui::SameLine(0, px(4));
  const bool playing = state.race.playing;
  if (icon_button("Play the race", playing ? Icon::pause : Icon::play, playing ? "Pause" : "Play from here", there))
    sink.post(ComparisonCommand(PlayRace{!playing}));
  ImGui::SameLine(0, px(4));
  if (icon_button("To the end", Icon::next, "To the end", there)) sink.post(ComparisonCommand(SeekRace{}));
  float x = ImGui::GetItemRectMax().x + px(14);
  const std::string clock = seconds_words(state.race_now());
  draw_text_middle(list, x, middle, Type::mono, t.text, clock);
  x += text_size(Type::mono, clock).x + px(10);
  const double slower = race_slowdown(state.race_end());
  const std::string pace = slower > 1 ? "one clock for all, played " + fixed(slower, 0) + " times slower"
                                      : std::string("one clock for all, played as it was");
  // The legend at the right, as far as there is room.
  float right = pos.x + width - px(kRaceInset);
  const struct {
    const char* words;
    bool own;
  } marks[] = {{"target's own", true}, {"drafted, accepted", false}};
  for (const auto& mark : marks) {
    const float wide = text_size(Type::secondary, mark.words).x + px(18);
    if (right - wide < x + px(180)) break;
    right -= wide;
    if (mark.own)
      list->AddRectFilled({right, middle - px(1)}, {right + px(11), middle + px(2)}, t.bonus);
    else
      list->AddRectFilled({right, middle - px(5)}, {right + px(10), middle + px(5)}, t.accepted);
    draw_text_middle(list, right + px(18), middle, Type::secondary, t.text2, mark.words);
    right -= px(18);
  }
  draw_text_middle(list, x, middle, Type::secondary, t.text3,
                   first_fitting(Type::secondary, {pace, "one clock for all", ""}, right - x));
}

void draw_lane(const ComparedReply& reply, const RaceScale& scale, double now_ms, uint32_t most, float base) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const double pixels_per_ms = double{scale.right - scale.left} / scale.end_ms;
  if (reply.rounds.empty()) {  // a server tells no rounds
    const float to = scale.x(reply.decode_ms), now = std::clamp(scale.x(now_ms), scale.left, to);
    list->AddRectFilled({scale.left, base - px(8)}, {now, base}, t.rest);
    list->AddRectFilled({now, base - px(8)}, {to, base}, faded(t.rest, kFutureAlpha));
    return;
  }
  for (const LaneBar& bar : lane_bars(reply.rounds, pixels_per_ms, px(2))) {
    const float a = scale.x(bar.begin_ms), b = scale.x(bar.end_ms);
    const float wide = std::max(1.0f, b - a - (b - a > px(4) ? px(1) : 0));
    const float unit = px(kLaneBar) / static_cast<float>(std::max(most, 1u));
    const float height = std::max(px(kOwnCap), unit * static_cast<float>(bar.emitted));
    const float cap = bar.own > 0 ? std::min(height, px(kOwnCap)) : 0;
    const float strength = bar.end_ms <= now_ms ? 1 : kFutureAlpha;
    if (height > cap) list->AddRectFilled({a, base - height + cap}, {a + wide, base}, faded(t.accepted, strength));
    if (cap > 0) list->AddRectFilled({a, base - height}, {a + wide, base - height + cap}, faded(t.bonus, strength));
  }
}

void draw_time_axis(const RaceScale& scale, float top, float bottom) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const Ticks ticks = ticks_to(scale.end_ms / 1000, 8, false);
  for (size_t i = 0; i < ticks.at.size(); ++i) {
    const float x = std::floor(scale.x(ticks.at[i] * 1000)) + 0.5f;
    if (x > scale.right + 1) break;
    list->AddLine({x, top}, {x, bottom}, t.grid);
    const std::string& words = ticks.labels[i];
    draw_text(list, {x - text_size(Type::mono_caption, words).x * 0.5f, bottom + px(5)}, Type::mono_caption, t.text3,
              words);
  }
  draw_text(list, {scale.right + px(kEnds) - text_size(Type::caption, "seconds").x - px(8), bottom + px(5)},
            Type::caption, t.text3, "seconds");
}

void draw_clock(const ComparisonState& state, const RaceScale& scale, float top, float bottom) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float x = std::floor(scale.x(std::min(state.race_now(), scale.end_ms))) + 0.5f;
  list->AddLine({x, top}, {x, bottom}, colours().text, px(1.5f));
  list->AddTriangleFilled({x - px(5), top - px(7)}, {x + px(5), top - px(7)}, {x, top}, colours().text);
}

uint32_t most_emitted(const ComparisonState& state) {
  uint32_t most = 4;
  for (const auto& [key, reply] : state.replies)
    for (const RaceRound& round : reply.rounds) most = std::max(most, round.emitted);
  return most;
}

}  // namespace

float race_height(size_t lanes) {
  return kRaceHead + kLane * static_cast<float>(lanes) + kAxis + 12;
}

void draw_race(const ComparisonState& state, const CompareFigures& figures, ImVec2 pos, ImVec2 size,
               CommandSink& sink) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(pos, {pos.x + size.x, pos.y + size.y}, t.panel);
  draw_race_head(state, pos, size.x, sink);
  const float left = pos.x + px(kRaceInset);
  RaceScale scale{left + px(kNames), pos.x + size.x - px(kEnds), std::max(1.0, state.race_end())};
  const float top = pos.y + px(kRaceHead + 6), bottom = top + px(kLane) * static_cast<float>(figures.columns.size());
  if (state.race_end() > 0) draw_time_axis(scale, top, bottom);
  const uint32_t most = most_emitted(state);
  const double now = state.race_now();
  for (uint32_t i = 0; i < figures.columns.size(); ++i) {
    const float base = std::floor(top + px(kLane) * static_cast<float>(i + 1) - px(4));
    const ColumnFigures& column = figures.columns[i];
    draw_text_middle(list, left, base - px(8), Type::secondary_semibold, t.text,
                     elided(Type::secondary_semibold, column.name, px(kNames - 56)));
    list->AddLine({scale.left, base + 0.5f}, {scale.right, base + 0.5f}, t.line);
    const ComparedReply* reply = state.reply(state.shown_prompt, i);
    if (reply == nullptr) continue;
    const std::string tokens = grouped(reply->tokens_at(now));
    draw_text_middle(list, scale.left - px(12) - text_size(Type::mono, tokens).x, base - px(8), Type::mono, t.text2,
                     tokens);
    draw_lane(*reply, scale, now, most, base);
    if (!reply->ended) continue;
    // Behind the lane's end, and behind the clock where that is about to stand on it.
    const std::string words = seconds_words(reply->decode_ms);
    float x = scale.x(reply->decode_ms) + px(8);
    const float clock = scale.x(now);
    if (clock > x - px(8) && clock < x + text_size(Type::mono_caption, words).x + px(4)) x = std::max(x, clock + px(8));
    draw_text_middle(list, x, base - px(8), Type::mono_caption, column.fastest ? t.accent_text : t.text2, words);
  }
  if (state.race_end() <= 0) return;
  draw_clock(state, scale, top, bottom);
  ImGui::SetCursorScreenPos({scale.left, top - px(8)});
  ImGui::InvisibleButton("Race", {scale.right - scale.left, bottom - top + px(8)});
  if (ImGui::IsItemActive() && !state.writing)
    sink.post(ComparisonCommand(SeekRace{scale.ms(ImGui::GetIO().MousePos.x)}));
}

}  // namespace canopy::app
