#include "app/chat/chat_panel.h"

#include <imgui_internal.h>
#include <imgui_stdlib.h>

#include <algorithm>
#include <cmath>

#include "app/chat/replay_bar.h"
#include "app/chat/token_marks.h"
#include "app/look/widgets.h"

namespace canopy::app {
namespace {

constexpr float kColumn = 760;  // width at 100%; about 95 characters in a line
constexpr float kMargin = 12;
constexpr float kHeader = 44;
constexpr float kNoteRow = 28;
constexpr float kLow = 320;     // below this height only messages and composer are shown
constexpr float kLowest = 220;  // below this height not even the title is shown, as on a projector at 300%
constexpr const char* kExample = "Explain in two sentences why the sky is blue.";

bool has_marks(const ViewModel& view) {
  const Conversation& shown = view.conversation();
  for (size_t i = shown.size(); i-- > 0 && i + 8 > shown.size();)
    for (const TokenSpan& span : shown[i].spans)
      if (span.source != TokenSource::ar) return true;
  return false;
}

constexpr const char* kFilesMenu = "Export or import menu";

/// Draws the menu with its upper right corner at `corner`.
void draw_files_menu(const ViewModel& view, CommandSink& sink, ImVec2 corner) {
  ImGui::SetNextWindowPos(corner, ImGuiCond_Always, {1, 0});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(8), px(8)});
  if (ImGui::BeginPopup(kFilesMenu)) {
    auto row = [&](const char* id, const char* words, const char* keys, bool enabled, ChatFiles files) {
      if (!menu_row(id, words, keys, false, enabled, px(240))) return;
      sink.post(ChatCommand(ShowChatFiles{files}));
      ImGui::CloseCurrentPopup();
    };
    row("Export chat", "Export chat\u2026", "Ctrl+E", !view.conversation().empty(), ChatFiles::exporting);
    row("Import chat", "Import chat\u2026", "", true, ChatFiles::importing);
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

}  // namespace

void ChatPanel::draw(const ViewModel& view, CommandSink& sink) {
  const ImVec2 origin = ImGui::GetCursorScreenPos(), area = ImGui::GetContentRegionAvail();
  const float width = std::floor(std::min(px(kColumn), area.x - px(kMargin) * 2));
  const float left = std::floor((area.x - width) * 0.5f);
  ImGui::SetCursorScreenPos({origin.x + left, origin.y});
  ImGui::BeginGroup();
  if (area.y >= px(kLowest)) draw_header(view, sink, width);
  bool moved = false;
  if (view.chat.find_shown)
    moved = find_.draw(view, sink, width);
  else if (find_.close())
    composer_.focus();  // without this, after Esc in a text box Dear ImGui would leave the focus where it is
  ImGui::EndGroup();
  Transcript& transcript = shown(view);
  if (moved && find_.current()) transcript.show(*find_.current());
  transcript.mark(view.chat.find_shown ? &find_.hits() : nullptr, find_.current());
  const bool bare = area.y < px(kLowest) && !view.chat.find_shown;
  const float top = bare ? origin.y : ImGui::GetCursorScreenPos().y;
  const bool replay_bar = view.replaying() && area.y >= px(kLowest);  // the top bar says it too
  const float writing = replay_bar ? replay_bar_height() : view.replaying() ? 0 : composer_.height(view, width);
  const float below = below_height(view, width) + writing + px(kMargin) + px(8);
  const ImVec2 size = {area.x, std::max(px(40), origin.y + area.y - top - below)};
  ImGui::SetCursorScreenPos({origin.x, top});
  if (view.replaying() && view.replay.origin().redacted && view.cards.empty())
    draw_redacted_note(size);
  else if (view.conversation().empty() && view.cards.empty())
    draw_empty(view, sink, size);
  else
    transcript.draw(view, sink, size, left);
  if (!transcript.follows_end()) draw_to_end(transcript, {origin.x + area.x * 0.5f, top + size.y - px(22)});
  ImGui::SetCursorScreenPos({origin.x + left, top + size.y + px(8)});
  draw_below(view, sink, width);
  if (replay_bar)
    draw_replay_bar(view, sink, width);
  else if (!view.replaying())
    composer_.draw(view, sink, width);
  else
    ImGui::Dummy({0, 0});  // Dear ImGui wants an item where the cursor was set
  copy_selection(view, sink);
  if (!view.replaying()) keep_keyboard_in_composer();
}

std::optional<ImVec2> ChatPanel::text_end(const ViewModel& view) {
  return shown(view).text_end();
}

float ChatPanel::below_height(const ViewModel& view, float width) {
  if (ImGui::GetWindowHeight() < px(kLow)) return 0;
  const std::string& limits = shown(view).limits();
  return (has_marks(view) ? token_legend_height(view, width) : 0) + (view.chat.note.empty() ? 0 : px(kNoteRow)) +
         (limits.empty() || limits == dismissed_limits_ ? 0 : px(kNoteRow));
}

/// Draws what is between messages and composer: limits of what can be shown, the last action, the meaning of colours.
void ChatPanel::draw_below(const ViewModel& view, CommandSink& sink, float width) {
  if (ImGui::GetWindowHeight() < px(kLow)) return;
  const ImVec2 a = ImGui::GetCursorScreenPos();
  float y = a.y;
  const std::string& limits = shown(view).limits();
  if (!limits.empty() && limits != dismissed_limits_) {
    draw_triangle_sign(ImGui::GetWindowDrawList(), {a.x + px(8), y + px(14)}, px(14), colours().bonus, colours().panel);
    const float room = width - px(24) - px(32);
    draw_text_middle(ImGui::GetWindowDrawList(), a.x + px(24), y + px(14), Type::secondary, colours().text2,
                     elided(Type::secondary, limits, room));
    ImGui::SetCursorScreenPos({a.x, y});
    ImGui::InvisibleButton("Limits of fonts", {width - px(32), px(kNoteRow)});
    tooltip(limits.c_str());
    ImGui::SetCursorScreenPos({a.x + width - px(28), y});
    if (icon_button("Dismiss limits", Icon::close, "Dismiss")) dismissed_limits_ = limits;
    y += px(kNoteRow);
  }
  if (!view.chat.note.empty()) {
    ImGui::SetCursorScreenPos({a.x, y});
    draw_note(view, sink, width);
    y += px(kNoteRow);
  }
  if (has_marks(view)) {
    ImGui::SetCursorScreenPos({a.x, y});
    draw_token_legend(view, sink, width);
    y += token_legend_height(view, width);
  }
  ImGui::SetCursorScreenPos({a.x, y});
}

void ChatPanel::draw_note(const ViewModel& view, CommandSink& sink, float width) {
  const ImVec2 a = ImGui::GetCursorScreenPos();
  ButtonSpec undo{"Undo", Icon::none, ButtonKind::line};
  undo.height = 24;
  const bool undoable = view.chat.deleted.has_value();
  const float room = width - px(32) - (undoable ? button_size(undo).x + px(8) : 0);
  const std::string words = elided(Type::secondary, view.chat.note, room);
  draw_text_middle(ImGui::GetWindowDrawList(), a.x, a.y + px(14), Type::secondary, colours().text2, words);
  if (undoable) {
    ImGui::SetCursorScreenPos({a.x + text_size(Type::secondary, words).x + px(10), a.y + px(2)});
    if (button(undo)) sink.post(UndoDelete{});
  }
  ImGui::SetCursorScreenPos({a.x + width - px(28), a.y});
  if (icon_button("Dismiss note", Icon::close, "Dismiss")) sink.post(DismissChatNote{});
}

void ChatPanel::draw_to_end(Transcript& transcript, ImVec2 centre) {
  ButtonSpec spec{"To the end", Icon::chevron, ButtonKind::line};
  spec.type = Type::secondary;
  const ImVec2 size = button_size(spec),
               a = {std::floor(centre.x - size.x * 0.5f), std::floor(centre.y - size.y * 0.5f)};
  ImGui::SetCursorScreenPos(a);
  // In a child window, so that it is above the messages, for drawing and for the mouse.
  ImGui::PushStyleColor(ImGuiCol_ChildBg, colours().raised);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
  ImGui::PushStyleVar(ImGuiStyleVar_ChildBorderSize, 0);
  if (ImGui::BeginChild("Over", size, ImGuiChildFlags_None, ImGuiWindowFlags_NoScrollbar)) {
    if (button(spec)) transcript.follow_end();
  }
  ImGui::EndChild();
  ImGui::PopStyleVar(2);
  ImGui::PopStyleColor();
}

void ChatPanel::copy_selection(const ViewModel& view, CommandSink& sink) {
  TextSelection& selection = shown(view).selection();
  if ((!view.replaying() && composer_.has_selection()) || find_.active() || shown(view).editing())
    return selection.clear();
  if (selection.empty() || !ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiKey_C)) return;
  for (const Message& message : view.conversation())
    if (message.id == selection.id()) sink.post(CopyText{selection.of(message.text)});
}

/// Gives the keyboard to the composer after any click in this panel. Exceptions are Tab, an open menu and a text box
/// that is in use.
void ChatPanel::keep_keyboard_in_composer() {
  const bool popup = ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId | ImGuiPopupFlags_AnyPopupLevel);
  if (popup || composer_.active() || ImGui::IsAnyItemActive() || ImGui::IsAnyMouseDown()) return;
  if (transcript_.editing() || naming_ || find_.active()) return;
  // Not while another panel or part of Watch has the focus: the tree and the timeline use the arrow keys, and others
  // have text boxes.
  const ImGuiWindow* focused = ImGui::GetCurrentContext()->NavWindow;
  const bool panel =
      focused != nullptr && (focused->RootWindow->DockId != 0 || std::string_view(focused->Name).starts_with("Watch"));
  if (panel && !ImGui::IsWindowFocused(ImGuiFocusedFlags_RootAndChildWindows)) return;
  if (!ImGui::GetIO().NavVisible) composer_.focus();
}

void ChatPanel::draw_title(const ViewModel& view, CommandSink& sink, ImVec2 at, float room) {
  if (naming_ && !view.replaying()) {
    ImGui::SetCursorScreenPos({at.x, at.y - px(14)});
    ImGui::SetNextItemWidth(room);
    if (focus_name_) ImGui::SetKeyboardFocusHere();
    focus_name_ = false;
    const bool entered =
        ImGui::InputText("##Name", &name_, ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_AutoSelectAll);
    const bool left = ImGui::IsItemDeactivated();
    if (entered) sink.post(RenameChat{name_});
    if (entered || left) naming_ = false;
    return;
  }
  const std::string title = elided(Type::base_semibold, view.conversation().shown_title(), room);
  draw_text_middle(ImGui::GetWindowDrawList(), at.x, at.y, Type::base_semibold, colours().text, title);
  if (view.conversation().empty() || view.replaying()) return;
  ImGui::SetCursorScreenPos({at.x, at.y - px(14)});
  const float width = std::max(px(8), std::min(room, text_size(Type::base_semibold, title).x));
  if (ImGui::InvisibleButton("Title", {width, px(28)}, ImGuiButtonFlags_EnableNav)) {
    naming_ = focus_name_ = true;
    name_ = view.messages.shown_title();
  }
  tooltip("Rename this chat");
}

void ChatPanel::draw_header(const ViewModel& view, CommandSink& sink, float width) {
  const ImVec2 a = ImGui::GetCursorScreenPos();
  const float button_width = px(28), buttons = button_width * 3;
  draw_title(view, sink, {a.x, a.y + px(kHeader * 0.5f)}, width - buttons - px(12));
  ImGui::SetCursorScreenPos({a.x + width - buttons, a.y + px(8)});
  if (icon_button("Find in this chat", Icon::search, "Find in this chat  Ctrl+F"))
    sink.post(ShowFind{!view.chat.find_shown});
  ImGui::SameLine(0, 0);
  if (icon_button("Export or import", Icon::drop, "Export or import")) ImGui::OpenPopup(kFilesMenu);
  ImGui::SameLine(0, 0);
  if (icon_button("New chat", Icon::plus, "New chat  Ctrl+N")) {
    sink.post(NewChat{});
    composer_.focus();
  }
  draw_files_menu(view, sink, {a.x + width, a.y + px(kHeader)});
  ImGui::SetCursorScreenPos({a.x, a.y + px(kHeader)});
  ImGui::Dummy({0, 0});
}

void ChatPanel::draw_empty(const ViewModel& view, CommandSink& sink, ImVec2 size) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const float room = size.x - px(kMargin) * 2;
  const float x = origin.x + size.x * 0.5f, y = origin.y + std::max(px(8), size.y * 0.5f - px(56));
  const std::string sentence = elided(Type::chat,
                                      view.model_state == ModelState::loading ? "The model is loading."
                                      : view.model ? "No message yet. Write one, or try an example."
                                                   : "Open a model to write with.",
                                      room);
  draw_icon(list, Icon::branch, {x, y + px(16)}, px(32), t.text3);
  draw_text(list, {x - text_size(Type::chat, sentence).x * 0.5f, y + px(44)}, Type::chat, t.text2, sentence);
  ButtonSpec example{kExample, Icon::none, ButtonKind::line};
  const std::string words = elided(Type::base, kExample, room - px(24));
  example.words = words.c_str();
  example.enabled = view.can_send();
  const ImVec2 button_room = button_size(example);
  ImGui::SetCursorScreenPos({std::floor(std::max(origin.x + px(8), x - button_room.x * 0.5f)), std::floor(y + px(76))});
  if (button(example)) sink.post(SendMessage{kExample});
}

}  // namespace canopy::app
