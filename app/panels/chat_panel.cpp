#include "app/panels/chat_panel.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "app/drafting.h"
#include "app/look/widgets.h"
#include "app/panels/error_cards.h"
#include "app/panels/progress_text.h"

namespace canopy::app {
namespace {

constexpr float kColumn = 760;  // about 95 characters a line
constexpr float kMargin = 16;
constexpr float kPitch = 22;
constexpr float kBubblePadX = 12, kBubblePadY = 8;
constexpr const char* kExample = "Explain in two sentences why the sky is blue.";

/// What a finished reply says about itself: figures, then why it ended when that is not the usual reason.
std::string facts(const Message& message) {
  const ReplyFinished& r = *message.result;
  std::string out = grouped(r.reply_tokens) + (r.reply_tokens == 1 ? " token" : " tokens");
  if (message.seed) out += "   seed " + std::to_string(*message.seed);
  if (r.tau > 0 && r.mode != DecodeMode::ar) out += "   " + speed_figures(r.tau) + " a round";
  if (r.tokens_per_second > 0) out = speed_figures(r.tokens_per_second) + " tok/s   " + out;
  switch (r.reason) {
    case FinishReason::stop_token: break;
    case FinishReason::max_tokens: out += "   token limit"; break;
    case FinishReason::context_full: out += "   context full"; break;
    case FinishReason::cancelled: out += "   stopped"; break;
    case FinishReason::failed: out += "   failed"; break;
  }
  return out;
}

std::string prefill_fact(const ReplyFinished& r) {
  char text[128];
  std::snprintf(text, sizeof text, "Prompt: %s tokens in %.0f ms, %s of them reused; measured",
                grouped(r.prompt_tokens).c_str(), r.prefill_ms, grouped(r.reused_tokens).c_str());
  return text;
}

/// The caret stands still: nothing blinks, and an idle window draws nothing.
void draw_caret(ImVec2 at) {
  ImGui::GetWindowDrawList()->AddRectFilled({at.x + px(2), at.y + px(3)}, {at.x + px(9), at.y + px(19)},
                                            colours().accent);
}

}  // namespace

bool ChatPanel::wanted(const ViewModel& view) const {
  return view.model || !view.messages.empty();
}

void ChatPanel::draw(const ViewModel& view, CommandSink& sink) {
  if (view.messages.size() < shown_) {
    blocks_.clear();
    selection_.clear();
  }
  const ImVec2 area = ImGui::GetContentRegionAvail();
  const float width = std::floor(std::min(px(kColumn), area.x - px(kMargin) * 2));
  const float left = std::floor((area.x - width) * 0.5f);
  ImGui::SetCursorPosX(left);
  ImGui::BeginGroup();
  draw_header(view, sink, width);
  ImGui::EndGroup();
  const float composer_height = composer_.height(width);
  const float messages_height =
      std::max(px(40), area.y - ImGui::GetCursorPosY() - composer_height - px(kMargin) - px(8));
  ImGui::PushStyleColor(ImGuiCol_ChildBg, colours().panel);
  ImGui::PushStyleVar(ImGuiStyleVar_ChildBorderSize, 0);
  ImGui::SetCursorPosX(0);
  if (ImGui::BeginChild("Messages", {area.x, messages_height}, ImGuiChildFlags_None, ImGuiWindowFlags_NoNavInputs)) {
    if (view.messages.empty() && view.cards.empty()) {
      draw_empty(view, sink, area.x, messages_height);
    } else {
      ImGui::SetCursorPosX(left);
      ImGui::BeginGroup();
      draw_messages(view, sink, width);
      ImGui::EndGroup();
    }
    follow_end(view);
  }
  ImGui::EndChild();
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
  shown_ = view.messages.size();
  const float below = ImGui::GetCursorPosY();
  if (!follow_) draw_to_end({ImGui::GetWindowPos().x + area.x * 0.5f, ImGui::GetWindowPos().y + below - px(22)});
  ImGui::SetCursorPos({left, below + px(8)});
  composer_.draw(view, sink, width);
  copy_selection(view, sink);
  keep_keyboard_in_composer();
}

/// The end stays in view until the reader scrolls away from it, and again once they come back or a message is sent.
void ChatPanel::follow_end(const ViewModel& view) {
  const float now = ImGui::GetScrollY(), most = ImGui::GetScrollMaxY();
  const float page = ImGui::GetWindowHeight() - px(kPitch) * 2;
  const bool popup = ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel);
  float jump = 0;
  if (!popup && ImGui::IsKeyPressed(ImGuiKey_PageUp)) jump = -page;
  if (!popup && ImGui::IsKeyPressed(ImGuiKey_PageDown)) jump = page;
  if (now < scroll_ - 1 || jump < 0) follow_ = false;
  if (now >= most - 1 && jump >= 0) follow_ = true;
  if (view.messages.size() != shown_) follow_ = true;
  scroll_ = now;
  if (jump != 0)
    ImGui::SetScrollY(std::clamp(now + jump, 0.0f, most));
  else if (follow_ && !ImGui::IsMouseDown(ImGuiMouseButton_Left))  // text must not run away under the mouse
    ImGui::SetScrollHereY(1.0f);
}

void ChatPanel::draw_to_end(ImVec2 centre) {
  ButtonSpec spec{"To the end", Icon::chevron, ButtonKind::line};
  spec.type = Type::secondary;
  const ImVec2 size = button_size(spec),
               a = {std::floor(centre.x - size.x * 0.5f), std::floor(centre.y - size.y * 0.5f)};
  ImGui::SetCursorScreenPos(a);
  // A child of its own, so that it lies over the messages, for the eye and for the mouse.
  ImGui::PushStyleColor(ImGuiCol_ChildBg, colours().raised);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
  ImGui::PushStyleVar(ImGuiStyleVar_ChildBorderSize, 0);
  if (ImGui::BeginChild("Over", size, ImGuiChildFlags_None, ImGuiWindowFlags_NoScrollbar)) {
    if (button(spec)) follow_ = true;
  }
  ImGui::EndChild();
  ImGui::PopStyleVar(2);
  ImGui::PopStyleColor();
}

void ChatPanel::copy_selection(const ViewModel& view, CommandSink& sink) {
  if (composer_.has_selection()) selection_.clear();
  if (selection_.empty() || !ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiKey_C)) return;
  for (const Message& message : view.messages)
    if (message.id == selection_.id()) sink.post(CopyText{selection_.of(message.text)});
}

/// Whatever was clicked, what is typed next belongs into the composer; only the keyboard itself leads elsewhere (Tab),
/// and a menu keeps what it needs while it is open.
void ChatPanel::keep_keyboard_in_composer() {
  const bool popup = ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel);
  if (popup || composer_.active() || ImGui::IsAnyItemActive() || ImGui::IsAnyMouseDown()) return;
  if (!ImGui::GetIO().NavVisible) composer_.focus();
}

void ChatPanel::draw_header(const ViewModel& view, CommandSink& sink, float width) {
  ButtonSpec fresh{"New chat", Icon::plus};
  fresh.tooltip = "New chat  Ctrl+N";
  const ImVec2 a = ImGui::GetCursorScreenPos(), size = button_size(fresh);
  if (view.messages.empty()) {  // nothing to name, and the chat is new already
    ImGui::Dummy({0, px(44)});
    return;
  }
  const std::string title = elided(Type::base_semibold, conversation_title(view), width - size.x - px(16));
  draw_text_middle(ImGui::GetWindowDrawList(), a.x, a.y + px(22), Type::base_semibold, colours().text, title);
  ImGui::SetCursorScreenPos({a.x + width - size.x, a.y + px(8)});
  if (button(fresh)) {
    sink.post(NewChat{});
    composer_.focus();
  }
  ImGui::SetCursorScreenPos({a.x, a.y + px(44)});
  ImGui::Dummy({0, 0});
}

void ChatPanel::draw_empty(const ViewModel& view, CommandSink& sink, float width, float height) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 origin = ImGui::GetWindowPos();
  const float x = origin.x + width * 0.5f, y = origin.y + std::max(px(8), height * 0.5f - px(56));
  const char* sentence = view.model_state == ModelState::loading ? "The model is loading."
                                                                 : "No message yet. Write one, or try an example.";
  draw_icon(list, Icon::branch, {x, y + px(16)}, px(32), t.text3);
  draw_text(list, {x - text_size(Type::chat, sentence).x * 0.5f, y + px(44)}, Type::chat, t.text2, sentence);
  ButtonSpec example{kExample, Icon::none, ButtonKind::line};
  example.enabled = view.can_send();
  const ImVec2 size = button_size(example);
  ImGui::SetCursorScreenPos({std::floor(std::max(origin.x + px(8), x - size.x * 0.5f)), std::floor(y + px(76))});
  if (button(example)) sink.post(SendMessage{kExample});
}

void ChatPanel::draw_messages(const ViewModel& view, CommandSink& sink, float width) {
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {px(8), px(10)});
  for (const Message& message : view.messages) {
    ImGui::PushID(static_cast<int>(message.id));
    if (message.role == Role::user)
      draw_user(message, width);
    else
      draw_assistant(view, message, sink, width);
    ImGui::PopID();
  }
  draw_error_cards(view, sink, width);
  ImGui::PopStyleVar();
}

void ChatPanel::draw_user(const Message& message, float width) {
  const Theme& t = colours();
  TextBlock& block = blocks_[message.id];
  block.layout(message.text, Type::chat, std::floor(width * 0.8f) - px(kBubblePadX) * 2);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 size = {std::ceil(block.widest()) + px(kBubblePadX) * 2, block.height(px(20)) + px(kBubblePadY) * 2};
  const ImVec2 a = {at.x + width - size.x, at.y}, b = {a.x + size.x, a.y + size.y};
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(a, b, t.raised, px(8));
  const ImVec2 text_at = {a.x + px(kBubblePadX), a.y + px(kBubblePadY)};
  selection_.item(message.id, block, a, b, text_at, message.text, Type::chat, px(20));
  block.draw(list, text_at, message.text, Type::chat, t.text, px(20));
  ImGui::SetCursorScreenPos(at);
  ImGui::Dummy({width, size.y});
}

void ChatPanel::draw_assistant(const ViewModel& view, const Message& message, CommandSink& sink, float width) {
  const Theme& t = colours();
  TextBlock& block = blocks_[message.id];
  block.layout(message.text, Type::chat, width - px(12));
  const ImVec2 a = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float text_height = message.text.empty() && !message.writing ? 0 : block.height(px(kPitch));
  selection_.item(message.id, block, a, {a.x + width, a.y + text_height}, a, message.text, Type::chat, px(kPitch));
  const ImVec2 end = block.draw(list, a, message.text, Type::chat, t.text, px(kPitch));
  ImGui::SetCursorScreenPos(a);
  if (message.writing) draw_caret(end);
  ImGui::Dummy({width, text_height});
  if (message.writing || !message.result) return;
  const float y = ImGui::GetCursorScreenPos().y - px(6);
  ButtonSpec copy{"Copy", Icon::copy}, again{"Run again", Icon::redo};
  copy.show_label = again.show_label = false;
  copy.tooltip = "Copy the text";
  again.tooltip = "Run again";
  const bool last = &message == &view.messages.back();
  const float buttons = px(28) * (last ? 2 : 1) + (last ? px(4) : 0);
  draw_text_middle(list, a.x, y + px(14), Type::mono, t.text3,
                   elided(Type::mono, facts(message), width - buttons - px(8)));
  ImGui::SetCursorScreenPos({a.x, y});
  ImGui::Dummy({std::max(px(1), width - buttons - px(8)), px(28)});
  tooltip(prefill_fact(*message.result).c_str());
  ImGui::SetCursorScreenPos({a.x + width - buttons, y});
  if (button(copy)) sink.post(CopyText{message.text});
  if (!last) return;
  ImGui::SameLine(0, px(4));
  again.enabled = view.can_send();
  if (button(again)) sink.post(RunAgain{});
  draw_verdict(view, *message.result, sink, width);
}

/// On a device where drafting does not pay, it is on to be seen: that is said, with the way out beside it.
void ChatPanel::draw_verdict(const ViewModel& view, const ReplyFinished& reply, CommandSink& sink, float width) {
  const std::string verdict = plain_verdict(view.drafting, reply);
  if (verdict.empty()) return;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ButtonSpec plain{"Write plainly", Icon::none, ButtonKind::bare};
  plain.type = Type::secondary;
  plain.tooltip = "The same text, without drafts";
  const float room = width - button_size(plain).x - px(8);
  const std::string words = elided(Type::secondary, verdict + " Drafting is on to show it.", room);
  draw_text_middle(ImGui::GetWindowDrawList(), at.x, at.y + px(14), Type::secondary, colours().text2, words);
  ImGui::SetCursorScreenPos({at.x + text_size(Type::secondary, words).x + px(4), at.y});
  if (button(plain)) sink.post(SetDrafting{DecodeMode::ar});
  ImGui::SetCursorScreenPos({at.x, at.y + px(28)});
  ImGui::Dummy({0, 0});
}

}  // namespace canopy::app
