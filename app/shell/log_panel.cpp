#include "app/shell/log_panel.h"

#include "app/look/widgets.h"
#include "app/panels/panel.h"

namespace canopy::app {
namespace {

/// The colour is only an addition: the level is also written as a word.
Colour colour_of(LogLevel level) {
  const Theme& t = colours();
  switch (level) {
    case LogLevel::error: return t.rejected_text;
    case LogLevel::warning: return t.bonus_text;
    case LogLevel::info:
    case LogLevel::debug: break;
  }
  return t.text3;
}

}  // namespace

void LogPanel::draw(const ViewModel&, CommandSink& sink) {
  if (const uint64_t count = log_->count(); count != read_) {
    read_ = count;
    messages_ = log_->messages();
  }
  const PanelBody body("Log body");
  if (messages_.empty()) return empty_panel("No messages. Warnings and errors of the engine come here.");
  ButtonSpec copy{"Copy all", Icon::copy, ButtonKind::line};
  if (button(copy)) sink.post(CopyText{as_text(messages_)});
  draw_messages();
}

void LogPanel::draw_messages() {
  const bool at_end = ImGui::GetScrollY() >= ImGui::GetScrollMaxY() - 1;
  push_type(Type::mono_caption);
  ImGui::PushTextWrapPos(0);
  for (const MessageLog::Message& each : messages_) {
    ImGui::PushStyleColor(ImGuiCol_Text, colour_of(each.level));
    ImGui::TextUnformatted((fixed(each.seconds, 2) + " s  " + std::string(to_string(each.level))).c_str());
    ImGui::PopStyleColor();
    ImGui::PushStyleColor(ImGuiCol_Text, colours().text);
    ImGui::TextUnformatted(each.text.c_str(), each.text.c_str() + each.text.size());
    ImGui::PopStyleColor();
  }
  ImGui::PopTextWrapPos();
  ImGui::PopFont();
  if (at_end) ImGui::SetScrollHereY(1);
}

}  // namespace canopy::app
