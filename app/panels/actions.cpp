#include "app/panels/actions.h"

#include <imgui.h>

#include <algorithm>

#include "app/state/continue_reply.h"

namespace canopy::app {
namespace {

using Wanted = std::optional<UiCommand>;

Wanted rounds(const ViewModel& view, RoundsCommand command) {
  if (view.rounds.log->rounds() == 0) return std::nullopt;
  return UiCommand(std::move(command));
}

/// The command for a mode. Without a drafter only plain decoding is possible.
Wanted mode(const ViewModel& view, DecodeMode wanted) {
  const bool drafts = view.model && !view.model->drafter.empty();
  if (wanted != DecodeMode::ar && !drafts) return std::nullopt;
  return UiCommand(SetDrafting{wanted});
}

constexpr int kCtrl = ImGuiMod_Ctrl, kShift = ImGuiMod_Shift;

constexpr Action kActions[] = {
    {"Chat", "New chat", "Ctrl+N", kCtrl | ImGuiKey_N, [](const ViewModel&) { return Wanted(NewChat{}); }},
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
    {"Chat", "Check against plain decoding", "", 0,
     [](const ViewModel& v) {
       const Message* reply = v.last_reply();
       if (v.replaying() || !reply || !check_obstacle(v, *reply).empty()) return Wanted();
       return Wanted(CheckCommand(CheckAgainstAr{reply->id}));
     }},
    {"Chat", "Find in this chat", "Ctrl+F", kCtrl | ImGuiKey_F,
     [](const ViewModel&) { return Wanted(ChatCommand(ShowFind{})); }},
    {"Chat", "Export chat", "Ctrl+E", kCtrl | ImGuiKey_E,
     [](const ViewModel& v) {
       return v.conversation().empty() ? Wanted() : Wanted(ChatCommand(ShowChatFiles{ChatFiles::exporting}));
     }},
    {"Chat", "Import chat", "", 0,
     [](const ViewModel&) { return Wanted(ChatCommand(ShowChatFiles{ChatFiles::importing})); }},
    {"Models", "Open model", "Ctrl+O", kCtrl | ImGuiKey_O, [](const ViewModel&) { return Wanted(BrowseModel{}); }},
    {"Models", "Cancel loading", "", 0,
     [](const ViewModel& v) { return v.model_state == ModelState::loading ? Wanted(CancelLoading{}) : Wanted(); }},
    {"Models", "Report this device", "", 0, [](const ViewModel&) { return Wanted(ReportCommand(ShowReport{})); }},
    {"Mode", "Mode: AR, no drafts", "Ctrl+1", kCtrl | ImGuiKey_1,
     [](const ViewModel& v) { return mode(v, DecodeMode::ar); }},
    {"Mode", "Mode: Chain", "Ctrl+2", kCtrl | ImGuiKey_2,
     [](const ViewModel& v) { return mode(v, DecodeMode::chain); }},
    {"Mode", "Mode: Tree", "Ctrl+3", kCtrl | ImGuiKey_3, [](const ViewModel& v) { return mode(v, DecodeMode::tree); }},
    {"Mode", "Mode: Adaptive", "Ctrl+4", kCtrl | ImGuiKey_4,
     [](const ViewModel& v) { return mode(v, DecodeMode::adaptive); }},
    {"Rounds", "Follow the newest round", "F5", ImGuiKey_F5,
     [](const ViewModel& v) { return rounds(v, FollowRounds{}); }},
    {"Rounds", "Pause or go on", "F6", ImGuiKey_F6, [](const ViewModel& v) { return rounds(v, TogglePause{}); }},
    {"Rounds", "Previous round", "F7", ImGuiKey_F7, [](const ViewModel& v) { return rounds(v, StepRound{-1}); }},
    {"Rounds", "Next round", "F8", ImGuiKey_F8, [](const ViewModel& v) { return rounds(v, StepRound{1}); }},
    {"Rounds", "Slow motion", "F9", ImGuiKey_F9,
     [](const ViewModel& v) { return rounds(v, SetSlowMotion{!v.rounds.playback.slow_motion}); }},
    {"Rounds", "Watch the demo", "Ctrl+D", kCtrl | ImGuiKey_D,
     [](const ViewModel&) { return Wanted(RoundsCommand(WatchDemo{})); }},
    {"Rounds", "Close the recording", "", 0,
     [](const ViewModel& v) { return v.rounds.trace_path.empty() ? Wanted() : Wanted(RoundsCommand(CloseTrace{})); }},
    {"Rounds", "Record a trace", "Ctrl+Shift+R", kCtrl | kShift | ImGuiKey_R,
     [](const ViewModel& v) {
       const bool possible = v.model_state == ModelState::ready && !v.recording.running();
       return possible ? Wanted(RecordingCommand(ShowRecordBox{})) : Wanted();
     }},
    {"Rounds", "Stop recording", "", 0,
     [](const ViewModel& v) { return v.recording.running() ? Wanted(RecordingCommand(EndRecording{})) : Wanted(); }},
    {"Rounds", "Check the recording here", "", 0,
     [](const ViewModel& v) { return verify_obstacle(v).empty() ? Wanted(VerifyCommand(VerifyShown{})) : Wanted(); }},
    {"Rounds", "Share a round or the recording", "Ctrl+Shift+S", kCtrl | kShift | ImGuiKey_S,
     [](const ViewModel& v) { return v.rounds.log->rounds() > 0 ? Wanted(ShareCommand(ShowShare{})) : Wanted(); }},
    {"Compare", "Compare ways to decode", "F2", ImGuiKey_F2,
     [](const ViewModel&) { return Wanted(ShellCommand(ShowPage{WindowPage::compare})); }},
    {"Compare", "Sweep over prompts and widths", "F3", ImGuiKey_F3,
     [](const ViewModel&) { return Wanted(ShellCommand(ShowPage{WindowPage::sweep})); }},
    {"Compare", "Back to the chat", "", 0,
     [](const ViewModel& v) {
       return v.shell.page == WindowPage::rounds ? Wanted() : Wanted(ShellCommand(ShowPage{WindowPage::rounds}));
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
    {"Window", "What if it ran elsewhere", "", 0,
     [](const ViewModel&) { return Wanted(ShellCommand(SetLayout{WindowLayout::what_if})); }},
    {"Window", "Larger interface", "Ctrl++", kCtrl | ImGuiKey_Equal,
     [](const ViewModel& v) { return Wanted(SetScale{next_scale(v.user_scale, 1)}); }},
    {"Window", "Smaller interface", "Ctrl+-", kCtrl | ImGuiKey_Minus,
     [](const ViewModel& v) { return Wanted(SetScale{next_scale(v.user_scale, -1)}); }},
    {"Window", "Actual size", "Ctrl+0", kCtrl | ImGuiKey_0, [](const ViewModel&) { return Wanted(SetScale{1.0f}); }},
    {"Window", "Dark, light or projector theme", "Ctrl+Shift+L", kCtrl | kShift | ImGuiKey_L,
     [](const ViewModel& v) { return Wanted(SetTheme{next_theme(v.theme)}); }},
    {"Window", "Reduced motion", "", 0,
     [](const ViewModel& v) { return Wanted(RoundsCommand(SetReducedMotion{!v.rounds.reduced_motion})); }},
    {"Window", "Reset layout", "", 0, [](const ViewModel&) { return Wanted(ShellCommand(ResetLayout{})); }},
};

/// Other ways to type a shortcut of the list.
struct Alias {
  int chord;
  int same_as;
};
constexpr Alias kAliases[] = {
    {kCtrl | kShift | ImGuiKey_Equal, kCtrl | ImGuiKey_Equal},
    {kCtrl | ImGuiKey_KeypadAdd, kCtrl | ImGuiKey_Equal},
    {kCtrl | ImGuiKey_KeypadSubtract, kCtrl | ImGuiKey_Minus},
};

bool pressed(int chord) {
  // Esc is only read here and not claimed, as it also closes popups and leaves text boxes.
  if (chord == ImGuiKey_Escape) return ImGui::IsKeyPressed(ImGuiKey_Escape, false);
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
  if (view.help_shown && !popup && pressed(ImGuiKey_Escape)) sink.post(ShowHelp{false});
  // The keys of a presenter, on a stage: pass by pass, in slow motion step by step. In the lab they scroll the chat.
  if (view.shell.layout != WindowLayout::watch || popup || view.rounds.log->rounds() == 0) return;
  if (pressed(ImGuiKey_PageDown)) sink.post(RoundsCommand(StepRound{1}));
  if (pressed(ImGuiKey_PageUp)) sink.post(RoundsCommand(StepRound{-1}));
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

}  // namespace canopy::app
