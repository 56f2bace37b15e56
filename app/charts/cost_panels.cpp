#include "app/charts/cost_panels.h"

#include <algorithm>
#include <cmath>

#include "app/charts/chart_frame.h"
#include "app/charts/label_places.h"
#include "app/charts/statistics_view.h"
#include "app/look/widgets.h"
#include "app/panels/panel.h"

namespace canopy::app {
namespace {

constexpr float kHeader = 30;
constexpr float kCaption = 18;
constexpr const char* kWidths = "width, rows of one pass: N drafted and the root";

struct Legend {
  LegendMark mark;
  Colour colour;
  const char* word;
};

void draw_header(const char* title, const std::string& note, const char* about, std::initializer_list<Legend> legend) {
  const Theme& t = colours();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float room = ImGui::GetContentRegionAvail().x, middle = at.y + px(kHeader) * 0.5f;
  ImGui::InvisibleButton(title, {std::max(1.0f, room), px(kHeader)});
  tooltip(about);
  ImDrawList* list = ImGui::GetWindowDrawList();
  draw_text_middle(list, at.x, middle, Type::secondary_semibold, t.text, title);
  const float note_width = text_size(Type::caption, note).x;
  draw_text_middle(list, at.x + room - note_width, middle, Type::caption, t.text3, note);
  float x = at.x + text_size(Type::secondary_semibold, title).x + px(24);
  for (const Legend& each : legend) {
    if (x + legend_width(each.word) > at.x + room - note_width - px(12)) break;
    x = legend_mark({x, middle}, each.mark, each.colour, each.word) + px(16);
  }
}

ImVec2 chart_size() {
  const ImVec2 room = ImGui::GetContentRegionAvail();
  return {room.x, std::max(px(120), room.y - px(kCaption))};
}

constexpr double kEdge = 1.03;  // end of a width axis, in largest widths: dots at the largest one are drawn whole

Axes width_axes(double widest) {
  Axes axes;
  axes.x = width_ticks(std::max(16.0, widest));
  axes.x.top *= kEdge;
  axes.x_from = 0;
  axes.x_lines = true;
  return axes;
}

/// Axes for prediction errors: passes up to `widest` rows, and errors around 0 in steps of 5% to 500%, so that an error
/// of `largest` fits where possible.
Axes share_axes(double widest, double largest) {
  Axes axes = width_axes(widest);
  double step = 0.05;
  for (const double each : {0.1, 0.25, 0.5, 1.0, 2.5, 5.0})
    if (largest > step * 2) step = each;
  const double end = step * 2;
  for (int i = -2; i <= 2; ++i) {
    axes.y.at.push_back(step * i);
    axes.y.labels.push_back(i == 0 ? "0%" : (i > 0 ? "+" : "\u2212") + fixed(100 * step * std::abs(i), 0) + "%");
  }
  axes.y_from = -end * 1.1;
  axes.y.top = end * 1.1;
  return axes;
}

ImPlotSpec marks(Colour colour, bool filled) {
  ImPlotSpec spec;
  spec.Marker = ImPlotMarker_Circle;
  spec.MarkerSize = 2.6f * look().scale;
  spec.LineWeight = 1.2f * look().scale;
  const ImVec4 line = ImGui::ColorConvertU32ToFloat4(colour);
  spec.LineColor = spec.MarkerLineColor = line;
  spec.MarkerFillColor = filled ? line : ImGui::ColorConvertU32ToFloat4(with_alpha(colour, 0));
  return spec;
}

std::string context_name(const ContextCosts& costs) {
  return "context " + grouped(costs.context);
}

/// Lengthens the axis of widths in a chart of this width, so that the names of the contexts fit behind the curves.
void leave_room_for_names(const CostView& costs, float width, Axes& axes) {
  float widest = 0;
  for (const ContextCosts& each : costs.contexts)
    widest = std::max(widest, text_size(Type::caption, context_name(each)).x + px(16));
  axes.x.top /= 1 - std::min(0.4f, widest / std::max(px(1), width - px(48)));
}

/// Names the context of each curve at its end, clear of the points and of the other names.
void draw_context_labels(const CostView& costs) {
  std::vector<LabelWish> wishes;
  std::vector<std::string> words;
  std::vector<Spot> points;
  for (const ContextCosts& each : costs.contexts) {
    for (size_t i = 0; i < each.width.size(); ++i) {
      const ImVec2 at = ImPlot::PlotToPixels(each.width[i], each.ms[i]);
      points.push_back({at.x, at.y});
    }
    words.push_back(context_name(each));
    wishes.push_back({points.back(), px(4), text_size(Type::caption, words.back()).x + px(4), px(15)});
  }
  const std::vector<Box> places = place_labels(wishes, plot_room(), {}, points);
  ImDrawList* list = ImPlot::GetPlotDrawList();
  for (size_t i = 0; i < places.size(); ++i) {
    clear_behind(list, places[i]);
    draw_text_middle(list, places[i].left + px(2), (places[i].top + places[i].bottom) * 0.5f, Type::caption,
                     colours().text2, words[i]);
  }
}

/// Draws the points of each context with the curve fitted to them. Long contexts are drawn stronger, as passes cost
/// most there.
void draw_passes(const CostView& costs) {
  const Theme& t = colours();
  const size_t contexts = costs.contexts.size();
  for (size_t i = 0; i < contexts; ++i) {
    const ContextCosts& each = costs.contexts[i];
    const float strength = contexts > 1 ? 0.45f + 0.55f * static_cast<float>(i) / static_cast<float>(contexts - 1) : 1;
    plot_predicted(each.curve_width, each.curve_ms);
    ImPlot::PlotScatter("passes", each.width.data(), each.ms.data(), static_cast<int>(each.width.size()),
                        marks(mix(t.panel, t.accent, strength), true));
  }
  draw_context_labels(costs);
}

}  // namespace

const CostView* ShownCosts::of(const ViewModel& view) {
  const auto& costs = view.calibration.costs;
  if (!costs || costs->passes.empty() || !view.rounds.log->is_live()) return nullptr;
  if (costs != costs_) {
    costs_ = costs;
    view_ = cost_view(*costs);
  }
  return &view_;
}

void ResidualsPanel::draw(const ViewModel& view, CommandSink&) {
  const Theme& t = colours();
  const CostView* costs = costs_.of(view);
  const RoundLog& log = *view.rounds.log;
  const size_t shown = view.rounds.playback.shown;
  std::vector<RoundResidual> rounds;
  if (shown < log.rounds()) rounds = round_residuals(log, log.first_of_reply(shown), shown);
  const PanelBody body("Residuals body", 14, 4);
  double mean = 0, largest = costs ? costs->worst_error : 0, widest = costs ? costs->widest : 0;
  for (const RoundResidual& each : rounds) {
    mean += std::abs(each.error) / static_cast<double>(rounds.size());
    widest = std::max(widest, each.width);
  }
  largest = std::max(largest, mean * 3);
  const Axes axes = share_axes(widest, largest);
  std::vector<double> width, error;
  size_t beyond = 0;  // rounds whose error is not on the axis: they are drawn at its end
  for (const RoundResidual& each : rounds) {
    const double within = std::clamp(each.error, axes.y.at.front(), axes.y.at.back());
    beyond += within == each.error ? 0 : 1;
    width.push_back(each.width);
    error.push_back(within);
  }
  std::string note =
      rounds.empty() ? "" : counted(rounds.size(), "round", "rounds") + ", off by " + percent(mean) + " in the mean";
  if (beyond > 0) note += "; " + grouped(beyond) + " beyond the axis";
  if (rounds.empty() && costs)
    note = counted(costs->passes, "pass", "passes") + ", off by " + percent(costs->fit_error);
  draw_header(
      "Verify time, measured over predicted", note,
      "Above the line the pass took longer than predicted. Rounds: against what the table and its corrections "
      "said before the round. Calibration: single measured passes against the roofline fitted to them.",
      {{LegendMark::dot, t.accent, "rounds"}, {LegendMark::ring, t.text2, "calibration, against the roofline"}});
  if (const Chart chart("Residuals chart", chart_size(), axes); chart) {
    plot_reference(0);
    if (costs)
      for (const ContextCosts& each : costs->contexts)
        ImPlot::PlotScatter("passes", each.width.data(), each.residual.data(), static_cast<int>(each.width.size()),
                            marks(t.text2, false));
    if (!width.empty())
      ImPlot::PlotScatter("rounds", width.data(), error.data(), static_cast<int>(width.size()), marks(t.accent, true));
    if (!costs && rounds.empty()) chart.say("after the first predicted round, or a calibration");
  }
  axis_caption(kWidths);
}

void RooflinePanel::draw(const ViewModel& view, CommandSink&) {
  const Theme& t = colours();
  const CostView* costs = costs_.of(view);
  const PanelBody body("Roofline body", 14, 4);
  const std::string note =
      costs ? counted(costs->passes, "pass", "passes") + ", roofline off by " + percent(costs->fit_error)
            : std::string();
  draw_header(
      "Verify time by width, ms", note,
      "Points: single passes of the target, measured by the calibration. Dashed: the roofline "
      "max(\u03b1m\u00b7Tmem + \u03b2m, \u03b1c\u00b7Tcomp + \u03b2c) fitted to them. One colour strength a context.",
      {{LegendMark::dot, t.accent, "measured"}, {LegendMark::dashed, t.text2, "fitted roofline"}});
  Axes axes = width_axes(costs ? costs->widest : 128);
  axes.y = ticks_to(costs ? costs->slowest_ms : 10, 4, false);
  if (costs) leave_room_for_names(*costs, ImGui::GetContentRegionAvail().x, axes);
  if (const Chart chart("Roofline chart", chart_size(), axes); chart) {
    if (costs)
      draw_passes(*costs);
    else
      chart.say("Nothing was measured yet: Calibrate, in the panel Calibration, takes about 90 s");
  }
  axis_caption(kWidths);
}

}  // namespace canopy::app
