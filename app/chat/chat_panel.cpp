#include "app/chat/chat_panel.h"

#include <imgui.h>
#include <imgui_internal.h>
#include <imgui_stdlib.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "app/chat/reply.h"
#include "app/chat/served_list.h"
#include "app/state/words.h"
#include "app/ui/actions.h"
#include "app/ui/look.h"
#include "app/ui/widgets.h"

namespace canopy::app {

bool FindBar::close() {
  active_ = false;
  hits_.clear();
  searched_.clear();
  return std::exchange(open_, false);
}

/// Searches again if text or conversation changed. True when the hits are other ones than before.
bool FindBar::search(const ViewModel& view) {
  const bool empty = view.conversation().empty();
  const uint64_t leaf = empty ? 0 : view.conversation().back().id;
  const size_t bytes = empty ? 0 : view.conversation().back().text.size(), messages = view.conversation().size();
  if (wanted_ == searched_ && leaf == leaf_ && bytes == bytes_ && messages == messages_) return false;
  const bool typed = wanted_ != searched_;
  searched_ = wanted_;
  leaf_ = leaf;
  bytes_ = bytes;
  messages_ = messages;
  hits_ = find_in(view.conversation(), wanted_);
  at_ = typed ? (hits_.empty() ? 0 : hits_.size() - 1) : std::min(at_, hits_.empty() ? 0 : hits_.size() - 1);
  return typed;
}

bool FindBar::draw(const ViewModel& view, CommandSink& sink, float width) {
  const ImVec2 a = ImGui::GetCursorScreenPos();
  const float row = px(28);
  bool moved = search(view);
  const std::string count =
      wanted_.empty() ? "" : (hits_.empty() ? "none" : std::to_string(at_ + 1) + " of " + std::to_string(hits_.size()));
  const float figures = px(64), buttons = row * 3;
  ImGui::SetNextItemWidth(std::max(px(60), width - figures - buttons));
  const bool opened = !std::exchange(open_, true);
  if (opened) ImGui::SetKeyboardFocusHere();
  const bool entered =
      ImGui::InputTextWithHint("##Find", "Find in this chat", &wanted_,
                               ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_AutoSelectAll);
  active_ = ImGui::IsItemActive() || entered || opened;
  const bool escaped = ImGui::IsItemDeactivated() && ImGui::IsKeyPressed(ImGuiKey_Escape, false);
  if (entered) ImGui::SetKeyboardFocusHere(-1);
  draw_text_middle(ImGui::GetWindowDrawList(), a.x + width - buttons - figures + px(8), a.y + row * 0.5f,
                   Type::mono_caption, colours().text3, count);
  ImGui::SetCursorScreenPos({a.x + width - buttons, a.y});
  // Enter goes back from the newest hit, Shift+Enter forward
  int step = entered ? (ImGui::GetIO().KeyShift ? 1 : -1) : 0;
  auto icon = [&](const char* label, Icon icon_of, const char* about, bool enabled) {
    ButtonSpec spec{label, icon_of};
    spec.show_label = false;
    spec.tooltip = about;
    spec.enabled = enabled;
    const bool pressed = button(spec);
    ImGui::SameLine(0, 0);
    return pressed;
  };
  if (icon("Earlier", Icon::left, "Earlier  Enter", !hits_.empty())) step = -1;
  if (icon("Later", Icon::right, "Later  Shift+Enter", !hits_.empty())) step = 1;
  if (icon("Close find", Icon::close, "Close  Esc", true) || escaped) sink.post(ShowFind{false});
  if (step != 0 && !hits_.empty()) {
    at_ = (at_ + hits_.size() + (step > 0 ? 1 : hits_.size() - 1)) % hits_.size();
    moved = true;
  }
  ImGui::SetCursorScreenPos({a.x, a.y + row + px(6)});
  ImGui::Dummy({0, 0});
  return moved && !hits_.empty();
}

// The bar below a recorded conversation, in place of the composer: where the recording comes from, and a button back to
// the own chat.

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

/// "SmolLM2 135M Q4_1 with SmolLM2 DFlash on llvmpipe".
std::string origin_words(const ReplayOrigin& origin) {
  std::string words = origin.target;
  if (!origin.drafter.empty()) words += " with " + origin.drafter;
  return origin.device.empty() ? words : words + " on " + origin.device;
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

/// Draws it at the cursor.
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

/// Draws a note in place of the messages, for a recording without texts.
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

constexpr float kColumn = 760;  // width at 100%; about 95 characters in a line
constexpr float kMargin = 12;
constexpr float kHeader = 44;
constexpr float kNoteRow = 28;
constexpr float kLimitsLine = 18;
constexpr float kLow = 320;            // below this height only messages and composer are shown
constexpr float kLowest = 220;         // below this height not even the title is shown, as on a projector at 300%
constexpr float kLeastMessages = 110;  // what else could stand below the messages leaves them as much: five lines
constexpr float kLastLine = 24;        // at any height

bool has_marks(const ViewModel& view) {
  const Conversation& shown = view.conversation();
  for (size_t i = shown.size(); i-- > 0 && i + 8 > shown.size();)
    if (!shown[i].spans.empty()) return true;
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
  const bool own = view.own_chat(), bar = !own && area.y >= px(kLowest);  // of a recording the top bar says it too
  const float writing = bar ? px(kReplayBarHeight) : own ? composer_.height(view, width) : 0;
  const float room = origin.y + area.y - top - writing - px(kMargin) - px(8);
  const Below below = below_in(view, width, room - px(kLeastMessages));
  const ImVec2 size = {area.x, std::max(px(kLastLine), room - below.height)};
  ImGui::SetCursorScreenPos({origin.x, top});
  if (view.replaying() && view.replay.origin().redacted && view.cards.empty())
    draw_redacted_note(size);
  else if (view.conversation().empty() && view.cards.empty())
    draw_empty(view, sink, size);
  else
    transcript.draw(view, sink, size, left);
  if (!transcript.follows_end() && !view.conversation().empty())
    draw_to_end(transcript, {origin.x + area.x * 0.5f, top + size.y - px(22)});
  ImGui::SetCursorScreenPos({origin.x + left, top + size.y + px(8)});
  draw_below(view, sink, width, below);
  if (const ServedReply* served = view.watched(); bar && served != nullptr)
    draw_served_bar(view, *served, sink, width, px(kReplayBarHeight));
  else if (bar)
    draw_replay_bar(view, sink, width);
  else if (own)
    composer_.draw(view, sink, width);
  else
    ImGui::Dummy({0, 0});  // Dear ImGui wants an item where the cursor was set
  copy_selection(view, sink);
  if (own) keep_keyboard_in_composer(view);
}

std::optional<ImVec2> ChatPanel::text_end(const ViewModel& view) {
  return shown(view).text_end();
}

/// In Watch; Lab says it in its panel of the calibration. Not over the reply that is being written.
static bool speaks_of_costs(const ViewModel& view) {
  if (view.shell.layout != WindowLayout::watch || !view.own_chat() || view.busy()) return false;
  const CalibrationState& costs = view.calibration;
  return costs.busy() || (costs.is_stale() && !costs.dismissed && view.model_state == ModelState::ready);
}

namespace {

TextBlock limits_block(const std::string& limits, float width) {
  TextBlock block;
  block.layout(limits, Type::secondary, width - px(24) - px(32));
  return block;
}

float limits_height(const std::string& limits, float width) {
  return std::max(px(kNoteRow), limits_block(limits, width).height(px(kLimitsLine)) + px(10));
}

}  // namespace

/// What of it there is room for: first what was just done, as its button may be gone soon.
ChatPanel::Below ChatPanel::below_in(const ViewModel& view, float width, float room) {
  Below below;
  if (ImGui::GetWindowHeight() < px(kLow)) return below;
  const auto take = [&](bool wanted, float height) {
    if (!wanted || below.height + height > room) return false;
    below.height += height;
    return true;
  };
  const std::string& limits = shown(view).limits();
  below.note = take(!view.chat.note.empty(), px(kNoteRow));
  below.costs = take(speaks_of_costs(view), px(kNoteRow));
  below.limits = take(!limits.empty() && limits != dismissed_limits_, limits_height(limits, width));
  if (has_marks(view)) below.legend = take(true, token_legend_height(view, width));
  return below;
}

/// Draws what is between messages and composer: letters that no font has, the last action, the meaning of colours.
void ChatPanel::draw_below(const ViewModel& view, CommandSink& sink, float width, const Below& below) {
  const ImVec2 a = ImGui::GetCursorScreenPos();
  float y = a.y;
  if (below.limits) {
    const std::string& limits = shown(view).limits();
    draw_triangle_sign(ImGui::GetWindowDrawList(), {a.x + px(8), y + px(14)}, px(14), colours().bonus, colours().panel);
    const float height = limits_height(limits, width);
    limits_block(limits, width)
        .draw(ImGui::GetWindowDrawList(), {a.x + px(24), y + px(5)}, limits, Type::secondary, colours().text2,
              px(kLimitsLine));
    ImGui::SetCursorScreenPos({a.x, y});
    ImGui::InvisibleButton("Limits of fonts", {width - px(32), height});
    ImGui::SetCursorScreenPos({a.x + width - px(28), y});
    if (icon_button("Dismiss limits", Icon::close, "Dismiss")) dismissed_limits_ = limits;
    y += height;
  }
  if (below.note) {
    ImGui::SetCursorScreenPos({a.x, y});
    draw_note(view, sink, width);
    y += px(kNoteRow);
  }
  if (below.costs) {
    ImGui::SetCursorScreenPos({a.x, y});
    draw_costs(view, sink, width);
    y += px(kNoteRow);
  }
  if (below.legend) {
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

/// Draws that the costs of passes are old, with a button to measure them again, or how far that is.
void ChatPanel::draw_costs(const ViewModel& view, CommandSink& sink, float width) {
  const CalibrationState& costs = view.calibration;
  const ImVec2 a = ImGui::GetCursorScreenPos();
  const bool busy = costs.busy();
  ButtonSpec act{busy ? "Stop measuring" : "Measure again", Icon::none, ButtonKind::line};
  act.words = busy ? "Stop" : "Measure again";
  act.height = 24;
  act.enabled = costs.phase != CalibrationState::Phase::cancelling;
  act.tooltip = busy ? "What was measured before stays in use"
                     : "How many guesses are made is chosen by these times. Takes up to 90 s";
  std::string words = stale_words(costs), brief = brief_stale_words(costs);
  if (busy) {
    brief = costs.phase == CalibrationState::Phase::cancelling ? "Stopping" : "Measuring passes";
    words = brief;
    if (costs.when_idle) words += " again, as nothing else is going on";
    if (costs.progress.seconds_left > 0) words += ", " + fixed(std::ceil(costs.progress.seconds_left), 0) + " s left";
  }
  const float room = width - px(32) - button_size(act).x - px(10);
  const std::string shown = elided(Type::secondary, first_fitting(Type::secondary, {words, brief}, room), room);
  draw_text_middle(ImGui::GetWindowDrawList(), a.x, a.y + px(14), Type::secondary, colours().text2, shown);
  ImGui::SetCursorScreenPos(a);
  ImGui::InvisibleButton("Age of costs", {std::max(px(8), room), px(kNoteRow)});
  tooltip(words.c_str());
  ImGui::SetCursorScreenPos({a.x + text_size(Type::secondary, shown).x + px(10), a.y + px(2)});
  if (button(act)) {
    if (busy)
      sink.post(CalibrationCommand(StopCalibration{}));
    else
      sink.post(CalibrationCommand(StartCalibration{}));
  }
  if (busy) return;
  ImGui::SetCursorScreenPos({a.x + width - px(28), a.y});
  if (icon_button("Dismiss costs", Icon::close, "Dismiss")) sink.post(CalibrationCommand(DismissStaleCosts{}));
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
  if ((view.own_chat() && composer_.has_selection()) || find_.active() || shown(view).editing())
    return selection.clear();
  if (selection.empty() || !ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiKey_C)) return;
  for (const Message& message : view.conversation())
    if (message.id == selection.id()) sink.post(CopyText{selection.of(message.text)});
}

/// Gives the keyboard to the composer after any click in this panel. Exceptions are Tab, an open menu and a text box
/// that is in use.
void ChatPanel::keep_keyboard_in_composer(const ViewModel& view) {
  // A new chat, and Esc wherever it was pressed; once what it closes is closed.
  if (std::exchange(chats_begun_, view.chat.begun) != view.chat.begun) composer_.focus();
  if (ImGui::IsKeyPressed(ImGuiKey_Escape, false)) composer_.focus();
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
  if (naming_ && view.own_chat()) {
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
  if (view.conversation().empty() || !view.own_chat()) return;
  ImGui::SetCursorScreenPos({at.x, at.y - px(14)});
  const float width = std::max(px(8), std::min(room, text_size(Type::base_semibold, title).x));
  if (ImGui::InvisibleButton("Title", {width, px(28)}, ImGuiButtonFlags_EnableNav) || take_press("Title")) {
    naming_ = focus_name_ = true;
    name_ = view.messages.shown_title();
  }
  tooltip("Rename this chat");
}

/// The button that shows the list of chats in Watch. Returns the width that it takes at the left of the header.
static float draw_chats_button(const ViewModel& view, CommandSink& sink) {
  const float window = ImGui::GetMainViewport()->Size.x / look().scale;
  const bool beside = window >= kRoomForChatList && chat_list_shown(view.shell, window);
  if (view.shell.layout != WindowLayout::watch || beside) return 0;
  const ImVec2 a = ImGui::GetCursorScreenPos();
  ImGui::SetCursorScreenPos({a.x, a.y + px(8)});
  if (icon_button("Show chats", Icon::panels, "List of chats  Ctrl+B")) sink.post(switch_chat_list(view, false));
  return px(28 + 4);
}

void ChatPanel::draw_header(const ViewModel& view, CommandSink& sink, float width) {
  const ImVec2 a = ImGui::GetCursorScreenPos();
  const float button_width = px(28), buttons = button_width * 3;
  const float indent = draw_chats_button(view, sink);
  draw_title(view, sink, {a.x + indent, a.y + px(kHeader * 0.5f)}, width - indent - buttons - px(12));
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
  const float room = size.x - px(kMargin) * 2, air = px(8);
  const float with_icon = px(76), without = px(32), with_words = px(60), alone = px(36);
  const auto count = static_cast<float>(std::size(kExampleQuestions));
  const bool words = without + with_words * count + air <= size.y;
  const bool icon = with_icon + (words ? with_words : alone) * count + air <= size.y;
  const float head = icon ? with_icon : without, step = words ? with_words : alone;
  const float x = origin.x + size.x * 0.5f;
  const float y = std::floor(origin.y + std::max(air, (size.y - head - step * count) * 0.5f));
  const std::string sentence =
      view.model_state == ModelState::loading ? elided(Type::chat, "The model is loading.", room)
      : view.model ? first_fitting(Type::chat, {"Write a message, or try these.", "Write, or try these."}, room)
                   : first_fitting(Type::chat, {"Open a model to write with.", "Open a model first."}, room);
  if (icon) draw_icon(list, Icon::branch, {x, y + px(16)}, px(32), t.text3);
  draw_text(list, {x - text_size(Type::chat, sentence).x * 0.5f, y + head - without}, Type::chat, t.text2, sentence);
  float top = y + head;
  for (const ExampleQuestion& question : kExampleQuestions) {
    ButtonSpec example{question.title, Icon::none, ButtonKind::line};
    const std::string title = elided(Type::base, question.title, room - px(24));
    example.words = title.c_str();
    example.tooltip = question.words;
    example.enabled = view.can_send();
    const ImVec2 button_room = button_size(example);
    if (top + button_room.y > origin.y + size.y) break;
    ImGui::SetCursorScreenPos({std::floor(std::max(origin.x + px(8), x - button_room.x * 0.5f)), std::floor(top)});
    if (button(example)) sink.post(SendMessage{question.words});
    const std::string about = elided(Type::secondary, question.about, room);
    if (words)
      draw_text(list, {x - text_size(Type::secondary, about).x * 0.5f, top + button_room.y + px(4)}, Type::secondary,
                t.text3, about);
    top += step;
  }
}

}  // namespace canopy::app
