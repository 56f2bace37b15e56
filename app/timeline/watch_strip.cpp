#include "app/timeline/watch_strip.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "app/look/widgets.h"
#include "app/timeline/transport.h"

namespace canopy::app {
namespace {

constexpr float kStripMargin = 12, kControlsWidth = 288, kTwoRows = 70, kLeastBars = 160, kStripKey = 168;

bool round_button(const char* label, Icon icon, bool enabled, const char* what, ButtonKind kind = ButtonKind::line) {
  ButtonSpec spec{label, icon, kind};
  spec.show_label = false;
  spec.enabled = enabled;
  spec.tooltip = what;
  const bool pressed = button(spec);
  ImGui::SameLine(0, px(6));
  return pressed;
}

void draw_strip_buttons(const RoundsState& rounds, CommandSink& sink) {
  const auto post = [&](RoundsCommand command) { sink.post(UiCommand(std::move(command))); };
  const Playback& play = rounds.playback;
  const bool any = rounds.log->rounds() > 0, paused = play.state == PlayState::paused;
  if (round_button("First pass", Icon::first, any, "First pass  Home")) post(ShowRound{0});
  if (round_button("Previous pass", Icon::previous, any, "Previous pass  F7")) post(StepRound{-1});
  if (round_button("Pause or go on", paused ? Icon::play : Icon::pause, any,
                   paused ? "Go on  F6" : "Pause the view; the model goes on  F6", ButtonKind::primary))
    post(TogglePause{});
  if (round_button("Next pass", Icon::next, any, "Next pass  F8")) post(StepRound{1});
  ButtonSpec slow{"Slow motion", play.slow_motion ? Icon::check : Icon::none};
  slow.on = play.slow_motion;
  slow.enabled = any;
  slow.tooltip = "Each pass in six steps, with a sentence for each  F9";
  if (button(slow)) post(SetSlowMotion{!play.slow_motion});
}

std::string pass_words(const RoundsState& rounds) {
  if (rounds.log->rounds() == 0) return "No pass yet";
  std::string words = "pass " + grouped(rounds.playback.shown + 1) + " of " + grouped(rounds.log->rounds());
  if (is_live(rounds)) return words + " \u00b7 live";
  if (rounds.playback.state == PlayState::following) return words;  // the newest pass of a reply that has ended
  char speed[32];
  std::snprintf(speed, sizeof speed,
                rounds.playback.speed < 0.995 ? " \u00b7 speed \u00d7%.2f" : " \u00b7 speed \u00d7%.1f",
                rounds.playback.speed);
  return words + speed;
}

std::string bar_words(const RoundLog& log, size_t index) {
  const RoundSummary& round = log.summary(index);
  return "Pass " + grouped(index + 1) + ": " + grouped(round.emitted) + (round.emitted == 1 ? " token" : " tokens") +
         ", " + grouped(round.accepted) + " of them guessed";
}

void draw_strip_key(ImDrawList* list, float x, float y) {
  const Theme& t = colours();
  list->AddCircleFilled({x + px(6), y + px(20)}, px(5), t.accepted);
  draw_text_middle(list, x + px(18), y + px(20), Type::secondary, t.text2, "guessed, confirmed");
  list->AddRectFilled({x + px(1), y + px(39)}, {x + px(11), y + px(42)}, t.bonus);
  draw_text_middle(list, x + px(18), y + px(41), Type::secondary, t.text2, "added by the big model");
}

}  // namespace

void WatchStrip::draw(const ViewModel& view, CommandSink& sink) {
  const RoundsState& rounds = view.rounds;
  if (log_.lock() != rounds.log) {
    log_ = rounds.log;
    scale_ = {};
    counted_ = 0;
  }
  for (; counted_ < rounds.log->rounds(); ++counted_) scale_.include(rounds.log->summary(counted_));
  handle_transport_keys(rounds, sink);
  const ImVec2 pos = ImGui::GetWindowPos(), size = ImGui::GetWindowSize();
  const bool two_rows = size.y >= px(kTwoRows);
  const float row = two_rows ? pos.y + px(10) : pos.y + std::floor((size.y - px(28)) * 0.5f);
  ImGui::SetCursorScreenPos({pos.x + px(kStripMargin), row});
  draw_strip_buttons(rounds, sink);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const std::string words = pass_words(rounds);
  float left = pos.x + px(kControlsWidth);
  if (two_rows) {
    draw_text_middle(list, pos.x + px(kStripMargin + 2), row + px(44), Type::secondary, colours().text2, words);
  } else {
    const float room = pos.x + size.x - px(kStripMargin) - left, wide = text_size(Type::secondary, words).x;
    if (wide <= room) draw_text_middle(list, left, row + px(14), Type::secondary, colours().text2, words);
    left += wide;
  }
  left += px(16);
  const bool key = two_rows && size.x > px(900);
  const float right = pos.x + size.x - px(kStripMargin) - (key ? px(kStripKey) : 0);
  if (right - left < px(kLeastBars)) return;
  draw_bars(rounds, sink, {std::floor(left), pos.y}, {std::floor(right - left), size.y});
  if (key) draw_strip_key(list, right + px(16), pos.y + px(4));
}

void WatchStrip::draw_bars(const RoundsState& rounds, CommandSink& sink, ImVec2 pos, ImVec2 size) {
  const Theme& t = colours();
  const RoundLog& log = *rounds.log;
  if (log.rounds() == 0) return;
  ImDrawList* list = ImGui::GetWindowDrawList();
  const double inner = size.x / px(1);
  const size_t shown = rounds.playback.shown;
  const TimelineView at = timeline_view({}, log.rounds(), shown, inner);
  const float base = pos.y + size.y - px(size.y >= px(kTwoRows) ? 18 : 6), top = pos.y + px(8);
  const float token = (base - top) / static_cast<float>(scale_.emitted + 1);
  // In slow motion the pass on show has its bar when its tokens are in the text.
  const bool pending = !rounds.playback.told();
  // With room for the frame around the first bar.
  list->PushClipRect({pos.x - px(5), pos.y}, {pos.x + size.x, pos.y + size.y}, true);
  list->AddLine({pos.x, base + 0.5f}, {pos.x + size.x, base + 0.5f}, t.line);
  for (const TimelineColumn& column : timeline_columns(log, at, inner)) {
    const float a = std::floor(pos.x + px(1) * static_cast<float>(column.x));
    const float b = std::max(a + 1, std::floor(pos.x + px(1) * static_cast<float>(column.x + column.width)));
    const bool past = column.first <= shown, now = column.first <= shown && shown < column.first + column.rounds;
    if (now && pending && column.rounds == 1) continue;
    const float strength = past ? 1.0f : 0.4f;
    const float emitted = static_cast<float>(column.rounds == 1 ? column.most_emitted : column.mean_emitted);
    const float accepted = std::min(emitted, static_cast<float>(column.most_accepted));
    const float guessed = column.rounds == 1 ? accepted : std::max(0.0f, emitted - 1);
    list->AddRectFilled({a, base - guessed * token}, {b, base}, with_alpha(t.accepted, strength));
    if (emitted > guessed)
      list->AddRectFilled({a, base - guessed * token - std::max(px(2), px(3))}, {b, base - guessed * token - px(1)},
                          with_alpha(t.bonus, strength));
  }
  const float x = pos.x + px(1) * static_cast<float>(at.x_of(shown)), wide = px(1) * static_cast<float>(at.pitch);
  list->AddRect({x - px(3), top - px(4)}, {x + std::max(px(4), wide * 0.7f) + px(3), base + px(3)}, t.text, px(3),
                px(1.5f));
  list->PopClipRect();
  ImGui::SetCursorScreenPos(pos);
  ImGui::InvisibleButton("Passes", size, ImGuiButtonFlags_EnableNav);
  const double under_x = (ImGui::GetIO().MousePos.x - pos.x) / px(1);
  const size_t under = round_at(at, under_x, log.rounds());
  if (ImGui::IsItemActive() && ImGui::IsMouseDown(ImGuiMouseButton_Left) && under != shown)
    sink.post(RoundsCommand(ShowRound{under}));
  if (ImGui::IsItemHovered()) tooltip(bar_words(log, under).c_str());
}

}  // namespace canopy::app
