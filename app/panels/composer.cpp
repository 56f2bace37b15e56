#include "app/panels/composer.h"

#include <imgui.h>
#include <imgui_stdlib.h>

#include <algorithm>

#include "app/look/text_block.h"
#include "app/look/widgets.h"

namespace canopy::app {
namespace {

constexpr float kPadding = 10;
constexpr size_t kMinLines = 2;
constexpr float kLowWindow = 320;  // below this, messages need the second line's room more
constexpr size_t kMaxLines = 8;

float line_height() {
  return text_height(Type::chat);
}

const char* hint(const ViewModel& view) {
  if (view.model_state == ModelState::loading) return "Write a message while the model loads";
  return "Write a message";
}

}  // namespace

float Composer::text_height_for(float width) const {
  TextBlock block;
  block.layout(text_, Type::chat, width - px(kPadding) * 2 - px(14));
  const bool low = ImGui::GetWindowHeight() < px(kLowWindow);
  const size_t lines = std::clamp(block.line_count(), low ? size_t{1} : kMinLines, low ? kMinLines : kMaxLines);
  return line_height() * static_cast<float>(lines) + px(6);  // two of padding at each end, two of rounding
}

float Composer::height(float width) const {
  return px(kPadding) * 2 + text_height_for(width) + px(8) + px(28);
}

void Composer::draw(const ViewModel& view, CommandSink& sink, float width) {
  const Theme& t = colours();
  const ImVec2 a = ImGui::GetCursorScreenPos(), b = {a.x + width, a.y + height(width)};
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(a, b, t.card, px(6));
  const ImVec2 at = {a.x + px(kPadding), a.y + px(kPadding)};
  const float text_height = text_height_for(width);
  draw_input(at, {width - px(kPadding) * 2, text_height});
  const bool active = ImGui::IsItemActive();
  list->AddRect(a, b, active ? t.accent : t.ctl, px(6), px(active ? 2 : 1));
  if (text_.empty()) draw_text(list, {at.x + px(2), at.y + px(2)}, Type::chat, t.text3, hint(view));
  draw_row(view, sink, {at.x, at.y + text_height + px(8)}, width - px(kPadding) * 2);
  if (entered_) send(view, sink);
  ImGui::SetCursorScreenPos(a);
  ImGui::Dummy({width, b.y - a.y});
}

void Composer::draw_input(ImVec2 pos, ImVec2 size) {
  ImGui::SetCursorScreenPos(pos);
  if (focus_next_) {
    ImGui::SetKeyboardFocusHere();
    focus_next_ = false;
  }
  push_type(Type::chat);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {0, px(2)});
  ImGui::PushStyleColor(ImGuiCol_FrameBg, with_alpha(colours().card, 0));
  // The composer's own border turns into the focus ring; a second one inside it would only be noise.
  ImGui::PushStyleColor(ImGuiCol_NavCursor, with_alpha(colours().accent, 0));
  entered_ = ImGui::InputTextMultiline("##message", &text_, size,
                                       ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_CtrlEnterForNewLine |
                                           ImGuiInputTextFlags_WordWrap | ImGuiInputTextFlags_NoHorizontalScroll);
  ImGui::PopStyleColor(2);
  ImGui::PopStyleVar();
  ImGui::PopFont();
}

void Composer::draw_row(const ViewModel& view, CommandSink& sink, ImVec2 pos, float width) {
  ButtonSpec stop{"Stop", Icon::stop, ButtonKind::line}, go{"Send", Icon::send, ButtonKind::primary};
  go.type = Type::base_semibold;
  go.enabled = view.can_send() && text_.find_first_not_of(" \t\r\n") != std::string::npos;
  go.tooltip = view.model_state == ModelState::ready ? "Send  Enter" : "Needs a model";
  stop.enabled = view.reply_state != ReplyState::stopping;
  stop.tooltip = "Stop and keep the text  Esc";
  const ButtonSpec& shown = view.busy() ? stop : go;
  const ImVec2 size = button_size(shown);
  const std::string keys = elided(Type::secondary, "Enter sends, Shift+Enter starts a line", width - size.x - px(16));
  draw_text_middle(ImGui::GetWindowDrawList(), pos.x, pos.y + px(14), Type::secondary, colours().text3, keys);
  ImGui::SetCursorScreenPos({pos.x + width - size.x, pos.y});
  if (!button(shown)) return;
  if (view.busy())
    sink.post(StopWriting{});
  else
    send(view, sink);
}

void Composer::send(const ViewModel& view, CommandSink& sink) {
  entered_ = false;
  focus_next_ = true;
  if (!view.can_send() || text_.find_first_not_of(" \t\r\n") == std::string::npos) return;
  sink.post(SendMessage{std::exchange(text_, {})});
}

}  // namespace canopy::app
