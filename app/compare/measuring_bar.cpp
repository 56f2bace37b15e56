#include "app/compare/measuring_bar.h"

#include <algorithm>
#include <cmath>

#include "app/look/widgets.h"

namespace canopy::app {
namespace {

using RunPhase = ComparisonState::Phase;
constexpr float kButtonHeight = 32, kProgressBar = 140;

ButtonSpec close_button() {
  ButtonSpec spec{"Close the page", Icon::close};
  spec.show_label = false;
  spec.height = kButtonHeight;
  spec.tooltip = "Back to the chat; what is being measured goes on  Esc";
  return spec;
}

std::string progress_words(const ComparisonState& state) {
  const ComparisonProgress& p = state.progress;
  if (state.phase == RunPhase::waiting) return "Waiting for the engine";
  if (state.phase == RunPhase::cancelling) return "Stopping";
  if (p.stage != "Measuring" && p.stage != "Paused") return p.stage;
  const std::string figures = progress_figures({"", p.done, p.total, false, p.paused ? -1 : p.seconds_left});
  return p.paused ? "Paused, " + figures : figures;
}

}  // namespace

float draw_page_names(const ViewModel& view, CommandSink& sink, ImVec2 pos) {
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const struct {
    WindowPage page;
    const char* words;
    const char* tip;
  } pages[] = {{WindowPage::compare, "Compare", "A few ways to decode, beside each other  F2"},
               {WindowPage::sweep, "Sweep", "Many prompts, widths and repeats  F3"}};
  float x = pos.x;
  for (const auto& each : pages) {
    const ImVec2 size = {text_size(Type::title, each.words).x, px(kButtonHeight)};
    const bool on = view.shell.page == each.page;
    ImGui::SetCursorScreenPos({x, pos.y});
    if (ImGui::InvisibleButton(each.words, size, ImGuiButtonFlags_EnableNav))
      sink.post(ShellCommand(ShowPage{each.page}));
    tooltip(each.tip);
    const bool hovered = ImGui::IsItemHovered();
    draw_text_middle(list, x, pos.y + size.y * 0.5f, Type::title,
                     on        ? t.text
                     : hovered ? t.text2
                               : t.text3,
                     each.words);
    if (on) list->AddRectFilled({x, pos.y + size.y - px(3)}, {x + size.x, pos.y + size.y - px(1)}, t.accent);
    x += size.x + px(18);
  }
  return x;
}

float draw_measuring(const ViewModel& view, CommandSink& sink, SweepKind kind, const ComparisonCommand& start,
                     const char* start_words, const std::string& obstacle, float left, float right, float y) {
  const Theme& t = colours();
  const ComparisonState& state = view.comparison;
  const float top = std::floor(y - px(kButtonHeight) * 0.5f);
  float x = right;
  const auto put = [&](ButtonSpec spec) {
    spec.height = kButtonHeight;
    x -= button_size(spec).x;
    ImGui::SetCursorScreenPos({std::floor(x), top});
    const bool pressed = button(spec);
    x -= px(8);
    return pressed;
  };
  if (put(close_button())) sink.post(ShellCommand(ShowPage{WindowPage::rounds}));
  if (!state.busy()) {
    ButtonSpec spec{"Start measuring", Icon::play, ButtonKind::primary};
    spec.words = start_words;
    spec.enabled = obstacle.empty();
    if (!obstacle.empty()) spec.tooltip = obstacle.c_str();
    if (put(spec)) sink.post(start);
    return x;
  }
  ButtonSpec stop{"Cancel measuring", Icon::none, ButtonKind::line};
  stop.words = "Cancel";
  stop.enabled = state.phase != RunPhase::cancelling;
  stop.tooltip = "All whole replies are kept";
  if (put(stop)) sink.post(ComparisonCommand(StopMeasuring{}));
  const bool paused = state.progress.paused;
  ButtonSpec pause{"Pause measuring", paused ? Icon::play : Icon::pause, ButtonKind::line};
  pause.words = paused ? "Go on" : "Pause";
  pause.enabled = state.phase == RunPhase::running;
  pause.tooltip = "Before the next reply";
  if (put(pause)) sink.post(ComparisonCommand(PauseMeasuring{!paused}));
  if (!state.measures(kind)) {
    const std::string other = kind == SweepKind::sweep ? "A comparison is being measured" : "A sweep is being measured";
    const std::string words = first_fitting(Type::secondary, {other, ""}, x - left);
    x -= text_size(Type::secondary, words).x;
    draw_text_middle(ImGui::GetWindowDrawList(), x, y, Type::secondary, t.text2, words);
    return x - px(8);
  }
  const float bar = std::min(px(kProgressBar), x - left);
  const ComparisonProgress& p = state.progress;
  if (bar > px(40) && p.total > 0) {
    x -= bar;
    const float share = static_cast<float>(static_cast<double>(p.done) / static_cast<double>(p.total));
    draw_bar(ImGui::GetWindowDrawList(), {x, y - px(3)}, {bar, px(6)}, share, t.accent, t.raised);
    x -= px(12);
  }
  const std::string words = elided(Type::secondary, progress_words(state), std::max(0.0f, x - left));
  x -= text_size(Type::secondary, words).x;
  if (!words.empty()) draw_text_middle(ImGui::GetWindowDrawList(), x, y, Type::secondary, t.text2, words);
  return x - px(8);
}

float stepper_width(const char* caption, const std::string& widest) {
  return text_size(Type::secondary, caption).x + px(8) + px(28) * 2 +
         std::max(px(36), text_size(Type::mono, widest).x + px(8));
}

uint32_t stepper(const char* id, const char* caption, uint32_t value, std::span<const uint32_t> steps, bool enabled) {
  const Theme& t = colours();
  ImGui::PushID(id);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = px(28), caption_width = text_size(Type::secondary, caption).x + px(8);
  const std::string figure = value == 0 ? "all" : grouped(value);
  const float room = std::max(px(36), text_size(Type::mono, figure).x + px(8));
  ImDrawList* list = ImGui::GetWindowDrawList();
  draw_text_middle(list, at.x, at.y + height * 0.5f, Type::secondary, t.text2, caption);
  const auto above = std::upper_bound(steps.begin(), steps.end(), value);
  const auto below = std::lower_bound(steps.begin(), steps.end(), value);
  ImGui::SetCursorScreenPos({at.x + caption_width, at.y});
  uint32_t next = value;
  if (icon_button("Fewer", Icon::minus, "Fewer", enabled && below != steps.begin())) next = *(below - 1);
  const float x = at.x + caption_width + height;
  draw_text_middle(list, x + (room - text_size(Type::mono, figure).x) * 0.5f, at.y + height * 0.5f, Type::mono, t.text,
                   figure);
  ImGui::SetCursorScreenPos({x + room, at.y});
  if (icon_button("More", Icon::plus, "More", enabled && above != steps.end())) next = *above;
  ImGui::PopID();
  return next;
}

std::string measuring_obstacle(const ViewModel& view, bool needs_model) {
  if (view.comparison.busy()) return "Something is being measured already";
  if (view.model_state == ModelState::loading) return "A model is being loaded";
  if (needs_model && view.model_state == ModelState::none) return "Open a model first";
  return {};
}

}  // namespace canopy::app
