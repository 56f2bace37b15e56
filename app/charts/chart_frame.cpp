#include "app/charts/chart_frame.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "app/ui/widgets.h"

namespace canopy::app {
namespace {

constexpr double kHeadroom = 1.08;
constexpr double kLeastStep = 2;
constexpr int kWidthTicks = 8;

double round_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 2.5, 4.0, 5.0})
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

int digits_of(double step) {
  for (int digits = 0; digits < 4; ++digits) {
    const double scaled = step * std::pow(10, digits);
    if (std::abs(scaled - std::round(scaled)) < 1e-6 * scaled) return digits;
  }
  return 4;
}

}  // namespace

Ticks ticks_to(double highest, int lines, bool whole_numbers) {
  Ticks ticks;
  if (!std::isfinite(highest) || highest <= 0) highest = 1;
  double step = round_step(highest / std::max(1, lines));
  if (whole_numbers) step = std::max(1.0, std::ceil(step));
  ticks.top = highest * kHeadroom;
  const int digits = digits_of(step);
  for (int i = 0; i * step <= ticks.top; ++i) {
    ticks.at.push_back(i * step);
    ticks.labels.push_back(digits == 0 ? whole(i * step) : fixed(i * step, digits));
  }
  // With the 0 alone, nobody could tell how high the bars are.
  if (ticks.at.size() == 1) {
    ticks.at.push_back(step);
    ticks.labels.push_back(digits == 0 ? whole(step) : fixed(step, digits));
    ticks.top = step;
  }
  return ticks;
}

Ticks ticks_at(std::vector<double> at) {
  Ticks ticks;
  ticks.at = std::move(at);
  for (const double each : ticks.at) ticks.labels.push_back(whole(each));
  ticks.top = ticks.at.empty() ? 1 : ticks.at.back();
  return ticks;
}

Ticks budget_ticks(double end) {
  Ticks ticks = width_ticks(end);
  ticks.at.front() = 0;
  ticks.labels.front() = "0";
  return ticks;
}

std::vector<bool> labels_that_fit(const std::vector<float>& places, const std::vector<float>& lengths, float gap) {
  const size_t count = std::min(places.size(), lengths.size());
  for (size_t step = 1; step <= count; ++step) {
    bool fit = true;
    for (size_t i = step; i < count && fit; i += step)
      fit = std::abs(places[i] - places[i - step]) >= (lengths[i] + lengths[i - step]) / 2 + gap;
    if (!fit) continue;
    std::vector<bool> shown(count, false);
    for (size_t i = 0; i < count; i += step) shown[i] = true;
    return shown;
  }
  return std::vector<bool>(count, false);
}

Ticks width_ticks(double end) {
  double step = kLeastStep;
  while (end / step > kWidthTicks) step *= 2;
  std::vector<double> at = {1};
  for (int i = 1; i * step <= end; ++i) at.push_back(i * step);
  Ticks ticks = ticks_at(std::move(at));
  ticks.top = end;
  return ticks;
}

namespace {

constexpr float kGap = 5;  // between a mark and its label
constexpr int kRings = 8;  // steps of a label's height that it may move up or down from its mark
constexpr int kSteps = 4;  // the same, to the side
constexpr double kCovered = 1e6, kOutside = 1e5, kCurvePoint = 40,
                 kRing = 12;  // penalties of a place; one pixel of distance costs 1

Box box_at(float left, float middle, const LabelWish& wish) {
  return {left, middle - wish.height * 0.5f, left + wish.width, middle + wish.height * 0.5f};
}

Box mark_box(const LabelWish& wish) {
  return {wish.mark.x - wish.reach, wish.mark.y - wish.reach, wish.mark.x + wish.reach, wish.mark.y + wish.reach};
}

/// The box moved into the room; a box larger than the room is aligned with its upper left corner.
Box inside(Box box, const Box& room) {
  const float dx = std::max(std::min(0.0f, room.right - box.right), room.left - box.left);
  const float dy = std::max(std::min(0.0f, room.bottom - box.bottom), room.top - box.top);
  return {box.left + dx, box.top + dy, box.right + dx, box.bottom + dy};
}

struct Candidate {
  Box box;
  int ring = 0;  // distance from the nearest place, in heights of the label
};

/// Places for a label, the nearest first: beside the mark, then further aside, above and below in steps of its height.
std::vector<Candidate> candidates(const LabelWish& wish, const Box& room) {
  const float right = wish.mark.x + wish.reach + kGap, left = wish.mark.x - wish.reach - kGap - wish.width;
  const float centred = wish.mark.x - wish.width * 0.5f;
  std::vector<Candidate> found;
  for (int ring = 0; ring <= kRings; ++ring) {
    const float up = wish.mark.y - static_cast<float>(ring) * wish.height;
    const float down = wish.mark.y + static_cast<float>(ring) * wish.height;
    for (const float y : {up, down}) {
      for (int step = 0; step <= kSteps; ++step) {
        const float aside = static_cast<float>(step) * wish.height;
        found.push_back({inside(box_at(right + aside, y, wish), room), ring + step});
        found.push_back({inside(box_at(left - aside, y, wish), room), ring + step});
      }
      if (ring > 0) found.push_back({inside(box_at(centred, y, wish), room), ring});
    }
  }
  return found;
}

double distance(const Box& box, Spot to) {
  const float dx = std::max({box.left - to.x, 0.0f, to.x - box.right});
  const float dy = std::max({box.top - to.y, 0.0f, to.y - box.bottom});
  return std::hypot(dx, dy);
}

}  // namespace

std::vector<Box> place_labels(std::span<const LabelWish> wishes, const Box& room, std::span<const Box> taken,
                              std::span<const Spot> curve) {
  std::vector<Box> blocked(taken.begin(), taken.end()), places;
  for (const LabelWish& wish : wishes) blocked.push_back(mark_box(wish));
  for (const LabelWish& wish : wishes) {
    double least = std::numeric_limits<double>::infinity();
    Box best;
    for (const auto& [box, ring] : candidates(wish, room)) {
      double cost = distance(box, wish.mark) + kRing * ring;
      for (const Box& other : blocked) cost += box.overlaps(other) ? kCovered : 0;
      if (box.right > room.right || box.bottom > room.bottom) cost += kOutside;
      for (const Spot& each : curve) cost += box.holds(each.x, each.y) ? kCurvePoint : 0;
      if (cost < least) least = cost, best = box;
    }
    blocked.push_back(best);
    places.push_back(best);
  }
  return places;
}

namespace {

ImVec4 plot_colour(Colour colour) {
  return ImGui::ColorConvertU32ToFloat4(colour);
}

float stroke(float width) {
  return width * look().scale;
}

ImPlotSpec line_spec(Colour colour, float width) {
  ImPlotSpec spec;
  spec.LineColor = plot_colour(colour);
  spec.LineWeight = stroke(width);
  spec.Flags = ImPlotItemFlags_NoFit;
  return spec;
}

constexpr float kTitleHeight = 22;

/// The labels of the ticks; empty ones where they would touch on an axis of this length in pixels.
std::vector<const char*> texts_of(const Ticks& ticks, double from, float length, bool across) {
  std::vector<float> places, lengths;
  for (size_t i = 0; i < ticks.at.size(); ++i) {
    const ImVec2 size = text_size(Type::mono_caption, ticks.labels[i]);
    places.push_back(static_cast<float>((ticks.at[i] - from) / (ticks.top - from)) * length);
    lengths.push_back(across ? size.x : size.y);
  }
  const std::vector<bool> shown = labels_that_fit(places, lengths, across ? px(6) : 0);
  std::vector<const char*> texts;
  for (size_t i = 0; i < shown.size(); ++i) texts.push_back(shown[i] ? ticks.labels[i].c_str() : "");
  return texts;
}

float widest_label(const Ticks& ticks) {
  float widest = 0;
  for (const std::string& each : ticks.labels) widest = std::max(widest, text_size(Type::mono_caption, each).x);
  return widest;
}

void set_up_axis(ImAxis axis, const Ticks& ticks, double from, float length, ImPlotAxisFlags flags) {
  ImPlot::SetupAxis(axis, nullptr, flags | ImPlotAxisFlags_Lock | ImPlotAxisFlags_NoHighlight);
  ImPlot::SetupAxisLimits(axis, from, ticks.top, ImPlotCond_Always);
  const std::vector<const char*> texts = texts_of(ticks, from, length, axis == ImAxis_X1);
  ImPlot::SetupAxisTicks(axis, ticks.at.data(), static_cast<int>(ticks.at.size()), texts.data());
}

}  // namespace

void apply_chart_style(const Theme& t, float scale) {
  ImPlotStyle& s = ImPlot::GetStyle();
  s = ImPlotStyle();
  const auto sized = [scale](float x, float y) { return ImVec2(x * scale, y * scale); };
  s.PlotPadding = sized(4, 6);
  s.LabelPadding = sized(6, 4);
  s.LegendPadding = {0, 0};
  s.FitPadding = {0, 0.08f};
  s.PlotBorderSize = 0;
  s.MajorTickLen = s.MinorTickLen = {0, 0};
  s.MajorGridSize = {std::max(1.0f, scale), std::max(1.0f, scale)};
  s.MinorGridSize = s.MajorGridSize;
  s.MinorAlpha = 0;
  s.PlotMinSize = sized(160, 64);
  s.AnnotationPadding = sized(4, 2);
  const auto set = [&](ImPlotCol slot, Colour colour) { s.Colors[slot] = plot_colour(colour); };
  for (const ImPlotCol slot : {ImPlotCol_FrameBg, ImPlotCol_PlotBg, ImPlotCol_LegendBg, ImPlotCol_LegendBorder,
                               ImPlotCol_PlotBorder, ImPlotCol_AxisBg})
    set(slot, with_alpha(t.panel, 0));
  set(ImPlotCol_AxisGrid, t.grid);
  set(ImPlotCol_AxisTick, t.grid);
  set(ImPlotCol_AxisText, t.text3);
  set(ImPlotCol_InlayText, t.text2);
  set(ImPlotCol_LegendText, t.text2);
  set(ImPlotCol_TitleText, t.text);
  set(ImPlotCol_Selection, t.accent);
  set(ImPlotCol_Crosshairs, t.text3);
  set(ImPlotCol_AxisBgHovered, with_alpha(t.panel, 0));
  set(ImPlotCol_AxisBgActive, with_alpha(t.panel, 0));
}

ImPlotSpec measured_spec() {
  return line_spec(colours().accent, 2.0f);
}

ImPlotSpec predicted_spec() {
  return line_spec(colours().text2, 1.6f);
}

ImPlotSpec reference_spec() {
  return line_spec(colours().text2, 1.2f);
}

ImPlotSpec accepted_spec() {
  ImPlotSpec spec = line_spec(colours().accepted, 2.0f);
  spec.Marker = ImPlotMarker_Circle;
  spec.MarkerSize = stroke(2.6f);
  spec.MarkerFillColor = spec.MarkerLineColor = spec.LineColor;
  return spec;
}

Dash predicted_dash() {
  return {stroke(6), stroke(4)};
}

Dash reference_dash() {
  return {stroke(1.2f), stroke(4)};
}

void plot_dashed(std::span<const double> x, std::span<const double> y, const ImPlotSpec& spec, Dash dash) {
  std::vector<ImVec2> points;
  points.reserve(std::min(x.size(), y.size()));
  for (size_t i = 0; i < x.size() && i < y.size(); ++i) points.push_back(ImPlot::PlotToPixels(x[i], y[i]));
  ImPlot::PushPlotClipRect();
  add_dashed(ImPlot::GetPlotDrawList(), points, dash, ImGui::ColorConvertFloat4ToU32(spec.LineColor), spec.LineWeight);
  ImPlot::PopPlotClipRect();
}

void plot_predicted(std::span<const double> x, std::span<const double> y) {
  plot_dashed(x, y, predicted_spec(), predicted_dash());
}

void clear_behind(ImDrawList* list, const Box& box) {
  list->AddRectFilled({box.left, box.top}, {box.right, box.bottom}, with_alpha(colours().panel, 0.85f), px(2));
}

Box plot_room() {
  const ImVec2 pos = ImPlot::GetPlotPos(), size = ImPlot::GetPlotSize();
  return {pos.x + px(3), pos.y + px(1), pos.x + size.x, pos.y + size.y - px(1)};
}

void plot_reference(double y) {
  const ImPlotRect limits = ImPlot::GetPlotLimits();
  const double x[] = {limits.X.Min, limits.X.Max}, ys[] = {y, y};
  plot_dashed(x, ys, reference_spec(), reference_dash());
}

void chart_title(std::string_view title, std::string_view note, const std::string& tooltip_text) {
  const Theme& t = colours();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float room = ImGui::GetContentRegionAvail().x, height = px(kTitleHeight);
  ImDrawList* list = ImGui::GetWindowDrawList();
  ImGui::PushID(title.data(), title.data() + title.size());
  ImGui::InvisibleButton("title", {std::max(1.0f, room), height});
  ImGui::PopID();
  term_tooltip(title, tooltip_text);
  const float middle = at.y + height * 0.5f;
  draw_text_middle(list, at.x, middle, Type::secondary_semibold, t.text, title);
  if (find_term(title)) draw_term_line(list, at.x, at.x + text_size(Type::secondary_semibold, title).x, middle + px(8));
  const float left = text_size(Type::secondary_semibold, title).x + px(12);
  // What a comma parts is left out as a whole where there is no room.
  const std::string brief(note.substr(0, note.find(", ")));
  const std::string fitting = first_fitting(Type::caption, {std::string(note), brief}, room - left);
  draw_text_middle(list, at.x + room - text_size(Type::caption, fitting).x, middle, Type::caption, t.text3, fitting);
}

Chart::Chart(const char* id, ImVec2 size, const Axes& axes, const std::string& tooltip_text) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  size = {std::max(1.0f, size.x), std::max(1.0f, size.y)};
  // The item is a button of its own, since a plot without inputs makes none.
  ImGui::InvisibleButton(id, size);
  const ImVec2 next = ImGui::GetCursorScreenPos();
  const bool item_hovered = ImGui::IsItemHovered();
  if (!tooltip_text.empty()) tooltip(tooltip_text.c_str());
  ImGui::SetCursorScreenPos(at);
  push_type(Type::mono_caption);
  ImGui::PushID(id);
  // ImPlot treats ticks at given places as minor ticks: draw those at full strength.
  ImPlot::PushStyleVar(ImPlotStyleVar_MinorAlpha, 1.0f);
  open_ = ImPlot::BeginPlot("##plot", size, ImPlotFlags_CanvasOnly | ImPlotFlags_NoInputs | ImPlotFlags_NoFrame);
  if (open_) {
    ImPlotAxisFlags x_flags = axes.x_lines ? 0 : ImPlotAxisFlags_NoGridLines;
    if (!axes.x_labels) x_flags |= ImPlotAxisFlags_NoTickLabels;
    const float below = axes.x_labels ? text_size(Type::mono_caption, "0").y + px(6) : 0;
    set_up_axis(ImAxis_X1, axes.x, axes.x_from, size.x - widest_label(axes.y) - px(20), x_flags);
    set_up_axis(ImAxis_Y1, axes.y, axes.y_from, size.y - below - px(12), 0);
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

void axis_caption(std::string_view words) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float left = (ImGui::GetContentRegionAvail().x - text_size(Type::caption, words).x) * 0.5f;
  draw_text_middle(ImGui::GetWindowDrawList(), at.x + std::max(0.0f, left),
                   at.y - ImGui::GetStyle().ItemSpacing.y + px(7), Type::caption, colours().text3, words);
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
