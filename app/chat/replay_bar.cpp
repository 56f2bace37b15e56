#include "app/chat/replay_bar.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/look/text_block.h"
#include "app/look/widgets.h"
#include "app/state/work_under_way.h"

namespace canopy::app {
namespace {

constexpr float kReplayBarHeight = 92, kReplayBarPadding = 12;

/// What is done with the recording now, in place of where it is from.
void draw_recording_work(const Work& work, ImVec2 a, float x, float room) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  draw_text_middle(list, x, a.y + px(18), Type::base_semibold, t.text,
                   elided(Type::base_semibold, work.progress.stage, room));
  const std::string figures = progress_figures(work.progress);
  const float width = figures.empty() ? 0 : text_size(Type::mono_caption, figures).x + px(10);
  const float fraction = work.progress.fraction();
  draw_bar(list, {x, a.y + px(35)}, {std::max(px(24), room - width), px(6)}, std::max(0.0f, fraction), t.accent,
           t.line);
  if (room - width >= px(24))
    draw_text_middle(list, x + room - width + px(10), a.y + px(38), Type::mono_caption, t.text2, figures);
}

/// When it was recorded, with what and where.
void draw_origin(const ViewModel& view, ImVec2 a, float x, float room) {
  const Theme& t = colours();
  const ReplayOrigin& origin = view.replay.origin();
  ImDrawList* list = ImGui::GetWindowDrawList();
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
  ImGui::Dummy({room, px(52)});
  tooltip((file_name(view.rounds.trace_path) + "\n" + words + (origin.driver.empty() ? "" : "\n" + origin.driver) +
           (origin.times.empty() ? "" : "\nText and guesses were recorded " + origin.recorded) +
           (origin.redacted ? "\nTexts were left out when it was recorded" : ""))
              .c_str());
}

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
  const ImVec2 a = ImGui::GetCursorScreenPos(), b = {a.x + width, a.y + px(kReplayBarHeight)};
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(a, b, t.card, px(6));
  list->AddRect(a, b, t.line, px(6), px(1));
  const float x = a.x + px(kReplayBarPadding), room = width - px(kReplayBarPadding) * 2;
  const std::optional<Work> work = recording_work(view);
  if (work)
    draw_recording_work(*work, a, x, room);
  else
    draw_origin(view, a, x, room);
  ButtonSpec back{"Back to the chat", Icon::left, ButtonKind::line};
  const bool own = view.model || !view.messages.empty();
  back.words = own ? "Back to your chat" : "Close the recording";
  back.tooltip = "Closes the recording; your own chat is as you left it";
  ImGui::SetCursorScreenPos({x, b.y - px(28 + 10)});
  ButtonSpec cancel{"Cancel", Icon::none, ButtonKind::line};
  const float cancel_width = work ? button_size(cancel).x : 0;
  const bool beside = button_size(back).x + px(8) + cancel_width <= room;
  if (!work || beside) {
    if (button(back)) sink.post(RoundsCommand(CloseTrace{}));
  }
  if (work) {
    ImGui::SetCursorScreenPos({x + room - cancel_width, b.y - px(28 + 10)});
    if (button(cancel)) sink.post(work->cancel);
  }
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
