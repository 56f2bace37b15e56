#include "app/timeline/record_box.h"

#include <imgui.h>
#include <imgui_stdlib.h>

#include <algorithm>
#include <filesystem>

#include "app/look/widgets.h"

namespace canopy::app {
namespace {

constexpr const char* kPopup = "Record a trace";
constexpr float kWidth = 460, kAboveBottom = 142;  // clear of timeline and status bar

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
    if (!opening) sink.post(RecordingCommand(ShowRecordBox{false}));  // clicked away
    return;
  }
  label(Type::base_semibold, colours().text, "Record a trace");
  label(Type::secondary, colours().text2, "Every reply from now on, round by round. It replays without model and GPU.");
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
  ImGui::SetNextItemWidth(std::min(px(kWidth), ImGui::GetMainViewport()->Size.x - px(64)));
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
  }
  ButtonSpec redact{"Leave out texts", redact_ ? Icon::check : Icon::none};
  redact.on = redact_;
  redact.tooltip = "No words and no tokens that could be traced back: only trees, widths and times";
  if (button(redact)) redact_ = !redact_;
  if (exists_)
    label(Type::secondary, colours().bonus_text, "A file of that name is there. A trace will be replaced.");
  else if (view.busy())
    label(Type::secondary, colours().text3, "Begins after the reply under way");
}

void RecordBox::draw_buttons(CommandSink& sink) {
  ButtonSpec record{"Record", Icon::record, ButtonKind::primary}, cancel{"Not now", Icon::none, ButtonKind::line};
  record.enabled = !path_.empty();
  const bool pressed = button(record);
  ImGui::SameLine(0, px(8));
  const bool left = button(cancel);
  if ((pressed || entered_) && record.enabled) sink.post(RecordingCommand(StartRecording{path_, redact_}));
  if (left || ((pressed || entered_) && record.enabled)) close(sink);
}

}  // namespace canopy::app
