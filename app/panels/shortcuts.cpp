#include "app/panels/shortcuts.h"

#include <imgui.h>

namespace canopy::app {
namespace {

enum Index { kNew, kOpen, kStop, kLarger, kSmaller, kActual, kTheme, kHelp };

constexpr Shortcut kShortcuts[] = {
    {ImGuiMod_Ctrl | ImGuiKey_N, "Ctrl+N", "New chat"},
    {ImGuiMod_Ctrl | ImGuiKey_O, "Ctrl+O", "Open model"},
    {ImGuiKey_Escape, "Esc", "Stop, keep the text"},
    {ImGuiMod_Ctrl | ImGuiKey_Equal, "Ctrl++", "Larger interface"},
    {ImGuiMod_Ctrl | ImGuiKey_Minus, "Ctrl+-", "Smaller interface"},
    {ImGuiMod_Ctrl | ImGuiKey_0, "Ctrl+0", "Actual size"},
    {ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_L, "Ctrl+Shift+L", "Light or dark"},
    {ImGuiKey_F1, "F1", "Help"},
};

constexpr float kScaleStep = 0.25f;

bool pressed(Index index) {
  return ImGui::Shortcut(kShortcuts[index].chord, ImGuiInputFlags_RouteGlobal | ImGuiInputFlags_RouteOverFocused);
}

}  // namespace

std::span<const Shortcut> shortcuts() {
  return kShortcuts;
}

void handle_shortcuts(const ViewModel& view, CommandSink& sink) {
  if (pressed(kNew)) sink.post(NewChat{});
  if (pressed(kOpen)) sink.post(BrowseModel{});
  // Esc also closes popups and leaves the text box; stopping takes precedence only while there is something to stop.
  if (view.help_shown ? ImGui::IsKeyPressed(ImGuiKey_Escape, false) : false) sink.post(ShowHelp{false});
  if (view.busy() && ImGui::IsKeyPressed(ImGuiKey_Escape, false)) sink.post(StopWriting{});
  const bool plus = ImGui::Shortcut(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_Equal, ImGuiInputFlags_RouteGlobal) ||
                    ImGui::Shortcut(ImGuiMod_Ctrl | ImGuiKey_KeypadAdd, ImGuiInputFlags_RouteGlobal);
  if (pressed(kLarger) || plus) sink.post(SetScale{view.user_scale + kScaleStep});
  if (pressed(kSmaller) || ImGui::Shortcut(ImGuiMod_Ctrl | ImGuiKey_KeypadSubtract, ImGuiInputFlags_RouteGlobal))
    sink.post(SetScale{view.user_scale - kScaleStep});
  if (pressed(kActual)) sink.post(SetScale{1.0f});
  if (pressed(kTheme)) sink.post(SetTheme{view.theme == ThemeKind::dark ? ThemeKind::light : ThemeKind::dark});
  if (pressed(kHelp)) sink.post(ShowHelp{!view.help_shown});
}

}  // namespace canopy::app
