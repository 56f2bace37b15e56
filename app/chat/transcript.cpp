#include "app/chat/transcript.h"

#include <imgui_internal.h>
#include <imgui_stdlib.h>

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "app/chat/composer.h"
#include "app/chat/reply.h"
#include "app/platform/system_fonts.h"
#include "app/state/chat_update.h"
#include "app/state/text_link.h"
#include "app/ui/look.h"
#include "app/ui/panel.h"
#include "app/ui/widgets.h"

namespace canopy::app {

namespace {

bool in_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

}  // namespace

TextSelection::Mouse TextSelection::item(uint64_t id, const MessageBody& body, ImVec2 a, ImVec2 b, ImVec2 pos,
                                         std::string_view text) {
  Mouse result;
  if (b.x <= a.x || b.y <= a.y) return result;
  ImGui::SetCursorScreenPos(a);
  ImGui::SetNextItemAllowOverlap();  // other items may be above it: the Copy button of a code block
  ImGui::InvisibleButton("text", {b.x - a.x, b.y - a.y});
  result.over = ImGui::IsItemHovered();
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  if (ImGui::IsItemActivated()) {
    press(id, body.byte_at(mouse, pos), text, ImGui::GetMouseClickedCount(ImGuiMouseButton_Left));
  } else if ((ImGui::IsItemActive() || ImGui::IsItemDeactivated()) && dragging_ && id_ == id) {
    caret_ = body.byte_at(mouse, pos);
    result.clicked = ImGui::IsItemDeactivated() && result.over && empty();
  }
  return result;
}

void TextSelection::draw(uint64_t id, const MessageBody& body, ImVec2 pos, ImDrawList* list) const {
  if (id_ != id || empty()) return;
  const Colour colour = selection_behind(colours());
  body.rects(pos, begin(), end(), [&](ImVec2 a, ImVec2 b) { list->AddRectFilled(a, b, colour); });
}

void TextSelection::press(uint64_t id, size_t byte, std::string_view text, int clicks) {
  const bool extend = ImGui::GetIO().KeyShift && id == id_;
  id_ = id;
  caret_ = byte;
  if (!extend) anchor_ = byte;
  dragging_ = clicks <= 1;
  if (dragging_) return;
  size_t from = std::min(byte, text.size()), to = from;
  auto belongs = [&](char c) { return clicks == 2 ? in_word(c) : c != '\n'; };
  while (from > 0 && belongs(text[from - 1])) --from;
  while (to < text.size() && belongs(text[to])) ++to;
  anchor_ = from;
  caret_ = to;
}

std::string TextSelection::of(std::string_view text) const {
  const size_t from = std::min(begin(), text.size());
  return std::string(text.substr(from, std::min(end(), text.size()) - from));
}

namespace {

constexpr float kLinePitch = 22;
constexpr float kSpacing = 10;
constexpr float kBubblePadX = 12, kBubblePadY = 8;
constexpr float kEditorLines = 4;
constexpr float kThoughtIndent = 14;
constexpr float kEnd = 4;           // below the last line
constexpr size_t kBodiesKept = 64;  // layouts kept of messages that are out of view

/// Draws the caret. It does not blink, so that an idle window draws nothing.
void draw_caret(ImVec2 at) {
  note_drawn(ImGui::GetWindowDrawList(), at, Type::chat, kCaret);
  ImGui::GetWindowDrawList()->AddRectFilled({at.x + px(2), at.y + px(3)}, {at.x + px(9), at.y + px(19)},
                                            colours().accent);
}

float bubble_width(float width) {
  return std::floor(width * 0.8f);
}

/// The height of a reply's answer in pixels: nothing where there is none, and none is about to come.
float answer_height(const Message& message, const MessageBody& body) {
  const bool waits = message.writing && !thinking_of(message).open;
  return body.empty() && !waits ? 0 : body.height();
}

/// Whether message i is the first that is sent to the model, after some that are not.
bool begins_sent(const ViewModel& view, size_t i) {
  return i > 0 && view.own_chat() && i == view.conversation().unsent();
}

/// Draws the line between the turns that are left out of prompts and those that are sent.
void draw_sent_from_here(const ViewModel& view, CommandSink& sink, float width) {
  const Theme& t = colours();
  const ImVec2 a = ImGui::GetCursorScreenPos();
  ButtonSpec all{"Send all turns", Icon::none, ButtonKind::bare};
  all.words = "Send them again";
  all.type = Type::secondary;
  all.enabled = !view.busy();
  all.tooltip = "The model sees the whole chat again, as far as its context can hold it";
  const float room = width - button_size(all).x - px(12);
  const std::string words = first_fitting(
      Type::secondary, {"The model no longer sees the turns above", "The model sees from here on", "Seen from here"},
      room);
  const float end = a.x + text_size(Type::secondary, words).x, middle = a.y + px(kReplyRow) * 0.5f;
  draw_text_middle(ImGui::GetWindowDrawList(), a.x, middle, Type::secondary, t.text2, words);
  const float line = std::floor(middle) + 0.5f, right = a.x + width - button_size(all).x - px(4);
  if (right > end + px(12))
    ImGui::GetWindowDrawList()->AddLine({end + px(8), line}, {right, line}, ImGui::GetColorU32(t.line), px(1));
  ImGui::SetCursorScreenPos({a.x + width - button_size(all).x, a.y});
  if (button(all)) sink.post(ChatCommand(SendAllTurns{}));
}

}  // namespace

MessageBody& Transcript::body_of(const Message& message, float width) {
  MessageBody& body = bodies_[message.id];
  const bool user = message.role == Role::user;
  body.layout(message, user ? bubble_width(width) - px(kBubblePadX) * 2 : width - px(4));
  return body;
}

MessageBody& Transcript::thought_of(const Message& message, float width) {
  MessageBody& body = thoughts_[message.id];
  body.layout_thinking(message, width - px(kThoughtIndent) - px(4));
  return body;
}

/// The height of a reply's thinking in front of its answer, in pixels: one line, and its text where it is unfolded.
float Transcript::thinking_height(const Message& message, float width) {
  if (!thinking_of(message).there) return 0;
  return px(kReplyRow) + (unfolded_.contains(message.id) ? thought_of(message, width).height() + px(8) : 0);
}

/// The height of a message with everything that belongs to it, spacing included, in pixels.
float Transcript::height_of(const ViewModel& view, size_t i, float width) {
  const Message& message = view.conversation()[i];
  if (message.failed_unsaid()) return 0;
  float height = px(kSpacing) + (begins_sent(view, i) ? px(kReplyRow) : 0);
  if (message.id == editing_) return height + px(kLinePitch) * kEditorLines + px(16) + px(kReplyRow) + px(8);
  if (message.role == Role::user)
    return height + body_of(message, width).height() + attached_height(message) + px(kBubblePadY) * 2 +
           (view.conversation().place(i).count > 1 ? px(kReplyRow) : 0);
  height += thinking_height(message, width) + answer_height(message, body_of(message, width));
  if (message.writing || !message.result) return height;
  return height + reply_end_height(view, i, width);
}

float Transcript::guess(const Message& message, float width) const {
  if (message.failed_unsaid()) return 0;
  const float letters = std::max(8.0f, width / px(7.5f));
  const float lines = 1 + static_cast<float>(message.text.size()) / letters;
  return px(kLinePitch) * std::ceil(lines) + px(kReplyRow) + px(kSpacing);
}

/// Makes the wanted hit in message i visible. Returns its height in the list, in pixels.
float Transcript::show_hit(const ViewModel& view, size_t i, float width) {
  const Message& message = view.conversation()[i];
  const Thinking thinking = thinking_of(message);
  const bool thought = thinking.there && wanted_->begin < thinking.answer;
  if (thought) unfolded_.insert(message.id);
  heights_[wanted_->message] = height_of(view, i, width);
  const float top = tops_[i] + (thought ? px(kReplyRow) : thinking_height(message, width));
  float y = tops_[i];
  MessageBody& body = thought ? thought_of(message, width) : body_of(message, width);
  body.reveal(wanted_->begin, wanted_->end);
  body.rects({0, 0}, wanted_->begin, wanted_->end, [&](ImVec2 a, ImVec2) { y = std::max(y, top + a.y); });
  return y;
}

/// Finds the places of all messages, before the child window begins: measures those in and near the view, and corrects
/// the scroll position for changes above it.
void Transcript::prepare(const ViewModel& view, float width, float room) {
  const float scale = text_height(Type::chat);
  const bool resized = width != width_ || scale != scale_ || look().fonts_found != fonts_found_;
  if (resized) heights_.clear(), bodies_.clear(), thoughts_.clear();
  width_ = width;
  scale_ = scale;
  fonts_found_ = look().fonts_found;
  const size_t count = view.conversation().size();
  tops_.resize(count + 1);
  const auto sum = [&] {
    float y = 0;
    for (size_t i = 0; i < count; ++i) {
      tops_[i] = y;
      const auto known = heights_.find(view.conversation()[i].id);
      y += known != heights_.end() ? known->second : guess(view.conversation()[i], width);
    }
    tops_[count] = total_ = y;
  };
  sum();
  ImGuiWindow* child = child_ ? ImGui::FindWindowByID(child_) : nullptr;
  // The scroll position, or the place to scroll to that the mouse wheel or a key has asked for.
  const bool going = child && child->ScrollTarget.y < FLT_MAX;
  const float here = !child  ? 0
                     : going ? child->ScrollTarget.y - child->ScrollTargetCenterRatio.y * child->SizeFull.y
                             : child->Scroll.y;
  if (going && here < child->Scroll.y) follow_ = false;
  float scroll = here;
  const size_t anchor = anchor_ ? view.conversation().find(anchor_) : count;
  // Where the reader is now: the first message in view stays where it is, and of one that was laid out anew in another
  // width the same share is above the view.
  const auto kept = [&] {
    if (!child || anchor >= count) return here;
    if (!resized || anchor_height_ <= 0 || here <= anchor_top_) return here + tops_[anchor] - anchor_top_;
    return tops_[anchor] + (here - anchor_top_) * (tops_[anchor + 1] - tops_[anchor]) / anchor_height_;
  };
  if (wanted_ && view.conversation().find(wanted_->message) < count)
    scroll = std::max(0.0f, tops_[view.conversation().find(wanted_->message)] - room * 0.4f);
  else if (follow_)
    scroll = std::max(0.0f, total_ - room);
  else if (resized && child && anchor < count) {
    heights_[anchor_] = height_of(view, anchor, width);
    sum();
    scroll = kept();
  }
  bool changed = false;
  for (size_t i = 0; i < count; ++i) {
    const bool near_view = tops_[i + 1] >= scroll - room * 0.5f && tops_[i] <= scroll + room * 1.5f;
    if (!near_view && i + 1 != count) continue;
    float& height = heights_[view.conversation()[i].id];
    const float now = height_of(view, i, width);
    changed |= height != now;
    height = now;
  }
  if (changed) sum();
  if (wanted_ && view.conversation().find(wanted_->message) == count) wanted_.reset();
  if (wanted_) {
    const float y = show_hit(view, view.conversation().find(wanted_->message), width);
    sum();  // what was thought may have been unfolded for it
    const bool seen = wanted_unseen_ && y >= here && y + px(kLinePitch) <= here + room;
    if (!seen) {
      ImGui::SetNextWindowScroll({-1, std::max(0.0f, y - room * 0.4f)});
      follow_ = false;
    }
    wanted_.reset();
  } else if (follow_ && !ImGui::IsMouseDown(ImGuiMouseButton_Left)) {  // text must not move under the mouse
    ImGui::SetNextWindowScroll({-1, total_ + below_ + px(kEnd)});      // Dear ImGui ends it at the last line
  } else if (!follow_ && std::abs(kept() - here) >= 1) {
    ImGui::SetNextWindowScroll({-1, std::max(0.0f, kept())});
  }
  // The list is as high as it is now, not as it was when it was last drawn: else the end of a reply that grew, or the
  // place of a reader in a window that was resized, would lie outside for a frame.
  ImGui::SetNextWindowContentSize({0, total_ + below_ + px(kEnd)});
}

void Transcript::draw(const ViewModel& view, CommandSink& sink, ImVec2 size, float margin) {
  const uint64_t first = view.conversation().empty() ? 0 : view.conversation().front().id;
  if (first != first_) {  // another conversation is shown
    bodies_.clear();
    thoughts_.clear();
    heights_.clear();
    selection_.clear();
    editing_ = 0;
    follow_ = true;
  }
  first_ = first;
  const float width = size.x - margin * 2;
  seen_.clear();
  missing_.clear();
  text_end_.reset();
  pointed_ = false;
  show_pinned_place(view);
  prepare(view, width, size.y);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, colours().panel);
  ImGui::PushStyleVar(ImGuiStyleVar_ChildBorderSize, 0);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {px(8), 0});
  if (ImGui::BeginChild(name_, size, ImGuiChildFlags_None, ImGuiWindowFlags_NoNavInputs)) {
    child_ = ImGui::GetCurrentWindow()->ID;
    draw_messages(view, sink, margin, width);
    scroll(view);
  }
  ImGui::EndChild();
  ImGui::PopStyleVar(2);
  ImGui::PopStyleColor();
  if (pointing_ && !pointed_) {
    sink.post(RoundsCommand(HoverNode{}));
    pointing_ = false;
  }
  if (bodies_.size() > seen_.size() + kBodiesKept)
    std::erase_if(bodies_, [&](const auto& each) { return !seen_.contains(each.first); });
  std::erase_if(thoughts_, [&](const auto& each) { return !seen_.contains(each.first); });
  limits_ = missing_fonts_note(missing_);
  shown_ = view.conversation().size();
  last_ = view.conversation().empty() ? 0 : view.conversation().back().id;
}

/// Scrolls to the place where the guess was found whose card has just been pinned.
void Transcript::show_pinned_place(const ViewModel& view) {
  const std::optional<NodeRef> pinned = view.rounds.selected;
  if (pinned == scrolled_for_) return;
  scrolled_for_ = pinned;
  const FoundPlace* place = place_of(view.rounds, pinned);
  if (!place || !is_on_show(view.conversation(), *place)) return;
  wanted_ = ChatHit{place->message, place->begin, place->end};
  wanted_unseen_ = true;
}

/// Adds what of a message no font has to what is said of all that was drawn.
void Transcript::note_missing(const MessageBody& body) {
  const std::vector<uint32_t> missing = body.missing();
  missing_.insert(missing_.end(), missing.begin(), missing.end());
}

/// Stays at the end while text arrives, until the user scrolls away; again once they return or send a message.
void Transcript::scroll(const ViewModel& view) {
  const float now = ImGui::GetScrollY(), most = ImGui::GetScrollMaxY();
  const float page = ImGui::GetWindowHeight() - px(kLinePitch) * 2;
  const bool popup = ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel);
  float jump = 0;
  const bool keys = !popup && view.shell.layout == WindowLayout::lab;  // in Watch they go from pass to pass
  if (keys && ImGui::IsKeyPressed(ImGuiKey_PageUp)) jump = -page;
  if (keys && ImGui::IsKeyPressed(ImGuiKey_PageDown)) jump = page;
  // A list that became shorter, as in a wider window, has moved by itself.
  if ((now < scroll_ - 1 && now < most - 1) || jump < 0) follow_ = false;
  if (now >= most - 1 && jump >= 0) follow_ = true;
  const uint64_t newest = view.conversation().empty() ? 0 : view.conversation().back().id;
  if (newest != last_ && view.conversation().size() != shown_) follow_ = true;
  scroll_ = now;
  if (jump != 0) ImGui::SetScrollY(std::clamp(now + jump, 0.0f, most));
}

void Transcript::draw_messages(const ViewModel& view, CommandSink& sink, float left, float width) {
  const float from = ImGui::GetScrollY(), to = from + ImGui::GetWindowHeight();
  anchor_ = 0;
  for (size_t i = 0; i < view.conversation().size(); ++i) {
    const Message& message = view.conversation()[i];
    if (tops_[i + 1] < from || tops_[i] > to || message.failed_unsaid()) continue;
    if (!anchor_) anchor_ = message.id, anchor_top_ = tops_[i], anchor_height_ = tops_[i + 1] - tops_[i];
    seen_.insert(message.id);
    ImGui::SetCursorPos({left, tops_[i]});
    ImGui::PushID(static_cast<int>(message.id));
    if (begins_sent(view, i)) {
      draw_sent_from_here(view, sink, width);
      ImGui::SetCursorPos({left, tops_[i] + px(kReplyRow)});
    }
    if (message.id == editing_)
      draw_editor(view, message, sink, width);
    else if (message.role == Role::user)
      draw_user(view, i, sink, width);
    else
      draw_reply(view, i, sink, width);
    ImGui::PopID();
  }
  ImGui::SetCursorPos({left, total_});
  ImGui::BeginGroup();
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {px(8), px(kSpacing)});
  draw_error_cards(view, sink, width);
  ImGui::PopStyleVar();
  ImGui::EndGroup();
  below_ = ImGui::GetItemRectSize().y;
}

void Transcript::draw_marks(ImDrawList* list, const ViewModel& view, const Message& message, const MessageBody& body,
                            ImVec2 pos) {
  if (message.role == Role::assistant) draw_token_marks(list, view, message, body, pos);
  draw_found_place(list, view, message, body, pos);
  selection_.draw(message.id, body, pos, list);
  if (!hits_) return;
  for (const ChatHit& hit : *hits_) {
    if (hit.message != message.id) continue;
    const bool current = current_hit_ && hit == *current_hit_;
    body.rects(pos, hit.begin, hit.end, [&](ImVec2 a, ImVec2 b) {
      list->AddRectFilled({a.x, a.y + px(2)}, {b.x, b.y - px(1)}, colours().bonus_bg, px(2));
      list->AddRect({a.x - px(1), a.y + px(1)}, {b.x + px(1), b.y}, current ? colours().bonus : colours().ctl, px(2),
                    px(current ? 1.5f : 1));
    });
  }
}

void Transcript::draw_user(const ViewModel& view, size_t i, CommandSink& sink, float width) {
  const Theme& t = colours();
  const Message& message = view.conversation()[i];
  MessageBody& body = body_of(message, width);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float files = attached_height(message);
  const float widest = std::max(body.widest(), attached_width(message, bubble_width(width) - px(kBubblePadX) * 2));
  const ImVec2 size = {std::ceil(widest) + px(kBubblePadX) * 2, files + body.height() + px(kBubblePadY) * 2};
  const ImVec2 a = {at.x + width - size.x, at.y}, b = {a.x + size.x, a.y + size.y};
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(a, b, t.raised, px(8));
  draw_attached(message, {a.x + px(kBubblePadX), a.y + px(kBubblePadY)}, widest);
  const ImVec2 text_at = {a.x + px(kBubblePadX), a.y + px(kBubblePadY) + files};
  selection_.item(message.id, body, {a.x, a.y + files}, b, text_at, message.text);
  draw_marks(list, view, message, body, text_at);
  body.draw_text(list, text_at);
  note_missing(body);
  // Beside the bubble, so that nothing moves when it appears. For the keyboard it is always there.
  const bool near_by = ImGui::IsMouseHoveringRect(at, {b.x, b.y}) && ImGui::IsWindowHovered();
  const float x = a.x - px(kReplyRow) - px(4);
  if (x >= at.x && view.own_chat()) {
    const float faded = near_by || ImGui::GetIO().NavVisible ? 1.0f : 0.0f;
    ImGui::PushStyleVar(ImGuiStyleVar_Alpha, ImGui::GetStyle().Alpha * std::max(faded, 0.001f));
    ImGui::SetCursorScreenPos({x, a.y + (std::min(size.y, px(38)) - px(kReplyRow)) * 0.5f});
    if (icon_button("Edit", Icon::edit, "Ask anew; this question stays as a branch", !view.busy())) {
      editing_ = message.id;
      edited_ = message.text;
      focus_editor_ = true;
    }
    ImGui::PopStyleVar();
  }
  if (view.conversation().place(i).count > 1) {
    draw_versions(view, i, sink, {b.x - versions_width(view, i), b.y});
  }
}

void Transcript::draw_editor(const ViewModel& view, const Message& message, CommandSink& sink, float width) {
  const ImVec2 a = ImGui::GetCursorScreenPos();
  const float height = px(kLinePitch) * kEditorLines + px(16);
  push_type(Type::chat);
  if (focus_editor_) ImGui::SetKeyboardFocusHere();
  focus_editor_ = false;
  const bool entered = ImGui::InputTextMultiline(
      "##question", &edited_, {width, height},
      ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_CtrlEnterForNewLine | ImGuiInputTextFlags_WordWrap);
  // The caret goes to the end, as one edits what was just written; Dear ImGui would select everything.
  ImGuiInputTextState* state = ImGui::GetInputTextState(ImGui::GetItemID());
  if (ImGui::IsItemActivated() && state && !ImGui::IsMouseDown(ImGuiMouseButton_Left))
    state->SetSelection(state->TextLen, state->TextLen);
  const bool escaped = ImGui::IsItemFocused() && ImGui::IsKeyPressed(ImGuiKey_Escape, false);
  ImGui::PopFont();
  ButtonSpec ask{"Ask again", Icon::send, ButtonKind::primary}, keep{"Cancel", Icon::none, ButtonKind::line};
  ask.enabled = view.can_send() && edited_.find_first_not_of(" \t\r\n") != std::string::npos;
  ask.tooltip =
      view.can_send() ? "Ask this instead; the old question stays as a branch  Enter" : "Needs a model that is idle";
  keep.tooltip = "Leave the question as it was  Esc";
  ImGui::SetCursorScreenPos({a.x, a.y + height + px(6)});
  if (button(ask) || (entered && ask.enabled)) {
    sink.post(EditQuestion{message.id, edited_});
    editing_ = 0;
  }
  ImGui::SameLine(0, px(8));
  if (button(keep) || escaped) editing_ = 0;
}

void Transcript::draw_code_buttons(const MessageBody& body, ImVec2 pos, CommandSink& sink) {
  int number = 0;
  body.code_blocks(pos, [&](const std::string& code, ImVec2 corner, float head) {
    ImGui::PushID(++number);
    ButtonSpec copy{"Copy code", Icon::copy};
    copy.type = Type::secondary;
    copy.words = "Copy";
    copy.height = 24;
    const ImVec2 size = button_size(copy);
    ImGui::SetCursorScreenPos({corner.x - size.x - px(3), std::floor(corner.y + (head - size.y) * 0.5f)});
    if (ImGui::IsRectVisible(size) && button(copy)) sink.post(CopyText{code});
    ImGui::PopID();
  });
}

void Transcript::point_at(const ViewModel& view, const Message& message, const MessageBody& body, ImVec2 pos,
                          TextSelection::Mouse mouse, CommandSink& sink) {
  if (!mouse.over) return;
  const std::string link = body.link_at(ImGui::GetIO().MousePos, pos);
  if (!link.empty()) {
    ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
    show_tooltip(link + "\nClick copies the address");
    if (mouse.clicked) sink.post(CopyText{link});
    return;
  }
  ImGui::SetMouseCursor(ImGuiMouseCursor_TextInput);
  if (message.spans.empty() || ImGui::IsMouseDragging(ImGuiMouseButton_Left)) return;
  // The token under the pointer itself, not the nearest one.
  const ImVec2 at = ImGui::GetIO().MousePos;
  const size_t byte = body.byte_at(at, pos);
  for (const size_t near_by : {byte, byte > 0 ? byte - 1 : byte}) {
    const TokenSpan* span = token_at(message, near_by);
    bool inside = false;
    if (span)
      body.rects(pos, span->begin, span->end,
                 [&](ImVec2 a, ImVec2 b) { inside |= at.x >= a.x && at.x < b.x && at.y >= a.y && at.y < b.y; });
    const auto node = inside ? node_of(view, message, *span) : std::nullopt;
    if (!node) continue;
    pointed_ = true;
    if (!pointing_ || view.rounds.hovered != node) sink.post(RoundsCommand(HoverNode{node}));
    pointing_ = true;
    if (mouse.clicked) {
      sink.post(RoundsCommand(SelectNode{node}));
      scrolled_for_ = node;  // the word that was clicked stays under the mouse
    }
    return;
  }
}

/// Draws one line about the thinking in front of an answer, which folds and unfolds it, and moves the cursor below.
void Transcript::draw_thinking(const ViewModel& view, const Message& message, CommandSink& sink, float width) {
  const Thinking thinking = thinking_of(message);
  if (!thinking.there) return;
  const ImVec2 a = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const bool unfolded = unfolded_.contains(message.id);
  const std::string words = thinking_words(message, thinking);
  ButtonSpec head{"Thinking", unfolded ? Icon::chevron : Icon::right};
  head.words = words.c_str();
  head.type = Type::secondary;
  head.tooltip = unfolded ? "Fold what the model thought" : "Show what the model thought before it answered";
  // Aligns the icon with the answer below, not the invisible edge of the button.
  ImGui::SetCursorScreenPos({a.x - px(8), a.y});
  if (button(head)) {
    if (unfolded)
      unfolded_.erase(message.id);
    else
      unfolded_.insert(message.id);
  }
  float y = a.y + px(kReplyRow);
  if (message.writing && thinking.open) draw_caret({a.x + button_size(head).x - px(14), a.y + px(3)});
  if (unfolded) {
    MessageBody& body = thought_of(message, width);
    const ImVec2 at = {a.x + px(kThoughtIndent), y};
    list->AddRectFilled({a.x + px(3), y}, {a.x + px(5), y + body.height()}, colours().line);
    ImGui::PushID("thought");
    const auto mouse = selection_.item(message.id, body, at, {a.x + width, y + body.height()}, at, message.text);
    draw_marks(list, view, message, body, at);
    body.draw_text(list, at);
    point_at(view, message, body, at, mouse, sink);
    ImGui::PopID();
    note_missing(body);
    y += body.height() + px(8);
  }
  ImGui::SetCursorScreenPos({a.x, y});
}

void Transcript::draw_reply(const ViewModel& view, size_t i, CommandSink& sink, float width) {
  const Message& message = view.conversation()[i];
  MessageBody& body = body_of(message, width);
  draw_thinking(view, message, sink, width);
  const ImVec2 a = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float height = answer_height(message, body);
  const auto mouse = selection_.item(message.id, body, a, {a.x + width, a.y + height}, a, message.text);
  body.draw_surfaces(list, a);
  draw_marks(list, view, message, body, a);
  const ImVec2 end = body.draw_text(list, a);
  if (message.writing && height > 0) draw_caret(end);
  text_end_ = end;
  point_at(view, message, body, a, mouse, sink);
  draw_code_buttons(body, a, sink);
  note_missing(body);
  if (message.writing || !message.result) return;
  ImGui::SetCursorScreenPos({a.x, a.y + height});
  draw_reply_end(view, i, sink, width);
}

}  // namespace canopy::app
