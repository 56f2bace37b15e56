#include "app/timeline/transport.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "app/look/widgets.h"

namespace canopy::app {
namespace {

// The positions of the slider: speeds from 0.1x to 10x in equal ratios, then "live".
constexpr int kSpeedSteps = 20;
constexpr int kLive = kSpeedSteps + 1;

double speed_at(int position) {
  return kSlowest * std::pow(kFastest / kSlowest, static_cast<double>(position) / kSpeedSteps);
}

int position_of(double speed) {
  const double share = std::log(speed / kSlowest) / std::log(kFastest / kSlowest);
  return std::clamp(static_cast<int>(std::lround(share * kSpeedSteps)), 0, kSpeedSteps);
}

std::string speed_words(const RoundsState& rounds) {
  const Playback& playback = rounds.playback;
  if (playback.state == PlayState::following) return is_live(rounds) ? "live" : "newest";
  char words[16];
  std::snprintf(words, sizeof words, playback.speed < 0.995 ? "%.2f\xc3\x97" : "%.1f\xc3\x97", playback.speed);
  return words;
}

bool icon_button(const char* label, Icon icon, bool enabled, const char* what) {
  ButtonSpec spec{label, icon, ButtonKind::line};
  spec.show_label = false;
  spec.enabled = enabled;
  spec.tooltip = what;
  const bool pressed = button(spec);
  ImGui::SameLine(0, px(4));
  return pressed;
}

void draw_buttons(const RoundsState& rounds, CommandSink& sink) {
  const auto post = [&](RoundsCommand command) { sink.post(UiCommand(std::move(command))); };
  const Playback& playback = rounds.playback;
  const bool any = rounds.log->rounds() > 0;
  if (icon_button("First round", Icon::first, any, "First round (Home)")) post(ShowRound{0});
  if (icon_button("Previous round", Icon::previous, any, "Previous round (F7)")) post(StepRound{-1});
  const bool paused = playback.state == PlayState::paused;
  ButtonSpec play{"Pause or go on", paused ? Icon::play : Icon::pause, ButtonKind::primary};
  play.show_label = false;
  play.enabled = any;
  play.tooltip = paused ? "Go on (F6)" : "Pause the view; the engine goes on (F6)";
  if (button(play)) post(TogglePause{});
  ImGui::SameLine(0, px(4));
  if (icon_button("Next round", Icon::next, any, "Next round (F8)")) post(StepRound{1});
  ImGui::SameLine(0, px(12));
  ButtonSpec follow{"Follow", playback.state == PlayState::following ? Icon::check : Icon::none};
  follow.on = playback.state == PlayState::following;
  follow.enabled = rounds.log->is_live();
  follow.tooltip = follow.enabled ? "Always the newest round (F5)" : "A recording has no newer rounds";
  if (button(follow)) post(FollowRounds{});
  ImGui::SameLine(0, px(4));
  ButtonSpec slow{"Slow motion", playback.slow_motion ? Icon::check : Icon::none};
  slow.on = playback.slow_motion;
  slow.enabled = any;
  slow.tooltip = "Each round in six phases: draft, choice of nodes, verification, walk, bonus, commit (F9)";
  if (button(slow)) post(SetSlowMotion{!playback.slow_motion});
}

/// Draws a thin track with a grab over a slider of Dear ImGui, which handles keyboard and tests.
void draw_speed_slider(const RoundsState& rounds, CommandSink& sink, float width) {
  const Playback& playback = rounds.playback;
  const bool live = rounds.log->is_live();
  const int last = live ? kLive : kSpeedSteps;
  int position = playback.state == PlayState::following ? last : std::min(position_of(playback.speed), last);
  const Theme& t = colours();
  const ImVec2 a = ImGui::GetCursorScreenPos();
  const float height = px(20), middle = std::floor(a.y + height * 0.5f), grab = px(12), inset = px(2) + grab * 0.5f;
  const float reach = (width - 2 * inset) * static_cast<float>(position) / static_cast<float>(last);
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled({a.x, middle - px(2)}, {a.x + width, middle + px(2)}, t.raised, px(2));
  list->AddRectFilled({a.x, middle - px(2)}, {a.x + inset + reach, middle + px(2)}, t.accent, px(2));
  ImGui::PushStyleColor(ImGuiCol_FrameBg, 0);
  ImGui::PushStyleColor(ImGuiCol_FrameBgHovered, 0);
  ImGui::PushStyleColor(ImGuiCol_FrameBgActive, 0);
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 0);
  ImGui::PushStyleVar(ImGuiStyleVar_GrabMinSize, grab);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {px(8), std::floor((height - ImGui::GetFontSize()) * 0.5f)});
  ImGui::SetNextItemWidth(width);
  const bool moved = ImGui::SliderInt("##Speed", &position, 0, last, "", ImGuiSliderFlags_NoInput);
  ImGui::PopStyleVar(3);
  ImGui::PopStyleColor(3);
  tooltip(live ? "How fast rounds go by, against the pace at which they were written; at the right end: live"
               : "How fast rounds go by, against the pace at which they were written");
  if (!moved) return;
  if (live && position == kLive) {
    sink.post(RoundsCommand(FollowRounds{}));
  } else {
    sink.post(RoundsCommand(SetSpeed{speed_at(position)}));
  }
}

/// Draws the badge that says that the rounds were recorded; a click returns to the engine's own rounds.
void draw_replay_badge(const RoundsState& rounds, CommandSink& sink) {
  if (rounds.trace_path.empty()) return;
  ImGui::SameLine(0, px(12));
  ButtonSpec close{"Close recording", Icon::close, ButtonKind::bare};
  close.words = "Replayed";
  close.height = 22;
  close.type = Type::secondary;
  const std::string what = "Recorded from " + rounds.log->origin() + ". Press to close the recording";
  close.tooltip = what.c_str();
  if (button(close)) sink.post(RoundsCommand(CloseTrace{}));
}

}  // namespace

void draw_transport(const RoundsState& rounds, CommandSink& sink, float width, bool buttons_only) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  draw_buttons(rounds, sink);
  if (buttons_only) return ImGui::NewLine();
  const float row = at.y + px(36), slider = std::min(px(150), width - px(130));
  draw_text_middle(ImGui::GetWindowDrawList(), at.x, row + px(11), Type::secondary, colours().text2, "Speed");
  ImGui::SetCursorScreenPos({at.x + px(44), row + px(1)});
  draw_speed_slider(rounds, sink, slider);
  draw_text_middle(ImGui::GetWindowDrawList(), at.x + px(44) + slider + px(8), row + px(11), Type::mono,
                   colours().text2, speed_words(rounds));
  ImGui::SetCursorScreenPos({at.x + px(44) + slider + px(50), row});
  ImGui::Dummy({px(1), px(22)});
  draw_replay_badge(rounds, sink);
}

void handle_transport_keys(const RoundsState& rounds, CommandSink& sink) {
  if (rounds.log->rounds() == 0) return;
  const auto pressed = [](ImGuiKey key, ImGuiInputFlags flags = 0) { return ImGui::Shortcut(key, flags); };
  if (pressed(ImGuiKey_Space)) sink.post(RoundsCommand(TogglePause{}));
  if (pressed(ImGuiKey_LeftArrow, ImGuiInputFlags_Repeat)) sink.post(RoundsCommand(StepRound{-1}));
  if (pressed(ImGuiKey_RightArrow, ImGuiInputFlags_Repeat)) sink.post(RoundsCommand(StepRound{1}));
  if (pressed(ImGuiKey_Home)) sink.post(RoundsCommand(ShowRound{0}));
  if (pressed(ImGuiKey_End)) sink.post(RoundsCommand(ShowRound{rounds.log->rounds() - 1}));
}

}  // namespace canopy::app
