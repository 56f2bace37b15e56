#include "app/compare/sweep_chart.h"

#include <algorithm>
#include <string>

#include "app/charts/chart_frame.h"

namespace canopy::app {
namespace {

constexpr double kRoomForNames = 1.28;  // end of the axis, in largest sizes

/// A curve's colour: the shown sweep has the accent, others the greys of what is compared with.
Colour curve_colour(size_t index) {
  const Theme& t = colours();
  return index == 0 ? t.accent : index % 2 == 1 ? t.text2 : t.text3;
}

void draw_errors(const SweepCurve& curve, Colour colour) {
  ImDrawList* list = ImPlot::GetPlotDrawList();
  ImPlot::PushPlotClipRect();
  for (size_t i = 0; i < curve.budget.size(); ++i) {
    const ImVec2 at = ImPlot::PlotToPixels(curve.budget[i], curve.value[i]);
    const ImVec2 low = ImPlot::PlotToPixels(curve.budget[i], curve.value[i] - curve.error[i]);
    const ImVec2 high = ImPlot::PlotToPixels(curve.budget[i], curve.value[i] + curve.error[i]);
    if (low.y - high.y > px(2)) {
      list->AddLine(low, high, colour, px(1));
      list->AddLine({at.x - px(3), low.y}, {at.x + px(3), low.y}, colour, px(1));
      list->AddLine({at.x - px(3), high.y}, {at.x + px(3), high.y}, colour, px(1));
    }
    list->AddCircleFilled(at, px(3), colour);
  }
  ImPlot::PopPlotClipRect();
}

void draw_curve(const SweepCurve& curve, size_t index) {
  const Colour colour = curve_colour(index);
  ImPlotSpec spec = measured_spec();
  spec.LineColor = ImGui::ColorConvertU32ToFloat4(colour);
  if (curve.budget.size() > 1)
    ImPlot::PlotLine(curve.name.c_str(), curve.budget.data(), curve.value.data(), static_cast<int>(curve.budget.size()),
                     spec);
  draw_errors(curve, colour);
}

/// Names the curves at their ends and the levels of the shown sweep at the right, none over another.
void draw_names(const std::vector<SweepCurve>& curves, double end) {
  std::vector<LabelWish> wishes;
  std::vector<std::string> words;
  std::vector<Colour> inks;
  std::vector<Spot> points;
  const auto wish = [&](double x, double y, const std::string& name, Colour ink) {
    const ImVec2 at = ImPlot::PlotToPixels(x, y);
    words.push_back(name);
    inks.push_back(ink);
    wishes.push_back({{at.x, at.y}, px(6), text_size(Type::caption, name).x + px(4), px(15)});
  };
  for (size_t i = 0; i < curves.size(); ++i) {
    const SweepCurve& curve = curves[i];
    for (size_t k = 0; k < curve.budget.size(); ++k) {
      const ImVec2 at = ImPlot::PlotToPixels(curve.budget[k], curve.value[k]);
      points.push_back({at.x, at.y});
    }
    if (!curve.budget.empty())
      wish(curve.budget.back(), curve.value.back(), i == 0 ? "trees" : "trees, " + curve.name,
           i == 0 ? colours().accent_text : curve_colour(i));
    if (i > 0) continue;
    for (const SweepCurve::Level& level : curve.levels) wish(end, level.value, level.name, colours().text2);
  }
  const std::vector<Box> places = place_labels(wishes, plot_room(), {}, points);
  ImDrawList* list = ImPlot::GetPlotDrawList();
  for (size_t i = 0; i < places.size(); ++i) {
    clear_behind(list, places[i]);
    draw_text_middle(list, places[i].left + px(2), (places[i].top + places[i].bottom) * 0.5f, Type::caption, inks[i],
                     words[i]);
  }
}

}  // namespace

void draw_sweep_chart(const std::vector<SweepCurve>& curves, bool ratios, ImVec2 size) {
  double widest = 16, highest = ratios ? 1 : 0;
  for (const SweepCurve& curve : curves) {
    for (size_t i = 0; i < curve.budget.size(); ++i) {
      widest = std::max(widest, curve.budget[i]);
      highest = std::max(highest, curve.value[i] + curve.error[i]);
    }
    for (const SweepCurve::Level& level : curve.levels) highest = std::max(highest, level.value);
  }
  Axes axes;
  axes.x = budget_ticks(widest);
  axes.x.top = widest * kRoomForNames;
  axes.y = ticks_to(std::max(highest, 1e-3), 4, false);
  const Chart chart("Speed by width", size, axes,
                    ratios ? "Ratio to the baseline over repeats that were measured in turns, with its standard error"
                           : "Mean of the repeats, each over all prompts, with their standard deviation");
  if (!chart) return;
  if (curves.empty() || highest <= 0) return chart.say("after the first prompt");
  for (const SweepCurve::Level& level : curves.front().levels) plot_reference(level.value);
  for (size_t i = curves.size(); i-- > 0;) draw_curve(curves[i], i);
  draw_names(curves, widest * 1.06);
}

}  // namespace canopy::app
