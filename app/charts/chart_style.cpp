#include "app/charts/chart_style.h"

#include <algorithm>
#include <vector>

#include "app/look/fonts.h"

namespace canopy::app {
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

void plot_reference(double y) {
  const ImPlotRect limits = ImPlot::GetPlotLimits();
  const double x[] = {limits.X.Min, limits.X.Max}, ys[] = {y, y};
  plot_dashed(x, ys, reference_spec(), reference_dash());
}

}  // namespace canopy::app
