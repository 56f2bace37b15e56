#include "app/charts/transport.h"

#include <imgui.h>
#include <imgui_stdlib.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "app/ui/widgets.h"
#include "engine/base/error.h"
#include "engine/base/figures.h"

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
  if (icon_button("First pass", Icon::first, any, "First pass (Home)")) post(ShowRound{0});
  if (icon_button("Previous pass", Icon::previous, any, "Previous pass (F7)")) post(StepRound{-1});
  const bool paused = playback.state == PlayState::paused;
  ButtonSpec play{"Pause or go on", paused ? Icon::play : Icon::pause, ButtonKind::primary};
  play.show_label = false;
  play.enabled = any;
  play.tooltip = paused ? "Go on (F6)" : "Pause the view; the engine goes on (F6)";
  if (button(play)) post(TogglePause{});
  ImGui::SameLine(0, px(4));
  if (icon_button("Next pass", Icon::next, any, "Next pass (F8)")) post(StepRound{1});
  ImGui::SameLine(0, px(12));
  ButtonSpec follow{"Follow", playback.state == PlayState::following ? Icon::check : Icon::none};
  follow.on = playback.state == PlayState::following;
  follow.enabled = rounds.log->is_live();
  follow.tooltip = follow.enabled ? "Always the newest pass (F5)" : "A recording has no newer passes";
  if (button(follow)) post(FollowRounds{});
  ImGui::SameLine(0, px(4));
  ButtonSpec slow{"Slow motion", playback.slow_motion ? Icon::check : Icon::none};
  slow.on = playback.slow_motion;
  slow.enabled = any;
  slow.tooltip = "Each pass in six steps: guess, grow, check, walk, bonus, keep (F9)";
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
  tooltip(live ? "How fast passes go by, against the pace at which they were written; at the right end: live"
               : "How fast passes go by, against the pace at which they were written");
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

namespace {

/// The state of a recording: "recording, 12 passes".
std::string recording_words(const RecordingState& recording, bool replying) {
  if (recording.phase == RecordingPhase::asked) return "begins after this reply";
  if (recording.phase == RecordingPhase::ending) return "ends after this reply";
  // The engine begins and ends recordings between two replies: one that is written while it records is in the file.
  if (recording.told.rounds == 0 && recording.running()) return replying ? "this reply" : "from the next reply on";
  if (recording.told.rounds == 0) return "";
  return counted(recording.told.rounds, "pass", "passes") + ", " + byte_figures(recording.told.bytes);
}

constexpr const char* kPopup = "Record a trace";
constexpr float kBoxWidth = 460, kAboveBottom = 142;  // above timeline and status bar

constexpr float kBoxRow = 22;

ButtonSpec small(const char* id, const char* words, Icon icon = Icon::none) {
  ButtonSpec spec{id, icon};
  spec.words = words;
  spec.height = kBoxRow;
  spec.type = Type::secondary;
  return spec;
}

/// Draws the file name and then the state; the name is shortened where both do not fit.
void draw_words(ImVec2 at, float room, const std::string& name, const std::string& state) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float middle = at.y + px(kBoxRow) * 0.5f, state_width = text_size(Type::secondary, state).x;
  const std::string shown = elided(Type::secondary, name, std::max(px(24), room - state_width - px(8)));
  draw_text_middle(list, at.x, middle, Type::secondary, t.text, shown);
  const float x = at.x + text_size(Type::secondary, shown).x + px(8);
  draw_text_middle(list, x, middle, Type::secondary, t.text3, elided(Type::secondary, state, at.x + room - x));
}

void draw_running(const RecordingState& recording, bool replying, CommandSink& sink, float width) {
  const Theme& t = colours();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ButtonSpec stop = small("Stop recording", "Stop", Icon::stop);
  stop.enabled = recording.phase != RecordingPhase::ending;
  stop.tooltip = "End the recording; the file is whole after every pass";
  const float stop_width = button_size(stop).x;
  const ImVec2 dot = {at.x + px(6), at.y + px(kBoxRow) * 0.5f};
  if (recording.phase == RecordingPhase::on)
    ImGui::GetWindowDrawList()->AddCircleFilled(dot, px(5), t.rejected);
  else
    ImGui::GetWindowDrawList()->AddCircle(dot, px(4.5f), t.rejected, 0, px(1.5f));
  const float room = width - px(18) - stop_width - px(6);
  draw_words({at.x + px(18), at.y}, room, file_name(recording.path), recording_words(recording, replying));
  ImGui::SetCursorScreenPos({at.x + px(18), at.y});
  ImGui::Dummy({std::max(1.0f, room), px(kBoxRow)});
  tooltip(recording.path.c_str());
  ImGui::SetCursorScreenPos({at.x + width - stop_width, at.y});
  if (button(stop)) sink.post(RecordingCommand(EndRecording{}));
}

}  // namespace

void RecordBox::close(CommandSink& sink) {
  ImGui::CloseCurrentPopup();
  open_ = false;
  sink.post(RecordingCommand(ShowRecordBox{false}));
}

void RecordBox::draw(const ViewModel& view, CommandSink& sink) {
  if (!view.recording.box_shown) {
    open_ = false;
    return;
  }
  const bool opening = !open_;
  if (opening) {
    open_ = true;
    path_ = view.recording.suggested;
    ImGui::OpenPopup(kPopup);
  }
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const float bottom = viewport->Size.y - std::min(px(kAboveBottom), viewport->Size.y * 0.3f);
  ImGui::SetNextWindowPos({viewport->Pos.x + px(12), viewport->Pos.y + bottom}, ImGuiCond_Always, {0, 1});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(16), px(14)});
  if (!ImGui::BeginPopup(kPopup)) {
    ImGui::PopStyleVar();
    if (!opening) sink.post(RecordingCommand(ShowRecordBox{false}));  // closed by a click outside
    return;
  }
  label(Type::base_semibold, colours().text, "Record a trace");
  label(Type::secondary, colours().text2, "Every reply from now on, pass by pass. It replays without model and GPU.");
  if (opening) ImGui::SetKeyboardFocusHere();
  draw_path();
  draw_notes(view);
  if (ImGui::IsKeyPressed(ImGuiKey_Escape, false))
    close(sink);
  else
    draw_buttons(sink);
  ImGui::EndPopup();
  ImGui::PopStyleVar();
}

void RecordBox::draw_path() {
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 1);
  ImGui::PushStyleColor(ImGuiCol_Border, colours().ctl);
  ImGui::PushStyleColor(ImGuiCol_FrameBg, colours().card);
  ImGui::SetNextItemWidth(std::min(px(kBoxWidth), ImGui::GetMainViewport()->Size.x - px(64)));
  entered_ = ImGui::InputTextWithHint("##trace", "Path of the file", &path_,
                                      ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_ElideLeft);
  ImGui::PopStyleColor(2);
  ImGui::PopStyleVar();
}

void RecordBox::draw_notes(const ViewModel& view) {
  if (looked_at_ != path_) {
    std::error_code ignored;
    looked_at_ = path_;
    exists_ = !path_.empty() && std::filesystem::is_regular_file(recording_path(path_), ignored);
    in_use_.clear();
    try {
      require_not_in_use(view, recording_path(path_));
    } catch (const Error& e) {
      in_use_ = e.what();
    }
  }
  ButtonSpec redact{"Leave out texts", redact_ ? Icon::check : Icon::none};
  redact.on = redact_;
  redact.tooltip = "No words and no tokens that could be traced back: only trees, widths and times";
  if (button(redact)) redact_ = !redact_;
  ButtonSpec dense{"Guesses behind every token", dense_ && !redact_ ? Icon::check : Icon::none};
  dense.on = dense_ && !redact_;
  dense.enabled = !redact_ && view.has_drafter();
  dense.tooltip = view.has_drafter()
                      ? "Makes \u201cWhat if\u201d exact; takes guesses for each token when the recording ends"
                      : "Needs a drafter; guesses from the text alone are found again without it";
  if (button(dense)) dense_ = !dense_;
  if (!in_use_.empty())
    label(Type::secondary, colours().bonus_text, "The recording that is shown, or the model, is in that file.");
  else if (exists_)
    label(Type::secondary, colours().bonus_text, "A file of that name is there. A trace will be replaced.");
  else if (view.busy())
    label(Type::secondary, colours().text3, "Begins after the reply under way");
}

void RecordBox::draw_buttons(CommandSink& sink) {
  ButtonSpec record{"Record", Icon::record, ButtonKind::primary}, cancel{"Not now", Icon::none, ButtonKind::line};
  record.enabled = !path_.empty() && in_use_.empty();
  const bool pressed = button(record);
  ImGui::SameLine(0, px(8));
  const bool left = button(cancel);
  if ((pressed || entered_) && record.enabled) sink.post(RecordingCommand(StartRecording{path_, redact_, dense_}));
  if (left || ((pressed || entered_) && record.enabled)) close(sink);
}

void draw_recording_row(const ViewModel& view, CommandSink& sink, float width) {
  const RecordingState& recording = view.recording;
  if (recording.running()) return draw_running(recording, view.busy(), sink, width);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ButtonSpec record = small("Record a trace", "Record a trace\u2026", Icon::record);
  record.enabled = view.model_state == ModelState::ready;
  record.tooltip = record.enabled ? "Keep every pass of the next replies in a file (Ctrl+Shift+R)" : "Needs a model";
  ImGui::SetCursorScreenPos({at.x - px(8), at.y});  // aligns the icon, not the edge of its button, with what is above
  if (button(record)) sink.post(RecordingCommand(ShowRecordBox{}));
  if (!recording.finished()) return;
  const float x = at.x + button_size(record).x;
  ButtonSpec open = small("Open the recording", "Open");
  open.tooltip = "Replay what was recorded";
  const float open_width = button_size(open).x, room = at.x + width - x - open_width;
  if (room < px(60)) return;
  draw_words({x, at.y}, room, "Saved", recording_words(recording, false));
  ImGui::SetCursorScreenPos({x, at.y});
  ImGui::Dummy({room, px(kBoxRow)});
  tooltip(recording.path.c_str());
  ImGui::SetCursorScreenPos({at.x + width - open_width, at.y});
  if (button(open)) sink.post(RoundsCommand(OpenTrace{recording.path}));
}

}  // namespace canopy::app
