#include "app/ui/actions.h"

#include <imgui.h>
#include <imgui_internal.h>
#include <imgui_stdlib.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "app/state/chat_update.h"
#include "app/state/models.h"
#include "app/ui/panel.h"
#include "app/ui/widgets.h"
#include "engine/text/unicode.h"

namespace canopy::app {
namespace {

using Wanted = std::optional<UiCommand>;

Wanted rounds(const ViewModel& view, RoundsCommand command) {
  if (view.rounds.log->rounds() == 0) return std::nullopt;
  return UiCommand(std::move(command));
}

/// The command that asks a source of guesses from now on, or no longer.
Wanted switch_source(const ViewModel& view, DraftSources source) {
  return UiCommand(AskSource{source, (view.draft_sources & source) == 0});
}

/// The width of the window at 100%.
float window_width() {
  return ImGui::GetMainViewport()->Size.x / look().scale;
}

/// The command that makes the chat in Watch wider, or narrower with a negative value.
Wanted widen_chat(const ViewModel& view, float by) {
  const ShellState& shell = view.shell;
  if (shell.layout != WindowLayout::watch || shell.page != WindowPage::rounds) return std::nullopt;
  return UiCommand(ShellCommand(SetChatWidth{chat_width(shell.chat_width, window_width()) + by}));
}

constexpr float kWidthStep = 40;

/// Presses a control by its id, where it is on show.
Wanted press(bool on_show, const char* control) {
  return on_show ? Wanted(ShellCommand(PressControl{control})) : std::nullopt;
}

bool shows_rounds(const ViewModel& view) {
  return view.shell.page == WindowPage::rounds && !view.shell.tour.shown;
}
/// Whether the numbers of Watch and the line about the size of its trees are on show.
bool shows_watch_pass(const ViewModel& view) {
  return shows_rounds(view) && view.shell.layout == WindowLayout::watch && view.rounds.log->rounds() > 0;
}
/// Whether the tree of a pass is on show.
bool shows_tree(const ViewModel& view) {
  const bool in_lab = view.shell.layout == WindowLayout::lab && in_front("Tree");
  return shows_watch_pass(view) || (shows_rounds(view) && in_lab && view.rounds.log->rounds() > 0);
}
/// Whether the user's own chat and its box of messages are on show.
bool shows_own_chat(const ViewModel& view) {
  const bool place =
      view.shell.layout == WindowLayout::watch || (view.shell.layout == WindowLayout::lab && in_front("Chat"));
  const bool start_page = (!view.model || view.shell.welcome) && view.messages.empty();
  return shows_rounds(view) && place && !start_page && view.own_chat();
}
bool shows_comparison(const ViewModel& view) {
  return view.shell.page == WindowPage::compare || view.shell.page == WindowPage::sweep;
}

constexpr int kCtrl = ImGuiMod_Ctrl, kShift = ImGuiMod_Shift, kAlt = ImGuiMod_Alt;

Wanted scroll_wide(const ViewModel& view, int steps) {
  if (view.conversation().empty()) return std::nullopt;
  return UiCommand(ChatCommand(ScrollWide{steps}));
}

constexpr Action kActions[] = {
    {"Chat", "New chat", "Ctrl+N", kCtrl | ImGuiKey_N, [](const ViewModel&) { return Wanted(NewChat{}); }},
    {"Chat", "List of chats", "Ctrl+B", kCtrl | ImGuiKey_B,
     [](const ViewModel& v) -> Wanted {
       if (v.shell.page != WindowPage::rounds || v.shell.layout == WindowLayout::what_if) return {};
       if (v.shell.layout == WindowLayout::lab)
         return ShellCommand(ShowPanel{in_front("History") ? "Chat" : "History", true});
       return switch_chat_list(v, true);
     }},
    {"Chat", "Rename this chat", "", 0,
     [](const ViewModel& v) { return press(shows_own_chat(v) && !v.messages.empty(), "Title"); }},
    {"Chat", "Pin or unpin this chat", "", 0,
     [](const ViewModel& v) {
       return v.messages.id.empty() ? Wanted() : Wanted(ChatCommand(PinChat{!v.messages.pinned}));
     }},
    {"Chat", "Delete this chat", "", 0,
     [](const ViewModel& v) {
       return v.messages.id.empty() ? Wanted() : Wanted(ChatCommand(DeleteChat{v.messages.id}));
     }},
    {"Chat", "Undo delete", "", 0,
     [](const ViewModel& v) { return v.chat.deleted ? Wanted(ChatCommand(UndoDelete{})) : Wanted(); }},
    {"Chat", "Answer again", "Ctrl+R", kCtrl | ImGuiKey_R,
     [](const ViewModel& v) { return v.can_send() && v.last_reply() ? Wanted(RunAgain{}) : Wanted(); }},
    {"Chat", "Continue the reply", "", 0,
     [](const ViewModel& v) -> Wanted {
       if (v.messages.empty() || !is_unfinished(v, v.messages.size() - 1)) return {};
       const Message& reply = v.messages.back();
       if (!continue_obstacle(v, reply).empty()) return {};
       return ChatCommand(ContinueReply{reply.id});
     }},
    {"Chat", "Stop, keep the text", "Esc", ImGuiKey_Escape,
     [](const ViewModel& v) {
       if (v.checks.check.running()) return Wanted(CheckCommand(CancelCheck{}));
       return v.busy() ? Wanted(StopWriting{}) : Wanted();
     }},
    {"Chat", "End replies that repeat themselves, on or off", "", 0,
     [](const ViewModel& v) { return Wanted(ChatCommand(StopLoops{!v.stop_loops})); }},
    {"Chat", "System prompt, temperature and length of replies", "", 0,
     [](const ViewModel& v) { return press(shows_own_chat(v), "Sampling"); }},
    {"Chat", "Think before answers, on or off", "", 0,
     [](const ViewModel& v) {
       const bool possible = v.model && v.model->thinking.switchable;
       return possible ? Wanted(ChatCommand(SetThinking{!thinking_on(v)})) : Wanted();
     }},
    {"Chat", "Attach a text file", "", 0,
     [](const ViewModel& v) { return press(shows_own_chat(v), "Attach a file"); }},
    {"Chat", "Show or hide who wrote each token", "", 0,
     [](const ViewModel& v) { return Wanted(ChatCommand(ShowTokenSources{!v.chat.sources_shown})); }},
    {"Chat", "Check against plain decoding", "", 0,
     [](const ViewModel& v) {
       const Message* reply = v.last_reply();
       if (!v.own_chat() || !reply || !check_obstacle(v, *reply).empty()) return Wanted();
       return Wanted(CheckCommand(CheckAgainstAr{reply->id}));
     }},
    {"Chat", "Find in this chat", "Ctrl+F", kCtrl | ImGuiKey_F,
     [](const ViewModel&) { return Wanted(ChatCommand(ShowFind{})); }},
    {"Chat", "Wide code and tables: to the left", "Alt+Left", kAlt | ImGuiKey_LeftArrow,
     [](const ViewModel& v) { return scroll_wide(v, -1); }},
    {"Chat", "Wide code and tables: to the right", "Alt+Right", kAlt | ImGuiKey_RightArrow,
     [](const ViewModel& v) { return scroll_wide(v, 1); }},
    {"Chat", "Export chat", "Ctrl+E", kCtrl | ImGuiKey_E,
     [](const ViewModel& v) {
       return v.conversation().empty() ? Wanted() : Wanted(ChatCommand(ShowChatFiles{ChatFiles::exporting}));
     }},
    {"Chat", "Import chat", "", 0,
     [](const ViewModel&) { return Wanted(ChatCommand(ShowChatFiles{ChatFiles::importing})); }},
    {"Models", "Open model", "Ctrl+O", kCtrl | ImGuiKey_O, [](const ViewModel&) { return Wanted(BrowseModel{}); }},
    {"Models", "Get models", "Ctrl+Shift+O", kCtrl | kShift | ImGuiKey_O,
     [](const ViewModel&) { return Wanted(ShellCommand(ShowPage{WindowPage::models})); }},
    {"Models", "Choose the big model", "", 0, [](const ViewModel& v) { return press(!v.shell.tour.shown, "Model"); }},
    {"Models", "Choose the drafter, and where guesses come from", "", 0,
     [](const ViewModel& v) { return press(!v.shell.tour.shown, "Drafter"); }},
    {"Models", "Choose the device", "", 0, [](const ViewModel& v) { return press(!v.shell.tour.shown, "Device"); }},
    {"Models", "Memory and context", "", 0,
     [](const ViewModel& v) { return press(v.model && v.models.memory.budget > 0 && !v.replaying(), "Memory"); }},
    {"Models", "Stop all downloads", "", 0,
     [](const ViewModel& v) { return v.hub.downloading() ? Wanted(HubCommand(StopFetching{})) : Wanted(); }},
    {"Models", "An engine elsewhere", "Ctrl+Shift+E", kCtrl | kShift | ImGuiKey_E,
     [](const ViewModel&) { return Wanted(ModelsCommand(ShowEngineBox{})); }},
    {"Models", "Cancel loading", "", 0,
     [](const ViewModel& v) { return v.model_state == ModelState::loading ? Wanted(CancelLoading{}) : Wanted(); }},
    {"Models", "Measure what passes cost, again", "", 0,
     [](const ViewModel& v) {
       const bool possible = v.model && v.model_state == ModelState::ready && !v.calibration.busy();
       return possible ? Wanted(CalibrationCommand(StartCalibration{})) : Wanted();
     }},
    {"Models", "Measure passes by itself when idle, on or off", "", 0,
     [](const ViewModel& v) { return Wanted(CalibrationCommand(MeasureWhenIdle{!v.measures_when_idle})); }},
    {"Models", "Report this device", "", 0, [](const ViewModel&) { return Wanted(ReportCommand(ShowReport{})); }},
    {"Models", "Serve the model to other programs", "F11", ImGuiKey_F11,
     [](const ViewModel&) { return Wanted(ServedCommand(ShowServing{})); }},
    {"Models", "Serving, on or off", "", 0,
     [](const ViewModel& v) { return Wanted(ServedCommand(SwitchServing{!v.served.on()})); }},
    {"Served", "Watch the newest served request", "", 0,
     [](const ViewModel& v) {
       return v.served.replies.empty() ? Wanted() : Wanted(ServedCommand(WatchServed{v.served.replies.front().id()}));
     }},
    {"Served", "Back from the served request to your chat", "", 0,
     [](const ViewModel& v) { return v.watched() ? Wanted(ServedCommand(WatchServed{})) : Wanted(); }},
    {"Served", "Pause the served request on show, or go on", "", 0,
     [](const ViewModel& v) {
       const ServedReply* reply = v.watched();
       return reply && !reply->over ? Wanted(ServedCommand(HoldServed{reply->id(), !reply->paused})) : Wanted();
     }},
    {"Served", "Stop the served request on show", "", 0,
     [](const ViewModel& v) {
       return v.watched() && !v.watched()->over ? Wanted(ServedCommand(EndServed{v.served.watched})) : Wanted();
     }},
    {"Served", "Record the served request on show", "", 0,
     [](const ViewModel& v) {
       const bool possible = v.watched() && v.watched()->recording.empty();
       return possible ? Wanted(ServedCommand(TapeServed{v.served.watched})) : Wanted();
     }},
    {"Served", "Keep the served request on show as a chat", "", 0,
     [](const ViewModel& v) {
       const bool possible = v.watched() && v.watched()->over && !v.busy();
       return possible ? Wanted(ServedCommand(KeepServed{v.served.watched})) : Wanted();
     }},
    {"Mode", "Mode: Plain", "Ctrl+1", kCtrl | ImGuiKey_1,
     [](const ViewModel&) { return Wanted(SetDrafting{DecodeMode::ar}); }},
    {"Mode", "Mode: Chain", "Ctrl+2", kCtrl | ImGuiKey_2,
     [](const ViewModel&) { return Wanted(SetDrafting{DecodeMode::chain}); }},
    {"Mode", "Mode: Tree", "Ctrl+3", kCtrl | ImGuiKey_3,
     [](const ViewModel&) { return Wanted(SetDrafting{DecodeMode::tree}); }},
    {"Mode", "Mode: Adaptive", "Ctrl+4", kCtrl | ImGuiKey_4,
     [](const ViewModel&) { return Wanted(SetDrafting{DecodeMode::adaptive}); }},
    {"Mode", "Plain or guess: without guesses, or as before", "Ctrl+G", kCtrl | ImGuiKey_G,
     [](const ViewModel& v) { return Wanted(SetGuessing{!is_guessing(v)}); }},
    {"Mode", "Guesses from the drafter, on or off", "", 0,
     [](const ViewModel& v) { return v.has_drafter() ? switch_source(v, kFromDflash) : Wanted(); }},
    {"Mode", "Guesses from the text itself, on or off", "", 0,
     [](const ViewModel& v) { return switch_source(v, kFromSuffix); }},
    {"Mode", "Guesses from what the model nearly said, on or off", "", 0,
     [](const ViewModel& v) { return switch_source(v, kFromRecycling); }},
    {"Mode", "Guesses from earlier replies, on or off", "", 0,
     [](const ViewModel& v) { return switch_source(v, kFromEarlier); }},
    {"Mode", "Forget the earlier replies that guesses come from", "", 0,
     [](const ViewModel&) { return Wanted(ForgetEarlierReplies{}); }},
    {"Passes", "Follow the newest pass", "F5", ImGuiKey_F5,
     [](const ViewModel& v) { return rounds(v, FollowRounds{}); }},
    {"Passes", "Pause or go on", "F6", ImGuiKey_F6, [](const ViewModel& v) { return rounds(v, TogglePause{}); }},
    {"Passes", "Previous pass", "F7", ImGuiKey_F7, [](const ViewModel& v) { return rounds(v, StepRound{-1}); }},
    {"Passes", "Next pass", "F8", ImGuiKey_F8, [](const ViewModel& v) { return rounds(v, StepRound{1}); }},
    {"Passes", "Slow motion", "F9", ImGuiKey_F9,
     [](const ViewModel& v) { return rounds(v, SetSlowMotion{!v.rounds.playback.slow_motion}); }},
    {"Passes", "Whole tree", "", 0, [](const ViewModel& v) { return press(shows_tree(v), "Fit"); }},
    {"Passes", "Find the accepted path", "", 0,
     [](const ViewModel& v) { return press(shows_tree(v), "Find accepted"); }},
    {"Passes", "Unfold or fold the speed by guesses", "", 0,
     [](const ViewModel& v) { return press(shows_watch_pass(v), "Unfold"); }},
    {"Passes", "Game: guess how many guesses were best, on or off", "", 0,
     [](const ViewModel& v) { return press(shows_watch_pass(v), "Guess it"); }},
    {"Passes", "Predict for another device", "", 0,
     [](const ViewModel& v) { return press(shows_watch_pass(v), "As if on"); }},
    {"Passes", "Make the recording exact for other devices", "", 0,
     [](const ViewModel& v) { return can_make_dense(v) ? Wanted(WhatIfCommand(MakeDense{})) : Wanted(); }},
    {"Passes", "Watch the demo", "Ctrl+D", kCtrl | ImGuiKey_D,
     [](const ViewModel&) { return Wanted(RoundsCommand(WatchDemo{})); }},
    {"Passes", "Watch the demo without a drafter", "", 0,
     [](const ViewModel&) { return Wanted(RoundsCommand(WatchDemo{2})); }},
    {"Passes", "Close the recording", "", 0,
     [](const ViewModel& v) { return v.rounds.trace_path.empty() ? Wanted() : Wanted(RoundsCommand(CloseTrace{})); }},
    {"Passes", "Record a trace", "Ctrl+Shift+R", kCtrl | kShift | ImGuiKey_R,
     [](const ViewModel& v) {
       const bool possible = v.model_state == ModelState::ready && !v.recording.running();
       return possible ? Wanted(RecordingCommand(ShowRecordBox{})) : Wanted();
     }},
    {"Passes", "Stop recording", "", 0,
     [](const ViewModel& v) { return v.recording.running() ? Wanted(RecordingCommand(EndRecording{})) : Wanted(); }},
    {"Passes", "Check the recording here", "", 0,
     [](const ViewModel& v) { return verify_obstacle(v).empty() ? Wanted(VerifyCommand(VerifyShown{})) : Wanted(); }},
    {"Passes", "Share a pass or the recording", "Ctrl+Shift+S", kCtrl | kShift | ImGuiKey_S,
     [](const ViewModel& v) { return v.rounds.log->rounds() > 0 ? Wanted(ShareCommand(ShowShare{})) : Wanted(); }},
    {"Compare", "Compare ways to decode", "F2", ImGuiKey_F2,
     [](const ViewModel&) { return Wanted(ShellCommand(ShowPage{WindowPage::compare})); }},
    {"Compare", "Sweep over prompts and widths", "F3", ImGuiKey_F3,
     [](const ViewModel&) { return Wanted(ShellCommand(ShowPage{WindowPage::sweep})); }},
    {"Compare", "Back to the chat", "", 0,
     [](const ViewModel& v) {
       return v.shell.page == WindowPage::rounds ? Wanted() : Wanted(ShellCommand(ShowPage{WindowPage::rounds}));
     }},
    {"Compare", "Start measuring", "", 0,
     [](const ViewModel& v) { return press(shows_comparison(v) && !v.comparison.busy(), "Start measuring"); }},
    {"Compare", "Pause measuring, or go on", "", 0,
     [](const ViewModel& v) {
       const bool possible = v.comparison.phase == ComparisonState::Phase::running;
       return possible ? Wanted(ComparisonCommand(PauseMeasuring{!v.comparison.progress.paused})) : Wanted();
     }},
    {"Compare", "Play the race", "", 0,
     [](const ViewModel& v) {
       const bool elsewhere = shows_rounds(v) && v.shell.layout == WindowLayout::what_if;
       if (elsewhere) return press(v.rounds.log->rounds() > 0, "Run the race");
       return press(v.shell.page == WindowPage::compare && v.comparison.can_race(), "Play the race");
     }},
    {"Compare", "Go on with this sweep", "", 0,
     [](const ViewModel& v) {
       const bool unfinished = v.comparison.sweep && !v.comparison.sweep->sweep.complete() && !v.comparison.busy();
       return press(v.shell.page == WindowPage::sweep && unfinished, "Go on with this sweep");
     }},
    {"Compare", "Cancel measuring", "", 0,
     [](const ViewModel& v) { return v.comparison.busy() ? Wanted(ComparisonCommand(StopMeasuring{})) : Wanted(); }},
    {"Window", "Commands", "Ctrl+K", kCtrl | ImGuiKey_K,
     [](const ViewModel& v) { return Wanted(ShellCommand(ShowPalette{!v.shell.palette_shown})); }},
    {"Window", "Tour", "", 0, [](const ViewModel& v) { return Wanted(ShellCommand(ShowTour{!v.shell.tour.shown})); }},
    {"Window", "What am I looking at", "F1", ImGuiKey_F1,
     [](const ViewModel& v) { return Wanted(ShellCommand(ShowRegions{!v.shell.regions_shown})); }},
    {"Window", "Keyboard shortcuts", "Shift+F1", kShift | ImGuiKey_F1,
     [](const ViewModel& v) { return Wanted(ShowHelp{!v.help_shown}); }},
    {"Window", "Watch or lab", "F4", ImGuiKey_F4,
     [](const ViewModel& v) {
       const bool watch = v.shell.layout == WindowLayout::watch;
       return Wanted(ShellCommand(SetLayout{watch ? WindowLayout::lab : WindowLayout::watch}));
     }},
    {"Window", "What if it ran elsewhere", "F10", ImGuiKey_F10,
     [](const ViewModel&) { return Wanted(ShellCommand(SetLayout{WindowLayout::what_if})); }},
    {"Window", "Next part of the window", "Ctrl+F6", kCtrl | ImGuiKey_F6,
     [](const ViewModel& v) { return v.shell.tour.shown ? Wanted() : Wanted(ShellCommand(MoveFocus{1})); }},
    {"Window", "Part of the window before", "Ctrl+Shift+F6", kCtrl | kShift | ImGuiKey_F6,
     [](const ViewModel& v) { return v.shell.tour.shown ? Wanted() : Wanted(ShellCommand(MoveFocus{-1})); }},
    {"Window", "Describe a device of your own", "", 0,
     [](const ViewModel&) { return Wanted(WhatIfCommand(DescribeDevice{})); }},
    {"Window", "Larger interface", "Ctrl++", kCtrl | ImGuiKey_Equal,
     [](const ViewModel& v) { return Wanted(SetScale{next_scale(v.user_scale, 1)}); }},
    {"Window", "Smaller interface", "Ctrl+-", kCtrl | ImGuiKey_Minus,
     [](const ViewModel& v) { return Wanted(SetScale{next_scale(v.user_scale, -1)}); }},
    {"Window", "Actual size", "Ctrl+0", kCtrl | ImGuiKey_0, [](const ViewModel&) { return Wanted(SetScale{1.0f}); }},
    {"Window", "Dark, light or projector theme", "Ctrl+Shift+L", kCtrl | kShift | ImGuiKey_L,
     [](const ViewModel& v) { return Wanted(SetTheme{next_theme(v.theme)}); }},
    {"Window", "Reduced motion", "", 0,
     [](const ViewModel& v) { return Wanted(RoundsCommand(SetReducedMotion{!v.rounds.reduced_motion})); }},
    {"Window", "Wider chat", "", 0, [](const ViewModel& v) { return widen_chat(v, kWidthStep); }},
    {"Window", "Narrower chat", "", 0, [](const ViewModel& v) { return widen_chat(v, -kWidthStep); }},
    {"Window", "Usual width of the chat", "", 0,
     [](const ViewModel& v) { return v.shell.chat_width > 0 ? Wanted(ShellCommand(SetChatWidth{})) : Wanted(); }},
    {"Window", "Reset layout", "", 0, [](const ViewModel&) { return Wanted(ShellCommand(ResetLayout{})); }},
};

/// Whether an arrow was pressed with Alt alone. A text box that has the keyboard owns its arrows whatever is held
/// with them, so this looks at the key itself.
bool is_alt_arrow(int chord) {
  return chord == (kAlt | ImGuiKey_LeftArrow) || chord == (kAlt | ImGuiKey_RightArrow);
}
bool alt_arrow_pressed(int chord) {
  const ImGuiKeyData& key = *ImGui::GetKeyData(static_cast<ImGuiKey>(chord & ~kAlt));
  return ImGui::GetIO().KeyMods == kAlt && key.Down && key.DownDuration == 0;
}

/// Keeps these arrows from moving the cursor of a text box as well: for the rest of the frame they are neither pressed
/// nor held long enough to be repeated. Alt is claimed, as its release would else take the keyboard from the box.
void take_arrows() {
  constexpr ImGuiID kNobody = 1;
  if (ImGui::GetIO().KeyMods != kAlt) return;
  for (const ImGuiKey key : {ImGuiKey_LeftArrow, ImGuiKey_RightArrow}) {
    ImGuiKeyData& data = *ImGui::GetKeyData(key);
    if (!data.Down) continue;
    data.DownDuration = 1e-4f;
    ImGui::SetKeyOwner(ImGuiMod_Alt, kNobody);
  }
}

/// Other ways to type a shortcut of the list.
struct Alias {
  int chord;
  int same_as;
};
constexpr Alias kAliases[] = {
    {kCtrl | kShift | ImGuiKey_Equal, kCtrl | ImGuiKey_Equal},     {kCtrl | ImGuiKey_KeypadAdd, kCtrl | ImGuiKey_Equal},
    {kCtrl | ImGuiKey_KeypadSubtract, kCtrl | ImGuiKey_Minus},     {kCtrl | ImGuiKey_Tab, kCtrl | ImGuiKey_F6},
    {kCtrl | kShift | ImGuiKey_Tab, kCtrl | kShift | ImGuiKey_F6},
};

bool pressed(int chord) {
  // Esc is only read here and not claimed, as it also closes popups and leaves text boxes.
  if (chord == ImGuiKey_Escape) return ImGui::IsKeyPressed(ImGuiKey_Escape, false);
  if (is_alt_arrow(chord)) return alt_arrow_pressed(chord);
  const ImGuiInputFlags flags = ImGuiInputFlags_RouteGlobal | ImGuiInputFlags_RouteOverFocused;
  if (ImGui::Shortcut(chord, flags)) return true;
  return std::ranges::any_of(kAliases,
                             [&](const Alias& a) { return a.same_as == chord && ImGui::Shortcut(a.chord, flags); });
}

}  // namespace

std::span<const Action> actions() {
  return kActions;
}

void handle_shortcuts(const ViewModel& view, bool popup, CommandSink& sink) {
  // Esc closes the card that stays open before it stops a reply, wherever the token was clicked.
  const bool closes_regions = view.shell.regions_shown && !popup;
  const bool closes_card =
      view.rounds.selected && !popup && !closes_regions && !view.help_shown && !ImGui::GetIO().WantTextInput;
  const bool closes_page = view.shell.page != WindowPage::rounds && !popup && !closes_regions && !closes_card &&
                           !view.help_shown && !ImGui::GetIO().WantTextInput && !view.busy();
  if (closes_page && pressed(ImGuiKey_Escape)) sink.post(ShellCommand(ShowPage{WindowPage::rounds}));
  if (closes_regions && pressed(ImGuiKey_Escape)) sink.post(ShellCommand(ShowRegions{false}));
  if (closes_card && pressed(ImGuiKey_Escape)) sink.post(RoundsCommand(SelectNode{}));
  for (const Action& action : kActions) {
    if (!action.chord || !pressed(action.chord)) continue;
    if (action.chord == ImGuiKey_Escape && (popup || closes_card || closes_regions)) continue;
    if (auto command = action.command(view)) sink.post(*std::move(command));
  }
  take_arrows();
  if (view.help_shown && !popup && pressed(ImGuiKey_Escape)) sink.post(ShowHelp{false});
  // The keys of a presenter, on a stage: pass by pass, in slow motion step by step. In the lab they scroll the chat.
  if (view.shell.layout != WindowLayout::watch || popup || view.rounds.log->rounds() == 0) return;
  if (pressed(ImGuiKey_PageDown)) sink.post(RoundsCommand(StepRound{1}));
  if (pressed(ImGuiKey_PageUp)) sink.post(RoundsCommand(StepRound{-1}));
}

UiCommand switch_chat_list(const ViewModel& view, bool search) {
  const float width = window_width();
  return ShellCommand(ShowChatList{!chat_list_shown(view.shell, width), width < kRoomForChatList, search});
}

float next_scale(float scale, int direction) {
  static constexpr float kSteps[] = {0.75f, 0.9f, 1.0f, 1.1f, 1.25f, 1.5f, 1.75f, 2.0f, 2.5f, 3.0f};
  float best = direction > 0 ? kMaxScale : kMinScale;
  for (float step : kSteps) {
    if (direction > 0 && step > scale + 0.01f) return step;
    if (direction < 0 && step < scale - 0.01f) best = step;
  }
  return best;
}

namespace {

constexpr const char* kPalettePopup = "Commands";
constexpr float kPaletteWidth = 560, kPitch = 30;
constexpr int kMostLines = 12;

/// Letters and digits; bytes of letters beyond ASCII are taken for such.
bool in_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || std::isalnum(byte);
}

bool starts_a_word(const std::string& line, std::string_view word) {
  for (size_t at = line.find(word); at != std::string::npos; at = line.find(word, at + 1))
    if (at == 0 || !in_word(line[at - 1])) return true;
  return false;
}

bool every_word_starts_one(const std::string& line, std::string_view query) {
  while (!query.empty()) {
    const size_t end = query.find(' ');
    const std::string_view word = query.substr(0, end);
    if (!word.empty() && !starts_a_word(line, word)) return false;
    query = end == std::string_view::npos ? std::string_view() : query.substr(end + 1);
  }
  return true;
}

bool letters_in_order(const std::string& line, std::string_view query) {
  size_t at = 0;
  for (const char c : query) {
    if (c == ' ') continue;
    at = line.find(c, at);
    if (at == std::string::npos) return false;
    ++at;
  }
  return true;
}

}  // namespace

std::vector<CommandPalette::Line> CommandPalette::matching(const ViewModel& view) const {
  std::vector<std::pair<int, Line>> found;
  auto offer = [&](std::string words, std::string keys, UiCommand command) {
    if (const int score = palette_match(query_, words))
      found.push_back({score, {std::move(words), std::move(keys), std::move(command)}});
  };
  for (const Action& action : actions())
    if (auto command = action.command(view)) offer(action.name, action.keys, *std::move(command));
  for (const std::string& panel : panels_) offer("Open panel: " + panel, "", ShellCommand(ShowPanel{panel, true}));
  for (const DeviceChoice& device : view.devices)
    if (device.usable)
      offer("Use device: " + device.name + (device.same_gpu.empty() ? "" : " (" + device.backend_title + ")"), "",
            ChooseDevice{device.selector});
  // Last, so that the name of a panel never closes it.
  for (const std::string& panel : panels_)
    if (!view.shell.closed.contains(panel)) offer("Close panel: " + panel, "", ShellCommand(ShowPanel{panel, false}));
  std::ranges::stable_sort(found, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<Line> lines;
  for (auto& [score, line] : found) lines.push_back(std::move(line));
  return lines;
}

void CommandPalette::close(CommandSink& sink) {
  ImGui::CloseCurrentPopup();
  open_ = false;
  sink.post(ShellCommand(ShowPalette{false}));
}

void CommandPalette::draw(const ViewModel& view, CommandSink& sink) {
  if (!view.shell.palette_shown) {
    open_ = false;
    return;
  }
  const bool opening = !open_;
  if (opening) {
    query_.clear();
    chosen_ = 0;
    open_ = true;
    ImGui::OpenPopup(kPalettePopup);
  }
  place_dialog(kPaletteWidth);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(8), px(8)});
  if (!ImGui::BeginPopup(kPalettePopup)) {
    ImGui::PopStyleVar();
    sink.post(ShellCommand(ShowPalette{false}));  // closed by a click outside
    return;
  }
  if (opening) ImGui::SetKeyboardFocusHere();
  draw_input();
  if (ImGui::IsKeyPressed(ImGuiKey_Escape, false))
    close(sink);
  else
    draw_lines(matching(view), sink);
  ImGui::EndPopup();
  ImGui::PopStyleVar();
}

void CommandPalette::draw_input() {
  push_type(Type::chat);
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 1);
  ImGui::PushStyleColor(ImGuiCol_Border, colours().ctl);
  ImGui::SetNextItemWidth(-1);
  const std::string before = query_;
  entered_ = ImGui::InputTextWithHint("##command", "Type a command", &query_, ImGuiInputTextFlags_EnterReturnsTrue);
  if (query_ != before) chosen_ = 0;
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  ImGui::PopFont();
}

void CommandPalette::draw_lines(const std::vector<Line>& lines, CommandSink& sink) {
  const Theme& t = colours();
  const int count = static_cast<int>(lines.size());
  moved_ = false;
  if (ImGui::IsKeyPressed(ImGuiKey_DownArrow)) ++chosen_, moved_ = true;
  if (ImGui::IsKeyPressed(ImGuiKey_UpArrow)) --chosen_, moved_ = true;
  chosen_ = std::clamp(chosen_, 0, std::max(0, count - 1));
  const float pitch = px(kPitch), room = ImGui::GetMainViewport()->Size.y * 0.6f;
  const float height = pitch * static_cast<float>(std::clamp(count, 1, kMostLines));
  ImGui::PushStyleColor(ImGuiCol_ChildBg, with_alpha(t.raised, 0));
  ImGui::PushStyleVar(ImGuiStyleVar_ChildBorderSize, 0);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  // A list that scrolls would else be a place for the keyboard: an arrow would take it from the box, and Enter with it.
  ImGui::PushItemFlag(ImGuiItemFlags_NoNav, true);
  ImGui::BeginChild("Lines", {0, std::min(height, room)}, ImGuiChildFlags_None, ImGuiWindowFlags_NoNav);
  if (count == 0)
    draw_text_middle(ImGui::GetWindowDrawList(), ImGui::GetCursorScreenPos().x + px(10),
                     ImGui::GetCursorScreenPos().y + pitch * 0.5f, Type::base, t.text3, "No such command");
  bool done = false;
  for (int i = 0; i < count; ++i) {
    const Line& line = lines[static_cast<size_t>(i)];
    const float width = ImGui::GetContentRegionAvail().x;
    const ImVec2 a = ImGui::GetCursorScreenPos(), b = {a.x + width, a.y + pitch};
    const bool clicked = ImGui::InvisibleButton(line.words.c_str(), {width, pitch});
    ImDrawList* list = ImGui::GetWindowDrawList();
    if (i == chosen_)
      list->AddRectFilled(a, b, t.accent_bg, px(4));
    else if (ImGui::IsItemHovered())
      list->AddRectFilled(a, b, mix(t.raised, t.text, kHoverMix), px(4));
    const float keys = text_size(Type::mono, line.keys).x, middle = a.y + pitch * 0.5f;
    draw_text_middle(list, a.x + px(10), middle, Type::base, t.text,
                     elided(Type::base, line.words, width - keys - px(30)));
    draw_text_middle(list, b.x - keys - px(10), middle, Type::mono, t.text2, line.keys);
    if (i == chosen_ && moved_) ImGui::SetScrollHereY();
    if (clicked || (entered_ && i == chosen_)) {
      sink.post(line.command);
      done = true;
    }
  }
  ImGui::EndChild();
  ImGui::PopItemFlag();
  ImGui::PopStyleVar(2);
  ImGui::PopStyleColor();
  if (done) close(sink);
}

int palette_match(std::string_view query_text, std::string_view line_text) {
  const std::string query = fold_case(query_text), line = fold_case(line_text);
  if (query.empty()) return 1;
  if (line.starts_with(query)) return 4;
  if (every_word_starts_one(line, query)) return 3;
  if (line.find(query) != std::string::npos) return 2;
  return letters_in_order(line, query) ? 1 : 0;
}

namespace {

/// Every key as "what", "keys".
std::vector<std::pair<std::string, std::string>> key_rows() {
  std::vector<std::pair<std::string, std::string>> rows = {{"Send", "Enter"},
                                                           {"New line", "Shift+Enter"},
                                                           {"Scroll", "PgUp, PgDn"},
                                                           {"Copy what is selected", "Ctrl+C"},
                                                           {"Within a part of the window", "Tab, arrows"}};
  for (const Action& action : actions())
    if (action.chord) rows.push_back({action.name, action.keys});
  return rows;
}

constexpr float kKeyPitch = 24, kKeysHead = 32, kKeyGap = 24;

}  // namespace

void draw_help(CommandSink& sink) {
  const Theme& t = colours();
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const auto rows = key_rows();
  const float pitch = px(kKeyPitch), padding = px(14);
  float column = 0;
  for (const auto& [what, keys] : rows)
    column = std::max(column, text_size(Type::base, what).x + px(kKeyGap) + text_size(Type::mono, keys).x);
  const ImVec2 room = {viewport->Size.x - px(24) - padding * 2,
                       viewport->Size.y - px(28 + 48 + 16) - padding * 2 - px(kKeysHead)};
  column = std::min(std::ceil(column), room.x);
  // As many columns as it needs to show all, if they have room beside each other; else the list scrolls.
  const auto most = static_cast<size_t>(std::max(1.0f, (room.x + px(kKeyGap)) / (column + px(kKeyGap))));
  const auto high = static_cast<size_t>(std::max(1.0f, room.y / pitch));
  const size_t columns = std::min(most, (rows.size() + high - 1) / high);
  const size_t lines = (rows.size() + columns - 1) / columns;
  const float inner = column * static_cast<float>(columns) + px(kKeyGap) * static_cast<float>(columns - 1);
  const float height = padding * 2 + px(kKeysHead) + pitch * static_cast<float>(lines);
  const ImVec2 size = {inner + padding * 2, std::min(height, viewport->Size.y - px(28 + 48 + 16))};
  ImGui::SetNextWindowPos(
      {viewport->Pos.x + viewport->Size.x - size.x - px(12), viewport->Pos.y + viewport->Size.y - size.y - px(36)});
  ImGui::SetNextWindowSize(size);
  ImGui::PushStyleColor(ImGuiCol_WindowBg, t.raised);
  ImGui::PushStyleColor(ImGuiCol_Border, t.ctl);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, px(6));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {padding, padding});
  ImGui::Begin("Help", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                   ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoFocusOnAppearing);
  ImGui::PopStyleVar(3);
  ImGui::PopStyleColor(2);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 a = ImGui::GetCursorScreenPos();
  draw_text(list, a, Type::chat_semibold, t.text, "Keyboard");
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto& [what, keys] = rows[i];
    const float x = a.x + static_cast<float>(i / lines) * (column + px(kKeyGap));
    const float y = a.y + px(kKeysHead) + pitch * (static_cast<float>(i % lines) + 0.5f);
    const float right = x + column - text_size(Type::mono, keys).x;
    draw_text_middle(list, x, y, Type::base, t.text2, elided(Type::base, what, right - x - px(12)));
    draw_text_middle(list, right, y, Type::mono, t.text, keys);
  }
  ImGui::SetCursorScreenPos(a);
  ImGui::Dummy({inner, px(kKeysHead) + pitch * static_cast<float>(lines)});
  ButtonSpec close{"Close help", Icon::close};
  close.show_label = false;
  ImGui::SetCursorScreenPos({a.x + inner - px(26), a.y - px(6)});
  if (button(close)) sink.post(ShowHelp{false});
  ImGui::End();
}

}  // namespace canopy::app
