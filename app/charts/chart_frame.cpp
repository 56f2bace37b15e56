#include "app/charts/chart_frame.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "app/charts/chart_style.h"
#include "app/look/widgets.h"

namespace canopy::app {
namespace {

constexpr float kTitleHeight = 22;

std::vector<const char*> texts_of(const Ticks& ticks) {
  std::vector<const char*> texts;
  for (const std::string& each : ticks.labels) texts.push_back(each.c_str());
  return texts;
}

void set_up_axis(ImAxis axis, const Ticks& ticks, double from, ImPlotAxisFlags flags) {
  ImPlot::SetupAxis(axis, nullptr, flags | ImPlotAxisFlags_Lock | ImPlotAxisFlags_NoHighlight);
  ImPlot::SetupAxisLimits(axis, from, ticks.top, ImPlotCond_Always);
  const std::vector<const char*> texts = texts_of(ticks);
  ImPlot::SetupAxisTicks(axis, ticks.at.data(), static_cast<int>(ticks.at.size()), texts.data());
}

}  // namespace

void chart_title(std::string_view title, std::string_view note, const std::string& tooltip_text) {
  const Theme& t = colours();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float room = ImGui::GetContentRegionAvail().x, height = px(kTitleHeight);
  ImDrawList* list = ImGui::GetWindowDrawList();
  ImGui::PushID(title.data(), title.data() + title.size());
  ImGui::InvisibleButton("title", {std::max(1.0f, room), height});
  ImGui::PopID();
  if (!tooltip_text.empty()) tooltip(tooltip_text.c_str());
  const float middle = at.y + height * 0.5f;
  draw_text_middle(list, at.x, middle, Type::secondary_semibold, t.text, title);
  const float left = text_size(Type::secondary_semibold, title).x + px(12);
  const std::string fitting = elided(Type::caption, note, room - left);
  draw_text_middle(list, at.x + room - text_size(Type::caption, fitting).x, middle, Type::caption, t.text3, fitting);
}

Chart::Chart(const char* id, ImVec2 size, const Axes& axes, const std::string& tooltip_text) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  size = {std::max(1.0f, size.x), std::max(1.0f, size.y)};
  // The item is ours: a plot without inputs is none.
  ImGui::InvisibleButton(id, size);
  const ImVec2 next = ImGui::GetCursorScreenPos();
  const bool item_hovered = ImGui::IsItemHovered();
  if (!tooltip_text.empty()) tooltip(tooltip_text.c_str());
  ImGui::SetCursorScreenPos(at);
  push_type(Type::mono_caption);
  ImGui::PushID(id);
  // Ticks at places of our own count as minor ones.
  ImPlot::PushStyleVar(ImPlotStyleVar_MinorAlpha, 1.0f);
  open_ = ImPlot::BeginPlot("##plot", size, ImPlotFlags_CanvasOnly | ImPlotFlags_NoInputs | ImPlotFlags_NoFrame);
  if (open_) {
    ImPlotAxisFlags x_flags = axes.x_lines ? 0 : ImPlotAxisFlags_NoGridLines;
    if (!axes.x_labels) x_flags |= ImPlotAxisFlags_NoTickLabels;
    set_up_axis(ImAxis_X1, axes.x, axes.x_from, x_flags);
    set_up_axis(ImAxis_Y1, axes.y, axes.y_from, 0);
    ImPlot::SetupFinish();
    const ImVec2 pos = ImPlot::GetPlotPos(), area = ImPlot::GetPlotSize();
    hovered_ = item_hovered && ImGui::IsMouseHoveringRect(pos, {pos.x + area.x, pos.y + area.y});
  } else {
    ImPlot::PopStyleVar();
    ImGui::PopID();
    ImGui::PopFont();
    ImGui::SetCursorScreenPos(next);
    ImGui::Dummy({0, 0});
  }
}

Chart::~Chart() {
  if (!open_) return;
  ImPlot::EndPlot();
  ImPlot::PopStyleVar();
  ImGui::PopID();
  ImGui::PopFont();
}

void Chart::say(std::string_view words) const {
  const ImVec2 pos = ImPlot::GetPlotPos(), area = ImPlot::GetPlotSize();
  const ImVec2 size = text_size(Type::caption, words);
  draw_text(ImPlot::GetPlotDrawList(), {pos.x + (area.x - size.x) * 0.5f, pos.y + (area.y - size.y) * 0.5f},
            Type::caption, colours().text3, words);
}

float legend_width(std::string_view word) {
  return px(24 + 6) + text_size(Type::secondary, word).x;
}

float legend_mark(ImVec2 at, LegendMark mark, Colour colour, std::string_view word) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 line[] = {{at.x, at.y}, {at.x + px(24), at.y}};
  const ImVec2 centre = {at.x + px(12), at.y};
  switch (mark) {
    case LegendMark::solid: list->AddLine(line[0], line[1], colour, px(2)); break;
    case LegendMark::dashed: add_dashed(list, line, predicted_dash(), colour, px(1.6f)); break;
    case LegendMark::dotted: add_dashed(list, line, reference_dash(), colour, px(1.2f)); break;
    case LegendMark::dot: list->AddCircleFilled(centre, px(3), colour); break;
    case LegendMark::ring: list->AddCircle(centre, px(3), colour, 0, px(1.5f)); break;
  }
  draw_text_middle(list, at.x + px(30), at.y, Type::secondary, colours().text2, word);
  return at.x + legend_width(word);
}

}  // namespace canopy::app
