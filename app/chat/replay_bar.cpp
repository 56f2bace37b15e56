#include "app/chat/replay_bar.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/look/text_block.h"
#include "app/look/widgets.h"

namespace canopy::app {
namespace {

constexpr float kReplayBarHeight = 92, kReplayBarPadding = 12;

}  // namespace

std::string origin_words(const ReplayOrigin& origin) {
  std::string words = origin.target;
  if (!origin.drafter.empty()) words += " with " + origin.drafter;
  return origin.device.empty() ? words : words + " on " + origin.device;
}

float replay_bar_height() {
  return px(kReplayBarHeight);
}

void draw_replay_bar(const ViewModel& view, CommandSink& sink, float width) {
  const Theme& t = colours();
  const ReplayOrigin& origin = view.replay.origin();
  const ImVec2 a = ImGui::GetCursorScreenPos(), b = {a.x + width, a.y + px(kReplayBarHeight)};
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(a, b, t.card, px(6));
  list->AddRect(a, b, t.line, px(6), px(1));
  const float x = a.x + px(kReplayBarPadding), room = width - px(kReplayBarPadding) * 2;
  const std::string when =
      !origin.times.empty()
          ? first_fitting(Type::base_semibold, {"Not recorded there: " + origin.times, origin.times}, room)
      : origin.recorded.empty()
          ? "Replayed"
          : first_fitting(Type::base_semibold, {"Recorded " + origin.recorded, origin.recorded}, room);
  draw_text_middle(list, x, a.y + px(18), Type::base_semibold, t.text, elided(Type::base_semibold, when, room));
  const std::string words = origin_words(origin);
  draw_text_middle(list, x, a.y + px(38), Type::secondary, t.text2, elided(Type::secondary, words, room));
  ImGui::SetCursorScreenPos(a);
  ImGui::Dummy({width, px(52)});
  tooltip((file_name(view.rounds.trace_path) + "\n" + words + (origin.driver.empty() ? "" : "\n" + origin.driver) +
           (origin.times.empty() ? "" : "\nText and guesses were recorded " + origin.recorded) +
           (origin.redacted ? "\nTexts were left out when it was recorded" : ""))
              .c_str());
  ButtonSpec back{"Back to the chat", Icon::left, ButtonKind::line};
  const bool own = view.model || !view.messages.empty();
  back.words = own ? "Back to your chat" : "Close the recording";
  back.tooltip = "Closes the recording; your own chat is as you left it";
  ImGui::SetCursorScreenPos({x, b.y - px(28 + 10)});
  if (button(back)) sink.post(RoundsCommand(CloseTrace{}));
  ImGui::SetCursorScreenPos(a);
  ImGui::Dummy({width, px(kReplayBarHeight)});
}

void draw_redacted_note(ImVec2 size) {
  const Theme& t = colours();
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const char* words = "The texts were left out when this was recorded. Trees, widths and times are all here.";
  const float room = std::min(size.x - px(24), px(320));
  TextBlock block;
  block.layout(words, Type::chat, room);
  const float x = origin.x + (size.x - room) * 0.5f, y = origin.y + std::max(px(8), size.y * 0.5f - px(48));
  draw_icon(list, Icon::edit, {origin.x + size.x * 0.5f, y}, px(32), t.text3);
  block.draw(list, {std::floor(x), std::floor(y + px(28))}, words, Type::chat, t.text2, px(22));
  ImGui::SetCursorScreenPos(origin);
  ImGui::InvisibleButton("Texts left out", {std::max(1.0f, size.x), std::max(1.0f, size.y)});
}

}  // namespace canopy::app
