#include "app/bars/view_menu.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <optional>
#include <utility>

#include "app/look/widgets.h"
#include "app/panels/actions.h"
#include "app/state/work_under_way.h"

namespace canopy::app {
namespace {

constexpr float kViewMenuWidth = 280;
constexpr float kScaleButton = 28;

void section_heading(const char* words) {
  ImGui::Dummy({0, px(4)});
  const ImVec2 at = ImGui::GetCursorScreenPos();
  draw_text(ImGui::GetWindowDrawList(), {at.x + px(8), at.y}, Type::caption_semibold, colours().text3, words);
  ImGui::Dummy({0, px(18)});
}

void rule(float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float y = std::floor(at.y + px(4)) + 0.5f;
  ImGui::GetWindowDrawList()->AddLine({at.x, y}, {at.x + width, y}, colours().line);
  ImGui::Dummy({width, px(8)});
}

void draw_panel_rows(const ViewModel& view, CommandSink& sink, const std::vector<std::string>& panels, float width) {
  section_heading("Panels");
  for (const std::string& name : panels) {
    const bool shown = !view.shell.closed.contains(name);
    if (menu_row(name.c_str(), name, "", shown, true, width)) sink.post(ShellCommand(ShowPanel{name, !shown}));
  }
  if (menu_row("Reset layout", "Reset layout", "", false, true, width)) sink.post(ShellCommand(ResetLayout{}));
}

/// Draws a button that makes the interface one step smaller (-1) or larger (+1).
void draw_scale_button(const ViewModel& view, CommandSink& sink, int step) {
  const bool larger = step > 0;
  ButtonSpec spec{larger ? "Larger" : "Smaller", larger ? Icon::plus : Icon::minus};
  spec.show_label = false;
  spec.tooltip = larger ? "Larger interface  Ctrl++" : "Smaller interface  Ctrl+-";
  spec.enabled = larger ? view.user_scale < kMaxScale : view.user_scale > kMinScale;
  if (button(spec)) sink.post(SetScale{next_scale(view.user_scale, step)});
}

void draw_scale_row(const ViewModel& view, CommandSink& sink, float width) {
  constexpr float kFigure = 44;
  const ImVec2 a = ImGui::GetCursorScreenPos();
  const float side = px(kScaleButton);
  draw_text_middle(ImGui::GetWindowDrawList(), a.x + px(32), a.y + side * 0.5f, Type::base, colours().text, "Scale");
  ImGui::SetCursorScreenPos({a.x + width - scale_control_width(kFigure, 0), a.y});
  draw_scale_control(view, sink, kFigure, 0);
  ImGui::SetCursorScreenPos({a.x, a.y + side});
}

void draw_look_rows(const ViewModel& view, CommandSink& sink, float width) {
  section_heading("Look");
  draw_scale_row(view, sink, width);
  if (menu_row("Actual size", "Actual size", "Ctrl+0", view.user_scale == 1.0f, true, width)) sink.post(SetScale{1.0f});
  constexpr std::pair<ThemeKind, const char*> kThemes[] = {
      {ThemeKind::dark, "Dark theme"}, {ThemeKind::light, "Light theme"}, {ThemeKind::projector, "Projector theme"}};
  for (const auto& [kind, words] : kThemes) {
    const char* keys = kind == next_theme(view.theme) ? "Ctrl+Shift+L" : "";
    if (menu_row(words, words, keys, view.theme == kind, true, width)) sink.post(SetTheme{kind});
  }
  const bool still = view.rounds.reduced_motion;
  if (menu_row("Reduced motion", "Reduced motion", "", still, true, width))
    sink.post(RoundsCommand(SetReducedMotion{!still}));
  tooltip("Nothing moves by itself; slow motion goes on by a key");
}

}  // namespace

float scale_control_width(float figure, float gap) {
  return px(kScaleButton) * 2 + px(figure) + px(gap) * 2;
}

void draw_scale_control(const ViewModel& view, CommandSink& sink, float figure, float gap) {
  const float side = px(kScaleButton);
  const ImVec2 a = ImGui::GetCursorScreenPos();
  const std::string percents = whole(static_cast<double>(view.user_scale * 100)) + "%";
  draw_scale_button(view, sink, -1);
  draw_text_middle(ImGui::GetWindowDrawList(),
                   a.x + side + px(gap) + (px(figure) - text_size(Type::mono, percents).x) * 0.5f, a.y + side * 0.5f,
                   Type::mono, colours().text2, percents);
  ImGui::SetCursorScreenPos({a.x + side + px(figure) + px(gap) * 2, a.y});
  draw_scale_button(view, sink, 1);
}

/// What can be done with the recording on show, and the end of what is done; returns the command that was chosen.
static std::optional<UiCommand> draw_recording_rows(const ViewModel& view, float width) {
  if (const std::optional<Work> work = recording_work(view)) {
    const std::string words = "Cancel: " + work->progress.stage;
    const std::string figures = work->progress.total ? percent(work->progress.fraction(), 0) : "";
    return menu_row("Cancel the work", words, figures, false, true, width) ? std::optional(work->cancel) : std::nullopt;
  }
  const std::string obstacle = verify_obstacle(view);
  const bool pressed = menu_row("Check the recording", "Check the recording here", "", false, obstacle.empty(), width);
  tooltip(obstacle.empty()
              ? "Writes its replies again, plainly, with this model on this device, and compares the tokens"
              : obstacle.c_str());
  return pressed ? std::optional<UiCommand>(VerifyCommand(VerifyShown{})) : std::nullopt;
}

void draw_view_menu(const ViewModel& view, CommandSink& sink, const std::vector<std::string>& panels, ImVec2 corner) {
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const float width = std::min(px(kViewMenuWidth), viewport->Size.x - px(48));
  ImGui::SetNextWindowPos(corner, ImGuiCond_Always, {1, 0});
  ImGui::SetNextWindowSizeConstraints(
      {0, 0}, {FLT_MAX, std::max(px(80), viewport->Pos.y + viewport->Size.y - corner.y - px(8))});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(8), px(8)});
  if (ImGui::BeginPopup(kViewMenu)) {
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
    draw_panel_rows(view, sink, panels, width);
    rule(width);
    draw_look_rows(view, sink, width);
    rule(width);
    auto close_with = [&](UiCommand command) {
      sink.post(std::move(command));
      ImGui::CloseCurrentPopup();
    };
    if (menu_row("Share", "Share\u2026", "Ctrl+Shift+S", false, view.rounds.log->rounds() > 0, width))
      close_with(ShareCommand(ShowShare{}));
    tooltip("A picture of this round, or a web page of all of them, for others");
    if (const std::optional<UiCommand> wanted = draw_recording_rows(view, width)) close_with(*wanted);
    if (menu_row("Commands", "Commands", "Ctrl+K", false, true, width)) close_with(ShellCommand(ShowPalette{}));
    if (menu_row("What am I looking at", "What am I looking at", "F1", false, true, width))
      close_with(ShellCommand(ShowRegions{}));
    if (menu_row("Keyboard shortcuts", "Keyboard shortcuts", "Shift+F1", false, true, width)) close_with(ShowHelp{});
    ImGui::PopStyleVar();
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

}  // namespace canopy::app
