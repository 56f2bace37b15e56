#include "app/charts/budget_chart.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "app/charts/chart_frame.h"
#include "app/charts/chart_style.h"
#include "app/look/widgets.h"

namespace canopy::app {
namespace {

constexpr float kCaption = 18;

struct Curve {
  std::vector<double> width, speed;
};

Curve curve_of(const std::vector<WidthSpeed>& points, double end) {
  Curve curve;
  for (const WidthSpeed& each : points) {
    if (each.width > end) break;
    curve.width.push_back(each.width);
    curve.speed.push_back(each.tokens_per_second());
  }
  return curve;
}

double highest(const BudgetView& view) {
  double most = std::max(view.plain_tokens_per_second, view.realised.tokens_per_second());
  for (const WidthSpeed& each : view.predicted) most = std::max(most, each.tokens_per_second());
  for (const WidthSpeed& each : view.measured) most = std::max(most, each.tokens_per_second());
  return most;
}

/// A word and a figure beside a mark, kept inside the plot: right of it, else left.
void mark_label(ImVec2 mark, float dy, const char* word, const std::string& figure, Type type) {
  const float words = text_size(type, word).x + px(6), width = words + text_size(Type::mono_caption, figure).x;
  const float left = ImPlot::GetPlotPos().x, right = left + ImPlot::GetPlotSize().x;
  float x = mark.x + px(11);
  if (x + width > right) x = mark.x - px(11) - width;
  x = std::max(x, left + px(6));
  const float top = ImPlot::GetPlotPos().y + px(7);
  const float y = std::max(top, mark.y + dy);
  ImDrawList* list = ImPlot::GetPlotDrawList();
  const bool strong = type != Type::caption;
  draw_text_middle(list, x, y, type, strong ? colours().text : colours().text2, word);
  draw_text_middle(list, x + words, y, Type::mono_caption, colours().text, figure);
}

void draw_plain(const BudgetView& view) {
  if (view.plain_tokens_per_second <= 0) return;
  plot_reference(view.plain_tokens_per_second);
  const std::string figure = whole(view.plain_tokens_per_second);
  const float words = text_size(Type::caption, "AR ").x, width = words + text_size(Type::mono_caption, figure).x;
  const ImVec2 at = ImPlot::PlotToPixels(view.axis_end, view.plain_tokens_per_second);
  ImDrawList* list = ImPlot::GetPlotDrawList();
  draw_text_middle(list, at.x - width - px(2), at.y - px(8), Type::caption, colours().text2, "AR ");
  draw_text_middle(list, at.x - width - px(2) + words, at.y - px(8), Type::mono_caption, colours().text2, figure);
}

void draw_marks(const BudgetView& view) {
  const Theme& t = colours();
  ImDrawList* list = ImPlot::GetPlotDrawList();
  const ImVec2 real = ImPlot::PlotToPixels(view.realised.width, view.realised.tokens_per_second());
  const bool was_best = view.hindsight && view.hindsight->width == view.realised.width;
  if (view.hindsight && !was_best) {
    const ImVec2 at = ImPlot::PlotToPixels(view.hindsight->width, view.hindsight->tokens_per_second());
    list->AddCircleFilled(at, px(3.5f), t.panel);
    list->AddCircle(at, px(3.5f), t.accent, 0, px(1.5f));
    const std::string figure = grouped(view.hindsight->width);
    const float width =
        text_size(Type::caption, "best in hindsight").x + px(6) + text_size(Type::mono_caption, figure).x;
    // Above the curve; where the realised mark's label is, the words go to the left.
    const bool near = std::abs(at.x - real.x) < width && std::abs(at.y - real.y) < px(20);
    mark_label({near ? at.x - width - px(16) : at.x - px(11), at.y}, -px(11), "best in hindsight", figure,
               Type::caption);
  }
  if (view.chosen && view.realised.width > 1) {
    const ImVec2 at = ImPlot::PlotToPixels(view.chosen->width, view.chosen->tokens_per_second());
    const ImVec2 a = {at.x, at.y + px(1)}, b = {at.x - px(6), at.y + px(12)}, c = {at.x + px(6), at.y + px(12)};
    list->AddTriangleFilled(a, b, c, t.text);
    list->AddTriangle(a, b, c, t.panel, px(1));
    const bool clash = std::abs(at.y - real.y) < px(16);
    mark_label(at, clash && at.y >= real.y ? px(16) : 0, "chosen", whole(view.chosen->tokens_per_second()),
               Type::caption_semibold);
  }
  list->AddCircleFilled(real, px(5), t.accent);
  list->AddCircle(real, px(5), t.text, 0, px(1.5f));
  mark_label(real, 0, "realised", whole(view.realised.tokens_per_second()), Type::caption_semibold);
}

/// The numbers of the width under the mouse.
void curve_tooltip(const BudgetView& view) {
  const auto width = static_cast<uint32_t>(std::max(1.0, std::round(ImPlot::GetPlotMousePos().x)));
  std::string text = "Width N " + grouped(width);
  const auto above = std::ranges::lower_bound(view.predicted, width, {}, &WidthSpeed::width);
  if (above != view.predicted.end() && above->width == width)
    text += "\npredicted: " + fixed(above->expected, 2) + " tokens in " + milliseconds(above->ms) + ", " +
            whole(above->tokens_per_second()) + " tok/s";
  if (width <= view.measured.size()) {
    const WidthSpeed& here = view.measured[width - 1];
    text += "\ncut here: " + fixed(here.expected, 0) + " tokens measured, " + milliseconds(here.ms) +
            (width == view.realised.width ? " measured, " : " predicted, ") + whole(here.tokens_per_second()) +
            " tok/s";
  }
  ImGui::SetTooltip("%s", text.c_str());
}

void draw_curves(const BudgetView& view) {
  draw_plain(view);
  const Curve predicted = curve_of(view.predicted, view.axis_end);
  plot_predicted(predicted.width, predicted.speed);
  const Curve measured = curve_of(view.measured, view.axis_end);
  if (!measured.width.empty())
    ImPlot::PlotStairs("measured", measured.width.data(), measured.speed.data(),
                       static_cast<int>(measured.width.size()), measured_spec());
  ImPlot::PushPlotClipRect(px(6));
  draw_marks(view);
  ImPlot::PopPlotClipRect();
}

}  // namespace

void draw_budget_chart(const BudgetView* view, ImVec2 size) {
  Axes axes;
  const double end = view ? view->axis_end : 128;
  axes.x = width_ticks(end);
  axes.x_from = 1;
  axes.x_lines = true;
  axes.y = ticks_to(view ? highest(*view) : 100, 4);
  {
    const Chart chart("S(N)", {size.x, size.y - px(kCaption)}, axes);
    if (!chart) return;
    if (view) {
      draw_curves(*view);
      if (chart.hovered()) curve_tooltip(*view);
    } else {
      chart.say("after the first round");
    }
  }
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const char* words = "N, rows verified in one pass, root included";
  draw_text_middle(ImGui::GetWindowDrawList(), at.x + (size.x - text_size(Type::caption, words).x) * 0.5f,
                   at.y - ImGui::GetStyle().ItemSpacing.y + px(7), Type::caption, colours().text3, words);
}

}  // namespace canopy::app
