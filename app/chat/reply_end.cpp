#include "app/chat/reply_end.h"

#include <imgui.h>

#include <algorithm>
#include <string>

#include "app/base/figures.h"
#include "app/chat/reply_facts.h"
#include "app/conversation/thinking.h"
#include "app/look/widgets.h"
#include "app/state/ar_check.h"
#include "app/state/continue_reply.h"
#include "app/state/drafting.h"

namespace canopy::app {
namespace {

bool has_verdict(const ViewModel& view, size_t i) {
  if (view.replaying()) return false;
  const Message& message = view.conversation()[i];
  return i + 1 == view.conversation().size() && message.result && !ar_verdict(view.drafting, *message.result).empty();
}

/// What Copy takes of a reply: its answer, or what was thought where it came to none.
std::string body_text(const Message& message) {
  const std::string answer = answer_of(message);
  return answer.empty() ? thought_of(message) : answer;
}

/// Draws the label "replayed" before the figures of a recorded reply. Returns its width in pixels.
float draw_replayed(ImVec2 at) {
  draw_text_middle(ImGui::GetWindowDrawList(), at.x, at.y + px(kReplyRow) * 0.5f, Type::secondary, colours().text2,
                   "replayed");
  return text_size(Type::secondary, "replayed").x + px(10);
}

void draw_check_button(const ViewModel& view, const Message& message, CommandSink& sink) {
  const std::string obstacle = check_obstacle(view, message);
  const std::string about =
      "Check against plain decoding" +
      (obstacle.empty() ? ": writes the reply once more without drafts and compares every token" : "\n" + obstacle);
  if (icon_button("Check against plain decoding", Icon::check, about.c_str(), obstacle.empty()))
    sink.post(CheckCommand(CheckAgainstAr{message.id}));
}

/// Draws the figures of a reply and its buttons.
void draw_footer(const ViewModel& view, size_t i, CommandSink& sink, float width) {
  const Message& message = view.conversation()[i];
  const ImVec2 a = ImGui::GetCursorScreenPos();
  const bool own = !view.replaying();
  const bool checkable = own && message.result->mode != DecodeMode::ar;
  const float buttons = px(kReplyRow) * (own ? 3.0f + (checkable ? 1.0f : 0.0f) : 1.0f);
  float x = a.x;
  if (!own) x += draw_replayed({x, a.y});
  if (view.conversation().place(i).count > 1) x += draw_versions(view, i, sink, {a.x - px(6), a.y});
  const float room = a.x + width - buttons - px(4) - x;
  // The chat of Watch is narrow, and in the narrower type more of its figures fit.
  const Type type = view.shell.layout == WindowLayout::watch ? Type::secondary : Type::mono;
  draw_text_middle(ImGui::GetWindowDrawList(), x, a.y + px(kReplyRow) * 0.5f, type, colours().text3,
                   fitting(type, reply_facts(message, view.shell.layout), room));
  ImGui::SetCursorScreenPos({x, a.y});
  ImGui::Dummy({std::max(px(1), room), px(kReplyRow)});
  tooltip((reply_details(message, view.shell.layout) + (own ? "" : ", when it was recorded")).c_str());
  ImGui::SetCursorScreenPos({a.x + width - buttons, a.y});
  if (icon_button("Copy", Icon::copy, "Copy the text")) sink.post(CopyText{body_text(message)});
  if (!own) return;  // the messages of a recording cannot be edited
  ImGui::SameLine(0, 0);
  if (checkable) {
    draw_check_button(view, message, sink);
    ImGui::SameLine(0, 0);
  }
  if (icon_button("Run again", Icon::redo, "Answer again; this answer stays as a version", view.can_send()))
    sink.post(AnswerAgain{message.id});
  ImGui::SameLine(0, 0);
  if (icon_button("Continue in a new chat", Icon::branch, "Continue from here in a new chat", !view.busy()))
    sink.post(ContinueInNewChat{message.id});
}

/// How the reply ended, in as many words as fit.
std::string ending(const ReplyFinished& reply, float room) {
  const std::string tokens = counted(reply.reply_tokens, "token", "tokens");
  if (reply.reason == FinishReason::max_tokens)
    return first_fitting(Type::secondary, {"Ended at its limit of " + tokens, "Limit of " + tokens, "At its limit"},
                         room);
  return first_fitting(Type::secondary, {"You stopped it after " + tokens, "Stopped after " + tokens, "Stopped"}, room);
}

/// Draws how the reply ended, and the button that goes on with it.
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

/// Draws a line that says how much faster plain decoding would be, with a button for it. Shown on a device where
/// drafting is on only to be seen.
void draw_verdict(const ViewModel& view, const ReplyFinished& reply, CommandSink& sink, float width) {
  const bool watch = view.shell.layout == WindowLayout::watch;
  const std::string verdict = ar_verdict(view.drafting, reply), brief = short_ar_verdict(reply, view.shell.layout);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ButtonSpec plain{"Write plainly", Icon::none, ButtonKind::bare};
  plain.type = Type::secondary;
  plain.tooltip = watch ? "The same text, without guessing" : "The same text, without drafts";
  const float room = width - button_size(plain).x - px(8);
  const std::string words =
      watch ? first_fitting(Type::secondary, {brief + ". Guessing is on to show it.", brief}, room)
            : first_fitting(Type::secondary, {verdict + " Drafting is on to show it.", verdict, brief}, room);
  draw_text_middle(ImGui::GetWindowDrawList(), at.x, at.y + px(14), Type::secondary, colours().text2, words);
  ImGui::SetCursorScreenPos({at.x + text_size(Type::secondary, words).x + px(4), at.y});
  if (button(plain)) sink.post(SetDrafting{DecodeMode::ar});
}

}  // namespace

float draw_versions(const ViewModel& view, size_t i, CommandSink& sink, ImVec2 pos) {
  const Conversation::Place place = view.conversation().place(i);
  const uint64_t id = view.conversation()[i].id;
  const std::string words = std::to_string(place.index + 1) + " / " + std::to_string(place.count);
  const float room = text_size(Type::mono, words).x + px(8);
  ImGui::SetCursorScreenPos(pos);
  if (icon_button("Previous version", Icon::left, "Previous version", place.index > 0 && !view.busy()))
    sink.post(ShowAlternative{id, -1});
  draw_text_middle(ImGui::GetWindowDrawList(), pos.x + px(kReplyRow) + px(4), pos.y + px(kReplyRow) * 0.5f, Type::mono,
                   colours().text2, words);
  ImGui::SetCursorScreenPos({pos.x + px(kReplyRow) + room, pos.y});
  if (icon_button("Next version", Icon::right, "Next version", place.index + 1 < place.count && !view.busy()))
    sink.post(ShowAlternative{id, 1});
  return px(kReplyRow) * 2 + room;
}

float reply_end_height(const ViewModel& view, size_t i, float width) {
  return px(kReplyRow) + (is_unfinished(view, i) ? px(kReplyRow) : 0) +
         check_row_height(view, view.conversation()[i], width) + (has_verdict(view, i) ? px(kReplyRow) : 0);
}

void draw_reply_end(const ViewModel& view, size_t i, CommandSink& sink, float width) {
  const Message& message = view.conversation()[i];
  ImVec2 at = ImGui::GetCursorScreenPos();
  draw_footer(view, i, sink, width);
  at.y += px(kReplyRow);
  if (is_unfinished(view, i)) {
    ImGui::SetCursorScreenPos(at);
    draw_continue_row(view, i, sink, width);
    at.y += px(kReplyRow);
  }
  if (const float check = check_row_height(view, message, width); check > 0) {
    ImGui::SetCursorScreenPos(at);
    draw_check_row(view, message, sink, width);
    at.y += check;
  }
  if (!has_verdict(view, i)) return;
  ImGui::SetCursorScreenPos(at);
  draw_verdict(view, *message.result, sink, width);
}

}  // namespace canopy::app
