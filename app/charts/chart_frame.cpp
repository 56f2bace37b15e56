#include "app/charts/chart_frame.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "app/charts/chart_style.h"
#include "app/look/text_block.h"
#include "app/look/widgets.h"

namespace canopy::app {
namespace {

constexpr float kTitleHeight = 22;
constexpr float kLinePitch = 17;

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

PanelBody::PanelBody(const char* id, float padding_x, float padding_y) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {px(padding_x), px(padding_y)});
  ImGui::PushStyleVar(ImGuiStyleVar_ChildBorderSize, 0);
  ImGui::PushStyleVar(ImGuiStyleVar_ChildRounding, 0);
  ImGui::PushStyleColor(ImGuiCol_ChildBg, colours().panel);
  ImGui::BeginChild(id, {0, 0}, ImGuiChildFlags_AlwaysUseWindowPadding | ImGuiChildFlags_NavFlattened);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar(3);
}

PanelBody::~PanelBody() {
  ImGui::EndChild();
}

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

void empty_panel(std::string_view sentence) {
  const ImVec2 at = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
  TextBlock block;
  block.layout(sentence, Type::base, std::max(px(80), std::min(room.x, px(320))));
  const float pitch = px(20);
  const ImVec2 pos = {std::floor(at.x + (room.x - block.widest()) * 0.5f),
                      std::floor(at.y + std::max(0.0f, (room.y - block.height(pitch)) * 0.4f))};
  block.draw(ImGui::GetWindowDrawList(), pos, sentence, Type::base, colours().text3, pitch);
}

float bar_card(const char* id, float width, Colour bar, std::string_view title, const std::string& words,
               const std::string& more) {
  const Theme& t = colours();
  const float room = width - px(12 + 3 + 12), pitch = px(kLinePitch);
  TextBlock first, second;
  first.layout(words, Type::secondary, room);
  second.layout(more, Type::secondary, room);
  const float first_height = words.empty() ? 0 : first.height(pitch),
              second_height = more.empty() ? 0 : second.height(pitch);
  const float height = std::ceil(px(10 + 18 + 9) + first_height + second_height);
  const ImVec2 a = ImGui::GetCursorScreenPos(), b = {a.x + width, a.y + height};
  ImGui::InvisibleButton(id, {std::max(1.0f, width), height});
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(a, b, t.card, px(6));
  list->AddRect(a, b, t.line, px(6), px(1));
  list->AddRectFilled(a, {a.x + px(3), b.y}, bar, px(6), ImDrawFlags_RoundLeft);
  const float x = a.x + px(15);
  float y = a.y + px(9);
  draw_text(list, {x, y}, Type::secondary_semibold, t.text, elided(Type::secondary_semibold, title, room));
  y += px(19);
  if (!words.empty()) first.draw(list, {x, y}, words, Type::secondary, t.text2, pitch);
  if (!more.empty()) second.draw(list, {x, y + first_height}, more, Type::secondary, t.text2, pitch);
  return height;
}

void pair_line(std::string_view left, std::string_view right, const std::string& tooltip_text) {
  pair_line(ImGui::GetContentRegionAvail().x, left, right, tooltip_text);
}

void pair_line(float room, std::string_view left, std::string_view right, const std::string& tooltip_text) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = px(kLinePitch);
  ImGui::PushID(left.data(), left.data() + left.size());
  ImGui::InvisibleButton("pair", {std::max(1.0f, room), height});
  ImGui::PopID();
  if (!tooltip_text.empty()) tooltip(tooltip_text.c_str());
  ImDrawList* list = ImGui::GetWindowDrawList();
  draw_text_middle(list, at.x, at.y + height * 0.5f, Type::secondary, colours().text2, left);
  draw_text_middle(list, at.x + room - text_size(Type::mono, right).x, at.y + height * 0.5f, Type::mono, colours().text,
                   right);
}

}  // namespace canopy::app
