#include "app/chat/chat_list.h"

#include <imgui.h>
#include <imgui_internal.h>
#include <imgui_stdlib.h>

#include <algorithm>
#include <cmath>

#include "app/chat/served_list.h"
#include "app/state/chat.h"
#include "app/state/words.h"
#include "app/ui/actions.h"
#include "app/ui/look.h"
#include "app/ui/widgets.h"

namespace canopy::app {
namespace {

constexpr float kListMargin = 12, kListHead = 44, kChatRow = 52, kMoreRoom = 28;
constexpr float kServedShare = 0.45f;  // of the height, that requests of clients may have
constexpr int kFramesToTakeKeyboard = 6;
constexpr const char* kChatMenu = "Chat menu";

/// "14:05" for today's chats, else the date; in the user's time.
std::string when(int64_t changed_ms, int64_t now_ms) {
  const std::string then = local_time(changed_ms), now = local_time(now_ms);
  if (then.empty()) return "";
  return then.substr(0, 10) == now.substr(0, 10) ? then.substr(11, 5) : then.substr(0, 10);
}

void draw_sentence(ImVec2 origin, ImVec2 size, const char* sentence) {
  const ImVec2 text = text_size(Type::chat, sentence);
  draw_text(ImGui::GetWindowDrawList(),
            {origin.x + std::max(px(12), (size.x - text.x) * 0.5f), origin.y + size.y * 0.3f}, Type::chat,
            colours().text2, sentence);
  ImGui::Dummy(size);
}

}  // namespace

void ChatList::draw(const ViewModel& view, CommandSink& sink, Place place) {
  place_ = place;
  const ImVec2 a = ImGui::GetCursorScreenPos(), area = ImGui::GetContentRegionAvail();
  const float x = a.x + px(kListMargin), width = area.x - px(kListMargin) * 2;
  ImGui::SetCursorScreenPos({x, a.y + px(8)});
  draw_head(view, sink, width);
  float y = a.y + px(kListHead);
  ImGui::SetCursorScreenPos({x, y});
  draw_search(view, sink, width);
  y += px(38);
  if (view.chat.deleted) {
    ImGui::SetCursorScreenPos({x, y});
    ButtonSpec undo{"Undo delete", Icon::none, ButtonKind::line};
    undo.tooltip = "Bring the deleted chat back  Ctrl+Z";
    const bool here = ImGui::IsWindowFocused(ImGuiFocusedFlags_RootAndChildWindows) && !ImGui::GetIO().WantTextInput;
    if (button(undo) || (here && ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiKey_Z))) sink.post(UndoDelete{});
    y += px(36);
  }
  const float below = std::floor(std::min(served_list_height(view), area.y * kServedShare));
  ImGui::SetCursorScreenPos({a.x, y});
  draw_rows(view, sink, {area.x, std::max(px(40), a.y + area.y - y - below)});
  if (below <= 0) return;
  ImGui::SetCursorScreenPos({a.x, a.y + area.y - below});
  if (draw_served_list(view, sink, {area.x, below})) go_to_chat(sink);
}

/// The button that hides the list stands where the one that shows it does in the chat.
void ChatList::draw_head(const ViewModel& view, CommandSink& sink, float width) {
  const ImVec2 a = ImGui::GetCursorScreenPos();
  if (place_ != Place::panel) {
    if (icon_button("Hide chats", Icon::panels, "Hide the list of chats  Ctrl+B"))
      sink.post(switch_chat_list(view, false));
  }
  ButtonSpec fresh{"New chat", Icon::plus, ButtonKind::line};
  fresh.tooltip = "New chat  Ctrl+N";
  ImGui::SetCursorScreenPos({a.x + width - button_size(fresh).x, a.y});
  if (!button(fresh)) return;
  sink.post(NewChat{});
  go_to_chat(sink);
}

void ChatList::draw_search(const ViewModel& view, CommandSink& sink, float width) {
  const bool asked = place_ != Place::panel && searches_ != view.shell.chat_list_searches;
  if (asked) ImGui::SetKeyboardFocusHere();
  searches_ = view.shell.chat_list_searches;
  ImGui::SetNextItemWidth(width);
  if (ImGui::InputTextWithHint("##Search all chats", "Search all chats", &search_)) sink.post(SearchChats{search_});
  // Lab's list and that of Watch are lists of the same search.
  if (!ImGui::IsItemActive()) search_ = view.chat.search;
}

void ChatList::draw_rows(const ViewModel& view, CommandSink& sink, ImVec2 size) {
  if (view.chat.listings.empty()) {
    draw_sentence(ImGui::GetCursorScreenPos(), size,
                  !view.chat.kept            ? "Chats are not saved."
                  : view.chat.search.empty() ? "No chat yet."
                                             : "No chat has these words.");
    return;
  }
  ImGui::PushStyleColor(ImGuiCol_ChildBg, colours().panel);
  ImGui::PushStyleVar(ImGuiStyleVar_ChildBorderSize, 0);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  if (ImGui::BeginChild("Chats", size, ImGuiChildFlags_NavFlattened)) {
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(view.chat.listings.size()), px(kChatRow));
    while (clipper.Step()) {
      for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
        const ChatListing& chat = view.chat.listings[static_cast<size_t>(i)];
        ImGui::PushID(chat.id.c_str());
        draw_row(view, chat, sink, ImGui::GetContentRegionAvail().x);
        ImGui::PopID();
      }
    }
  }
  ImGui::EndChild();
  ImGui::PopStyleVar(2);
  ImGui::PopStyleColor();
}

void ChatList::draw_row(const ViewModel& view, const ChatListing& chat, CommandSink& sink, float width) {
  const Theme& t = colours();
  const ImVec2 a = ImGui::GetCursorScreenPos(), b = {a.x + width, a.y + px(kChatRow)};
  const bool selected = chat.id == view.messages.id && view.served.watched == 0;
  ImDrawList* list = ImGui::GetWindowDrawList();
  ImGui::SetNextItemAllowOverlap();
  const bool pressed = ImGui::InvisibleButton("Open chat", {width, px(kChatRow)}, ImGuiButtonFlags_EnableNav);
  const bool clicked_twice = ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left);
  const bool wants_menu = ImGui::IsItemHovered() && ImGui::IsMouseReleased(ImGuiMouseButton_Right);
  const bool menu = ImGui::IsPopupOpen(kChatMenu);
  const bool hovered = menu || (ImGui::IsWindowHovered() && ImGui::IsMouseHoveringRect(a, b));
  const bool renamed = naming_ == chat.id;
  if (!renamed) take_keys(chat, sink);
  if (clicked_twice) rename(chat);
  if (pressed && !renamed) {
    if (!selected || view.replaying()) sink.post(OpenChat{chat.id});
    go_to_chat(sink);
  }
  Colour fill = selected ? t.accent_bg : 0;
  if (hovered) fill = mix(selected ? t.accent_bg : t.panel, t.text, kHoverMix);
  if (fill) list->AddRectFilled({a.x + px(6), a.y + px(2)}, {b.x - px(6), b.y - px(2)}, fill, px(5));
  const float x = a.x + px(kListMargin), right = b.x - px(kListMargin) - px(kMoreRoom + 4);
  ImGui::SetCursorScreenPos({x, a.y + px(3)});
  if (renamed)
    draw_name(chat, sink, right - x);
  else
    draw_text_middle(list, x, a.y + px(17), Type::base, t.text, elided(Type::base, chat.title, right - x));
  const std::string about = when(chat.changed_ms, view.chat.now_ms) + "  " + std::to_string(chat.messages) +
                            (chat.messages == 1 ? " message" : " messages");
  const bool found = !chat.excerpt.empty();
  draw_text_middle(list, x, a.y + px(36), found ? Type::caption : Type::mono_caption, t.text3,
                   elided(found ? Type::caption : Type::mono_caption, found ? chat.excerpt : about, right - x));
  const ImVec2 at = {b.x - px(kListMargin) - px(kMoreRoom), a.y + px(12)};
  const ImVec2 middle = {at.x + px(kMoreRoom) * 0.5f, at.y + px(kMoreRoom) * 0.5f};
  ImGui::SetCursorScreenPos(at);
  const bool more = ImGui::InvisibleButton("More", {px(kMoreRoom), px(kMoreRoom)}, ImGuiButtonFlags_EnableNav);
  const bool at_more = ImGui::IsItemHovered();
  if (at_more)
    list->AddRectFilled(at, {at.x + px(kMoreRoom), at.y + px(kMoreRoom)}, mix(t.panel, t.text, kPressMix), px(5));
  const bool dots = hovered || at_more || (ImGui::IsItemFocused() && ImGui::GetIO().NavVisible);
  if (dots || chat.pinned) draw_icon(list, dots ? Icon::more : Icon::pin, middle, px(16), t.text2);
  tooltip("Rename, pin or delete this chat");
  if (more || wants_menu) ImGui::OpenPopup(kChatMenu);
  draw_menu(chat, sink);
  ImGui::SetCursorScreenPos({a.x, b.y});
  ImGui::Dummy({0, 0});
}

void ChatList::draw_name(const ChatListing& chat, CommandSink& sink, float width) {
  ImGui::SetNextItemWidth(width);
  // For some frames, as the first click of two has asked for the keyboard for the composer.
  const bool taking = focus_name_ > 0 && --focus_name_ > 0;
  if (taking && !named_) ImGui::SetKeyboardFocusHere();
  const bool entered =
      ImGui::InputText("##Name", &name_, ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_AutoSelectAll);
  named_ = ImGui::IsItemActive();
  const bool left = !taking && ImGui::IsItemDeactivated();
  if (entered) sink.post(RenameChat{name_, chat.id});
  if (entered || left) naming_.clear();
}

/// The keys of the row that has the keyboard.
void ChatList::take_keys(const ChatListing& chat, CommandSink& sink) {
  if (!ImGui::IsItemFocused()) return;
  const ImGuiID row = ImGui::GetItemID();
  ImGui::SetKeyOwner(ImGuiKey_F2, row);  // which opens the page of comparisons from everywhere else
  if (ImGui::IsKeyPressed(ImGuiKey_F2, ImGuiInputFlags_None, row)) rename(chat);
  if (ImGui::IsKeyPressed(ImGuiKey_Delete, false)) sink.post(DeleteChat{chat.id});
}

void ChatList::draw_menu(const ChatListing& chat, CommandSink& sink) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(8), px(8)});
  if (ImGui::BeginPopup(kChatMenu)) {
    const auto row = [](const char* id, const char* keys) {
      const bool chosen = menu_row(id, id, keys, false, true, px(180));
      if (chosen) ImGui::CloseCurrentPopup();
      return chosen;
    };
    if (row("Rename", "F2")) rename(chat);
    if (row(chat.pinned ? "Unpin" : "Pin", "")) sink.post(PinChat{!chat.pinned, chat.id});
    if (row("Delete", "Del")) sink.post(DeleteChat{chat.id});
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

void ChatList::rename(const ChatListing& chat) {
  naming_ = chat.id;
  name_ = chat.title;
  focus_name_ = kFramesToTakeKeyboard;
  named_ = false;
}

/// Shows the chat, which has the keyboard then.
void ChatList::go_to_chat(CommandSink& sink) {
  if (place_ == Place::panel) return sink.post(ShellCommand(ShowPanel{"Chat", true}));
  if (place_ == Place::drawer) sink.post(ShellCommand(ShowChatList{false, true}));
  ImGui::SetWindowFocus("Watch chat");
}

}  // namespace canopy::app
