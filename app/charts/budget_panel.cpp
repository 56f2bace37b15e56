#include "app/charts/budget_panel.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "app/charts/budget_view.h"
#include "app/charts/chart_frame.h"
#include "app/charts/label_places.h"
#include "app/look/widgets.h"
#include "app/panels/panel.h"
#include "app/panels/term_words.h"

namespace canopy::app {
namespace {

constexpr float kAxisCaption = 18;

struct Curve {
  std::vector<double> budget, speed;
};

Curve curve_of(const std::vector<WidthSpeed>& points, double end) {
  Curve curve;
  for (const WidthSpeed& each : points) {
    if (each.budget() > end) break;
    curve.budget.push_back(each.budget());
    curve.speed.push_back(each.tokens_per_second());
  }
  return curve;
}

double highest(const BudgetView& view) {
  double most = std::max(view.ar_tokens_per_second, view.realised.tokens_per_second());
  for (const WidthSpeed& each : view.predicted) most = std::max(most, each.tokens_per_second());
  for (const WidthSpeed& each : view.measured) most = std::max(most, each.tokens_per_second());
  return most;
}

/// The label of a marked point: a word and a figure.
struct MarkLabel {
  ImVec2 mark;
  float reach;
  const char* word;
  std::string figure;
  bool strong = true;

  Type type() const { return strong ? Type::caption_semibold : Type::caption; }
  float words_width() const { return text_size(type(), word).x + px(6); }
};

/// Draws the label of the line of plain decoding at its right end, above or below it, where fewer points of the curves
/// are; returns the room that it takes.
std::vector<Box> draw_ar_label(const BudgetView& view, const std::vector<Spot>& curves) {
  if (view.ar_tokens_per_second <= 0) return {};
  const std::string figure = speed(view.ar_tokens_per_second);
  const float words = text_size(Type::caption, "AR ").x, width = words + text_size(Type::mono_caption, figure).x;
  const ImVec2 at = ImPlot::PlotToPixels(view.axis_end, view.ar_tokens_per_second);
  const Box room = plot_room(), above{at.x - width - px(4), at.y - px(17), at.x, at.y - px(1)};
  const Box below{above.left, at.y + px(1), at.x, at.y + px(17)};
  const auto crossed = [&](const Box& box) {
    const auto points = std::ranges::count_if(curves, [&](const Spot& each) { return box.holds(each.x, each.y); });
    return points + (box.top < room.top || box.bottom > room.bottom ? 1000 : 0);
  };
  const Box box = crossed(below) < crossed(above) ? below : above;
  const float middle = (box.top + box.bottom) * 0.5f;
  ImDrawList* list = ImPlot::GetPlotDrawList();
  clear_behind(list, box);
  draw_text_middle(list, box.left + px(2), middle, Type::caption, colours().text2, "AR ");
  draw_text_middle(list, box.left + px(2) + words, middle, Type::mono_caption, colours().text2, figure);
  return {box};
}

void draw_mark_labels(const std::vector<MarkLabel>& labels, const std::vector<Box>& taken,
                      const std::vector<Spot>& curve) {
  const Theme& t = colours();
  std::vector<LabelWish> wishes;
  for (const MarkLabel& each : labels)
    wishes.push_back({{each.mark.x, each.mark.y},
                      each.reach,
                      each.words_width() + text_size(Type::mono_caption, each.figure).x,
                      px(15)});
  const std::vector<Box> places = place_labels(wishes, plot_room(), taken, curve);
  ImDrawList* list = ImPlot::GetPlotDrawList();
  for (size_t i = 0; i < labels.size(); ++i) {
    const MarkLabel& each = labels[i];
    const float middle = (places[i].top + places[i].bottom) * 0.5f;
    // Draws a line from a mark to a label that is not right beside it.
    const ImVec2 near = {std::clamp(each.mark.x, places[i].left, places[i].right),
                         std::clamp(each.mark.y, places[i].top, places[i].bottom)};
    if (std::hypot(near.x - each.mark.x, near.y - each.mark.y) > each.reach + px(12))
      list->AddLine(near, each.mark, t.text3, px(1));
    clear_behind(list, places[i]);
    draw_text_middle(list, places[i].left, middle, each.type(), each.strong ? t.text : t.text2, each.word);
    draw_text_middle(list, places[i].left + each.words_width(), middle, Type::mono_caption, t.text, each.figure);
  }
}

/// Draws the marks of the round's width and of the best one; returns their labels, the most important first.
std::vector<MarkLabel> draw_marks(const BudgetView& view) {
  const Theme& t = colours();
  ImDrawList* list = ImPlot::GetPlotDrawList();
  const ImVec2 real = ImPlot::PlotToPixels(view.realised.budget(), view.realised.tokens_per_second());
  std::vector<MarkLabel> labels = {{real, px(6), "realised", speed(view.realised.tokens_per_second()) + " tok/s"}};
  if (view.hindsight && view.hindsight->width != view.realised.width) {
    const ImVec2 at = ImPlot::PlotToPixels(view.hindsight->budget(), view.hindsight->tokens_per_second());
    list->AddCircleFilled(at, px(3.5f), t.panel);
    list->AddCircle(at, px(3.5f), t.accent, 0, px(1.5f));
    labels.push_back({at, px(4.5f), "best in hindsight",
                      view.hindsight->width > 1 ? "N " + grouped(view.hindsight->budget()) : "no drafts", false});
  }
  if (view.own && view.realised.width > 1) {
    const ImVec2 at = ImPlot::PlotToPixels(view.own->budget(), view.own->tokens_per_second());
    const ImVec2 a = {at.x, at.y + px(1)}, b = {at.x - px(6), at.y + px(12)}, c = {at.x + px(6), at.y + px(12)};
    list->AddTriangleFilled(a, b, c, t.text);
    list->AddTriangle(a, b, c, t.panel, px(1));
    labels.push_back({{at.x, at.y + px(6.5f)},
                      px(6),
                      view.was_chosen ? "chosen" : "predicted",
                      speed(view.own->tokens_per_second()) + " tok/s"});
  }
  list->AddCircleFilled(real, px(5), t.accent);
  list->AddCircle(real, px(5), t.text, 0, px(1.5f));
  return labels;
}

/// Points of the curves in pixels, closer together than a label is wide, so that labels can avoid the curves.
std::vector<Spot> curve_spots(const Curve& curve) {
  std::vector<Spot> spots;
  for (size_t i = 0; i < curve.budget.size(); ++i) {
    const ImVec2 to = ImPlot::PlotToPixels(curve.budget[i], curve.speed[i]);
    const Spot from = spots.empty() ? Spot{to.x, to.y} : spots.back();
    const float length = std::max(std::abs(to.x - from.x), std::abs(to.y - from.y));
    const int steps = std::clamp(static_cast<int>(length / px(4)), 1, 64);
    for (int step = 1; step <= steps; ++step) {
      const float share = static_cast<float>(step) / static_cast<float>(steps);
      spots.push_back({from.x + (to.x - from.x) * share, from.y + (to.y - from.y) * share});
    }
  }
  return spots;
}

/// The curve as PlotStairs draws it: each value holds until the next width.
Curve stairs_of(const Curve& curve) {
  Curve stairs;
  for (size_t i = 0; i < curve.budget.size(); ++i) {
    if (i > 0) stairs.budget.push_back(curve.budget[i]), stairs.speed.push_back(curve.speed[i - 1]);
    stairs.budget.push_back(curve.budget[i]), stairs.speed.push_back(curve.speed[i]);
  }
  return stairs;
}

/// The tooltip with the numbers of the width under the mouse.
void curve_tooltip(const BudgetView& view) {
  const uint32_t width = static_cast<uint32_t>(std::max(0.0, std::round(ImPlot::GetPlotMousePos().x))) + 1;
  std::string text = "N " + grouped(width - 1) + ", a pass of " + counted(width, "row", "rows");
  const auto above = std::ranges::lower_bound(view.predicted, width, {}, &WidthSpeed::width);
  if (above != view.predicted.end() && above->width == width)
    text += "\npredicted: " + fixed(above->expected, 2) + " tokens in " + milliseconds(above->ms) + ", " +
            speed(above->tokens_per_second()) + " tok/s";
  if (width <= view.measured.size()) {
    const WidthSpeed& here = view.measured[width - 1];
    text += "\ncut here: " + fixed(here.expected, 0) + " tokens measured, " + milliseconds(here.ms) +
            (width == view.realised.width ? " measured, " : " predicted, ") + speed(here.tokens_per_second()) +
            " tok/s";
  }
  ImGui::SetTooltip("%s", text.c_str());
}

void draw_curves(const BudgetView& view) {
  if (view.ar_tokens_per_second > 0) plot_reference(view.ar_tokens_per_second);
  const Curve predicted = curve_of(view.predicted, view.axis_end);
  plot_predicted(predicted.budget, predicted.speed);
  const Curve measured = curve_of(view.measured, view.axis_end);
  if (!measured.budget.empty())
    ImPlot::PlotStairs("measured", measured.budget.data(), measured.speed.data(),
                       static_cast<int>(measured.budget.size()), measured_spec());
  Curve plain;
  if (view.ar_tokens_per_second > 0)
    plain = {{0.0, static_cast<double>(view.axis_end)}, {view.ar_tokens_per_second, view.ar_tokens_per_second}};
  std::vector<Spot> spots;
  const auto avoid = [&](const Curve& curve) {
    const std::vector<Spot> more = curve_spots(curve);
    spots.insert(spots.end(), more.begin(), more.end());
  };
  avoid(predicted);
  avoid(stairs_of(measured));
  ImPlot::PushPlotClipRect(px(6));
  const std::vector<Box> taken = draw_ar_label(view, spots);
  avoid(plain);
  draw_mark_labels(draw_marks(view), taken, spots);
  ImPlot::PopPlotClipRect();
}

void draw_budget_chart(const BudgetView* view, ImVec2 size) {
  Axes axes;
  const double end = view ? view->axis_end : 128;
  axes.x = budget_ticks(end);
  axes.x_from = 0;
  axes.x_lines = true;
  axes.y = ticks_to(view ? highest(*view) : 100, 4);
  {
    const Chart chart("S(N)", {size.x, size.y - px(kAxisCaption)}, axes);
    if (!chart) return;
    if (view) {
      draw_curves(*view);
      if (chart.hovered()) curve_tooltip(*view);
    } else {
      chart.say("after the first round");
    }
  }
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const char* words = "N, drafted nodes; the pass has one row more";
  draw_text_middle(ImGui::GetWindowDrawList(), at.x + (size.x - text_size(Type::caption, words).x) * 0.5f,
                   at.y - ImGui::GetStyle().ItemSpacing.y + px(7), Type::caption, colours().text3, words);
}

constexpr float kSide = 290;        // width of the column of text
constexpr float kTwoColumns = 560;  // below this width, chart and text are in one column
constexpr float kLeastChart = 150;  // least height of the chart
constexpr float kBudgetHeader = 30;
constexpr float kBudgetRow = 18;

void draw_header(float width) {
  const Theme& t = colours();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::InvisibleButton("S(N) title", {std::max(1.0f, width), px(kBudgetHeader)});
  term_tooltip(
      "S(N)",
      "Tokens a second of a round by N, its drafted nodes. Predicted: expected tokens over predicted time, before the "
      "pass. "
      "Measured: the tokens this tree cut at N would have brought; the time of sizes that did not run is the "
      "predicted one, corrected by this round's error.");
  const float middle = at.y + px(kBudgetHeader) * 0.5f;
  const std::string title = "S(N), tok/s by N drafted";
  draw_text_middle(ImGui::GetWindowDrawList(), at.x, middle, Type::secondary_semibold, t.text, title);
  const char *first = "predicted", *second = "measured, this tree cut at N";
  const float wide = legend_width(first) + px(16) + legend_width(second);
  const float left = text_size(Type::secondary_semibold, title).x + px(24);
  if (left + wide > width) second = "measured";
  if (left + legend_width(first) + px(16) + legend_width(second) > width) return;
  const float x = std::max(at.x + left, std::min(at.x + px(196), at.x + width - wide));
  const float next = legend_mark({x, middle}, LegendMark::dashed, t.text2, first);
  legend_mark({next + px(16), middle}, LegendMark::solid, t.accent, second);
}

void draw_cells(ImVec2 at, float width, const std::string (&cells)[4], Type type, Colour colour) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float ends[] = {0, width * 0.47f, width * 0.745f, width - px(8)};
  const float middle = at.y + px(kBudgetRow) * 0.5f;
  draw_text_middle(list, at.x + px(8), middle, type, colour, cells[0]);
  for (int i = 1; i < 4; ++i)
    draw_text_middle(list, at.x + ends[i] - text_size(type, cells[i]).x, middle, type, colour, cells[i]);
}

void draw_rows(const BudgetView& view, float width) {
  if (view.rows.empty()) return;
  const Theme& t = colours();
  ImDrawList* list = ImGui::GetWindowDrawList();
  draw_cells(ImGui::GetCursorScreenPos(), width, {"N", "tokens", "ms", "tok/s"}, Type::caption, t.text3);
  ImGui::Dummy({width, px(kBudgetRow)});
  for (const BudgetRow& row : view.rows) {
    const ImVec2 a = ImGui::GetCursorScreenPos();
    if (row.ran) list->AddRectFilled(a, {a.x + width, a.y + px(kBudgetRow)}, t.accent_bg);
    const std::string name = row.plain ? "AR" : grouped(row.speed.budget());
    draw_cells(a, width,
               {name, fixed(row.speed.expected, 2), fixed(row.speed.ms, 2), speed(row.speed.tokens_per_second())},
               row.ran ? Type::mono_semibold : Type::mono, t.text);
    ImGui::InvisibleButton(("row " + name).c_str(), {std::max(1.0f, width), px(kBudgetRow)});
    if (row.plain && !view.plain_from.empty()) {
      tooltip(("Plain decoding, " + view.plain_from + ".").c_str());
      continue;
    }
    std::string words = row.ran ? "What the round had." : row.best ? "The highest S(N) shown." : "";
    words += std::string(words.empty() ? "" : " ") + "Expected tokens and time are predicted.";
    tooltip(words.c_str());
  }
}

void draw_outcome(const BudgetView& view, float width) {
  const std::string tokens = counted(static_cast<uint64_t>(view.realised.expected), "token", "tokens");
  pair_line(
      width, "Realised", tokens + " in " + milliseconds(view.realised.ms),
      "Measured: what the round emitted, over its wall time. " + speed(view.realised.tokens_per_second()) + " tok/s.");
  pair_line(width, "Time error", view.time_error ? signed_percent(*view.time_error) : "\u2013",
            view.time_error ? "Measured over predicted time of this round, less 1." : "No time was predicted.");
  if (view.limits.empty()) return;
  std::string all = "What bounds the size and the depth of this round's tree:";
  for (const std::string& each : view.limits) all += "\n" + each;
  pair_line(width, "Limits", view.limits.size() > 1 ? view.limits[0] + ", " + view.limits[1] : view.limits[0], all);
}

/// Draws the verdict and the reason for the width.
void draw_why(const BudgetView& view, float width) {
  const Theme& t = colours();
  const std::string title = view.loses ? verdict(view) : view.title;
  bar_card("Why", width, view.loses || view.slower ? t.bonus : t.accent, title, view.reason, view.not_argmax);
  std::string more = view.is_argmax ? "It has the highest S(N) shown within the limits, plain decoding included." : "";
  if (!view.next_row.empty()) more += (more.empty() ? "" : " ") + view.next_row;
  if (!view.recorded && !view.predicted.empty()) more += " S(N) is worked out from the tree and the cost table.";
  if (!more.empty()) tooltip(more.c_str());
}

void draw_figures(const BudgetView& view, float width) {
  draw_rows(view, width);
  if (!view.rows.empty()) ImGui::Dummy({width, px(6)});
  ImGui::Indent(px(8));
  draw_outcome(view, width - px(16));
  ImGui::Unindent(px(8));
}

/// Draws the text beside the chart.
void draw_side(const BudgetView& view, ImVec2 size) {
  ImGui::PushStyleColor(ImGuiCol_ChildBg, colours().panel);
  ImGui::BeginChild("Budget words", size, ImGuiChildFlags_NavFlattened);
  const float width = ImGui::GetContentRegionAvail().x;
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  draw_why(view, width);
  ImGui::Dummy({width, px(6)});
  draw_figures(view, width);
  ImGui::PopStyleVar();
  ImGui::EndChild();
  ImGui::PopStyleColor();
}

}  // namespace

const BudgetView* BudgetPanel::shown(const ViewModel& view) {
  const std::shared_ptr<const RoundRecord> round = view.rounds.shown();
  // The costs of the loaded pair are valid only for its own rounds: a trace comes from another device or time.
  const std::shared_ptr<const CostSnapshot> costs = view.rounds.log->is_live() ? view.calibration.costs : nullptr;
  if (!round) {
    round_.reset();
    return nullptr;
  }
  const ArReference plain = ar_reference(view);
  if (round != round_ || costs != costs_ || plain.tokens_per_second != plain_) {
    round_ = round;
    costs_ = costs;
    plain_ = plain.tokens_per_second;
    view_ = budget_view(*round, costs.get(), plain);
  }
  view_.plain_from = ar_origin(plain, view.chat.now_ms);
  return &view_;
}

void BudgetPanel::draw(const ViewModel& view, CommandSink&) {
  const BudgetView* shown_view = shown(view);
  const PanelBody body("Budget body", 14, 4);
  const ImVec2 room = ImGui::GetContentRegionAvail(), origin = ImGui::GetCursorScreenPos();
  if (room.x >= px(kTwoColumns)) {
    const float words = std::min(px(kSide), room.x * 0.4f), chart = room.x - words - px(24);
    draw_header(chart);
    draw_budget_chart(shown_view, {chart, std::max(px(kLeastChart), room.y - px(kBudgetHeader) - px(12))});
    if (!shown_view) return;
    ImGui::SetCursorScreenPos({origin.x + room.x - words, origin.y + px(4)});
    return draw_side(*shown_view, {words, room.y - px(4)});
  }
  // In one column: the verdict, then the chart in the rest of the visible height, then the figures further down.
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  if (shown_view) {
    draw_why(*shown_view, room.x);
    ImGui::Dummy({room.x, px(8)});
  }
  draw_header(room.x);
  const float left = origin.y + room.y - ImGui::GetCursorScreenPos().y;
  draw_budget_chart(shown_view, {room.x, std::max(px(kLeastChart), left - px(12))});
  if (shown_view) {
    ImGui::Dummy({room.x, px(8)});
    draw_figures(*shown_view, room.x);
  }
  ImGui::PopStyleVar();
}

}  // namespace canopy::app
