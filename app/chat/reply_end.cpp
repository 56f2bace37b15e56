#include "app/chat/reply_end.h"

#include <imgui.h>

#include <string>

#include "app/base/figures.h"
#include "app/look/widgets.h"
#include "app/state/continue_reply.h"
#include "app/state/view_model.h"

namespace canopy::app {
namespace {

/// How the reply ended, in as many words as fit.
std::string ending(const ReplyFinished& reply, float room) {
  const std::string tokens = counted(reply.reply_tokens, "token", "tokens");
  if (reply.reason == FinishReason::max_tokens)
    return first_fitting(Type::secondary, {"Ended at its limit of " + tokens, "Limit of " + tokens, "At its limit"},
                         room);
  return first_fitting(Type::secondary, {"You stopped it after " + tokens, "Stopped after " + tokens, "Stopped"}, room);
}

}  // namespace

bool has_continue_row(const ViewModel& view, size_t i) {
  return is_unfinished(view, i);
}

void draw_continue_row(const ViewModel& view, size_t i, CommandSink& sink, float width) {
  const Message& message = view.messages[i];
  const std::string obstacle = continue_obstacle(view, message);
  const std::string about = obstacle.empty() ? "Writes up to " + counted(view.max_tokens, "token", "tokens") +
                                                   " more, just as with a larger limit"
                                             : obstacle;
  ButtonSpec more{"Continue", Icon::none, ButtonKind::line};
  more.type = Type::secondary;
  more.height = 24;
  more.enabled = obstacle.empty();
  more.tooltip = about.c_str();
  const ImVec2 at = ImGui::GetCursorScreenPos(), size = button_size(more);
  const float room = width - size.x - px(10);
  const std::string words = ending(*message.result, room);
  const float middle = at.y + px(14);
  draw_text_middle(ImGui::GetWindowDrawList(), at.x, middle, Type::secondary, colours().text2, words);
  ImGui::SetCursorScreenPos({at.x + text_size(Type::secondary, words).x + px(10), middle - size.y * 0.5f});
  if (button(more)) sink.post(ChatCommand(ContinueReply{message.id}));
}

}  // namespace canopy::app
