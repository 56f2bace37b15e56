#include "app/charts/statistics_panel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "app/charts/chart_frame.h"
#include "app/ui/widgets.h"

namespace canopy::app {
namespace {

constexpr float kSpeedHeight = 102;
constexpr float kHistogramHeight = 142;
constexpr double kAboveBars = 1.17;  // height of the chart, in highest bars: room above them for the label of the mean
constexpr float kDepthHeight = 108;
constexpr uint32_t kShownDepths = 15;
constexpr const char* kWaiting = "after 8 passes";

float room() {
  return ImGui::GetContentRegionAvail().x;
}

/// Ticks at whole numbers, fewer where there are too many.
Ticks counted_ticks(double from, double to) {
  const double step = std::max(1.0, std::ceil((to - from + 1) / 16));
  std::vector<double> at;
  for (double each = from; each <= to; each += step) at.push_back(each);
  Ticks ticks = ticks_at(std::move(at));
  ticks.top = to + 0.5;
  return ticks;
}

void draw_mean(double mean) {
  const ImPlotRect limits = ImPlot::GetPlotLimits();
  const double x[] = {mean, mean}, y[] = {limits.Y.Min, limits.Y.Max};
  ImPlotSpec spec = predicted_spec();
  spec.LineColor = ImGui::ColorConvertU32ToFloat4(colours().text);
  spec.LineWeight = 1.2f * look().scale;
  plot_dashed(x, y, spec, {px(3), px(3)});
  const ImVec2 at = ImPlot::PlotToPixels(mean, limits.Y.Max);
  ImDrawList* list = ImPlot::GetPlotDrawList();
  const std::string value = fixed(mean, 2);
  const float words = text_size(Type::caption, "mean ").x, width = words + text_size(Type::mono_caption, value).x;
  const float right = ImPlot::GetPlotPos().x + ImPlot::GetPlotSize().x;
  const float x_at = at.x + px(5) + width > right ? at.x - px(5) - width : at.x + px(5);
  draw_text_middle(list, x_at, at.y + px(8), Type::caption, colours().text2, "mean ");
  draw_text_middle(list, x_at + words, at.y + px(8), Type::mono_caption, colours().text, value);
}

void draw_bars(const StatisticsView& view) {
  ImDrawList* list = ImPlot::GetPlotDrawList();
  const Theme& t = colours();
  for (size_t i = 0; i < view.histogram.size(); ++i) {
    const double x = static_cast<double>(i), y = static_cast<double>(view.histogram[i]);
    ImVec2 a = ImPlot::PlotToPixels(x - 0.5, y), b = ImPlot::PlotToPixels(x + 0.5, 0);
    const float gap = std::min(px(2), (b.x - a.x) * 0.2f);
    a.x += gap;
    b.x -= gap;
    if (y > 0) list->AddRectFilled(a, b, t.accepted, px(1));
    if (view.shown_accepted == i)
      list->AddRect({a.x - px(1.5f), a.y - px(1.5f)}, {b.x + px(1.5f), b.y}, t.text, px(1), std::max(1.0f, px(1)));
  }
}

/// The tooltip of the bar under the mouse.
void histogram_tooltip(const StatisticsView& view) {
  const auto place = std::lround(ImPlot::GetPlotMousePos().x);
  if (place < 0 || static_cast<size_t>(place) >= view.histogram.size()) return;
  const uint64_t rounds = view.histogram[static_cast<size_t>(place)];
  show_tooltip(std::to_string(place) + " accepted: " + grouped(rounds) + " of " +
               counted(view.rounds, "pass", "passes"));
}

struct Part {
  const char* name;
  double ms;
  Colour colour;
};

std::array<Part, 3> parts_of(const StageTimes& times) {
  const Theme& t = colours();
  return {{{"guess", times.draft, t.draft}, {"check", times.verify, t.verify}, {"rest", times.rest, t.rest}}};
}

/// Draws the three parts of a round's time, filled if measured, else outlined. scale: pixels per millisecond.
void draw_stage_bar(ImVec2 at, const StageTimes& times, float scale, bool measured) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float height = px(16);
  for (const Part& part : parts_of(times)) {
    const float width = static_cast<float>(part.ms) * scale;
    if (width >= 1) {
      const ImVec2 a = at, b = {at.x + std::max(px(1), width - px(1)), at.y + height};
      if (measured)
        list->AddRectFilled(a, b, part.colour, px(1));
      else
        list->AddRect({a.x + px(0.75f), a.y + px(0.75f)}, {std::max(a.x + px(1.5f), b.x - px(0.75f)), b.y - px(0.75f)},
                      part.colour, px(1), px(1.5f));
    }
    at.x += width;
  }
}

std::string stage_tooltip(const StatisticsView& view) {
  const auto words = [](const StageTimes& times) {
    return "guess " + fixed(times.draft, 2) + ", check " + fixed(times.verify, 2) + ", rest " + fixed(times.rest, 2) +
           ", together " + milliseconds(times.total());
  };
  std::string text = "Measured by the wall clock: " + words(view.measured) + ". Rest is build, walk, commit and other.";
  if (view.predicted) text += "\nPredicted when the pass was planned: " + words(*view.predicted) + ".";
  return text;
}

void draw_speed(const SpeedSeries& series, const StatisticsView& view) {
  const std::string note = series.rounds_a_point > 1
                               ? "tok/s, " + grouped(series.rounds_a_point) + " passes a point, line: mean"
                               : "tok/s per pass, line: mean";
  chart_title("Speed", note,
              "Each point is the tokens of a pass over its time, measured. The line is their moving mean (EMA), each "
              "pass weighing a fifth. Dotted: plain decoding.");
  Axes axes;
  axes.y = ticks_to(std::max(series.highest, view.ar_tokens_per_second), 2);
  axes.x_from = 0;
  axes.x = ticks_at({0, std::max(2.0, series.round.empty() ? 1.0 : series.round.back() + 0.5)});
  axes.x_labels = false;
  const Chart chart("Speed chart", {room(), px(kSpeedHeight)}, axes);
  if (!chart) return;
  if (series.round.empty()) return chart.say(kWaiting);
  if (view.ar_tokens_per_second > 0) plot_reference(view.ar_tokens_per_second);
  ImPlotSpec dots = measured_spec();
  dots.Marker = ImPlotMarker_Circle;
  dots.MarkerSize = 1.5f * look().scale;
  dots.LineColor = dots.MarkerFillColor = dots.MarkerLineColor = ImGui::ColorConvertU32ToFloat4(colours().text3);
  dots.LineWeight = 0;
  const int count = static_cast<int>(series.round.size());
  ImPlot::PlotScatter("passes", series.round.data(), series.speed.data(), count, dots);
  ImPlot::PlotLine("mean", series.round.data(), series.mean.data(), count, measured_spec());
}

void draw_histogram(const StatisticsView& view) {
  const std::string outlined = view.shown_accepted ? ", this one outlined" : "";
  chart_title("Passes by right guesses", counted(view.rounds, "pass", "passes") + outlined,
              "How many guesses of each pass became text: the bars together are " +
                  counted(view.rounds, "pass", "passes") + ". " + view.cut);
  Axes axes;
  const double last = std::max<double>(kShownDepths, static_cast<double>(view.histogram.size()) - 1);
  const uint64_t highest = view.histogram.empty() ? 4 : *std::ranges::max_element(view.histogram);
  axes.y = ticks_to(static_cast<double>(std::max<uint64_t>(4, highest)));
  axes.y.top = std::max(axes.y.top, kAboveBars * static_cast<double>(highest));
  axes.x = counted_ticks(0, last);
  axes.x_from = -0.5;
  const Chart chart("Accepted chart", {room(), px(kHistogramHeight)}, axes);
  if (!chart) return;
  if (view.rounds == 0) return chart.say(kWaiting);
  draw_bars(view);
  if (view.rounds >= kEnoughRounds) draw_mean(view.mean_accepted);
  if (chart.hovered()) histogram_tooltip(view);
}

void draw_depths(const StatisticsView& view) {
  chart_title("Accepted to depth", "% of passes, by depth",
              "The share of all " + counted(view.rounds, "pass", "passes") +
                  " that accepted a guess at this depth, and so at all before it.");
  Axes axes;
  const double last = std::max<double>(kShownDepths, static_cast<double>(view.by_depth.size()));
  axes.x = counted_ticks(1, last);
  axes.x_from = 0.5;
  axes.y.at = {0, 0.5, 1};
  axes.y.labels = {"0%", "50%", "100%"};
  axes.y.top = 1.08;
  const Chart chart("Depth chart", {room(), px(kDepthHeight)}, axes);
  if (!chart) return;
  if (view.rounds < kEnoughRounds || view.by_depth.empty()) return chart.say(kWaiting);
  std::vector<double> depth, share;
  for (const DepthShare& each : view.by_depth) {
    depth.push_back(each.depth);
    share.push_back(each.share);
  }
  ImPlot::PlotLine("share", depth.data(), share.data(), static_cast<int>(depth.size()), accepted_spec());
  if (!chart.hovered()) return;
  const auto place = std::lround(ImPlot::GetPlotMousePos().x) - 1;
  if (place < 0 || static_cast<size_t>(place) >= view.by_depth.size()) return;
  const DepthShare& here = view.by_depth[static_cast<size_t>(place)];
  show_tooltip("Depth " + std::to_string(here.depth) + ": accepted in " + grouped(here.accepted) + " of " +
               grouped(view.rounds) + " passes;\nthe tree had a guess there in " + grouped(here.offered) +
               " of those that came so far.");
}

/// Draws the names and figures of the three parts in their colours, on a second line where there is no room.
void draw_stage_key(const StageTimes& times, float width) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  float x = at.x, middle = at.y + px(8);
  for (const Part& part : parts_of(times)) {
    const std::string value = millisecond_figure(part.ms);
    const float words = text_size(Type::secondary, part.name).x, figure = text_size(Type::mono, value).x;
    if (x > at.x && x + px(22) + words + figure > at.x + width) x = at.x, middle += px(20);
    list->AddRectFilled({x, middle - px(5)}, {x + px(10), middle + px(5)}, part.colour);
    draw_text_middle(list, x + px(16), middle, Type::secondary, colours().text2, part.name);
    draw_text_middle(list, x + px(22) + words, middle, Type::mono, colours().text2, value);
    x += px(22 + 16) + words + figure;
  }
  ImGui::Dummy({width, middle + px(8) - at.y});
}

void draw_stages(const StatisticsView& view) {
  const std::string text = stage_tooltip(view);
  chart_title("Time of a pass", "ms, this pass", text);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  struct Row {
    const char* name;
    const StageTimes* times;
    bool measured;
    std::string sum;
  };
  Row rows[] = {{"measured", view.measured.total() > 0 ? &view.measured : nullptr, true, "\u2013"},
                {"predicted", view.predicted ? &*view.predicted : nullptr, false, "\u2013"}};
  float left = 0, right = 0;  // left and right end of the bars
  double longest = 1e-6;
  for (Row& row : rows) {
    if (row.times) row.sum = milliseconds(row.times->total());
    if (row.times) longest = std::max(longest, row.times->total());
    left = std::max(left, text_size(Type::secondary, row.name).x + px(10));
    right = std::max(right, text_size(Type::mono, row.sum).x + px(10));
  }
  const float width = room();
  ImGui::InvisibleButton("Pass time bars", {std::max(1.0f, width), px(50)});
  tooltip(text.c_str());
  const float scale = std::max(0.0f, width - left - right) / static_cast<float>(longest);
  ImDrawList* list = ImGui::GetWindowDrawList();
  float y = at.y + px(2);
  for (const Row& row : rows) {
    const float middle = y + px(8);
    draw_text_middle(list, at.x, middle, Type::secondary, colours().text2, row.name);
    draw_text_middle(list, at.x + width - text_size(Type::mono, row.sum).x, middle, Type::mono, colours().text2,
                     row.sum);
    if (row.times) draw_stage_bar({at.x + left, y}, *row.times, scale, row.measured);
    y += px(24);
  }
  draw_stage_key(view.measured, width);
}

constexpr float kBoxHeight = 52;

/// Draws a figure in a box, with its name above it.
void draw_box(const char* id, const char* name, const Figure& figure, float width) {
  const Theme& t = colours();
  const ImVec2 a = ImGui::GetCursorScreenPos(), b = {a.x + width, a.y + px(kBoxHeight)};
  ImGui::InvisibleButton(id, {std::max(1.0f, width), px(kBoxHeight)});
  term_tooltip(name, figure.denominator.empty() ? "after the first pass" : figure.denominator);
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(a, b, t.card, px(6));
  list->AddRect(a, b, t.line, px(6), px(1));
  draw_text_middle(list, a.x + px(10), a.y + px(15), Type::caption, t.text3,
                   elided(Type::caption, name, width - px(14)));
  draw_term_line(list, a.x + px(10), a.x + px(10) + std::min(text_size(Type::caption, name).x, width - px(14)),
                 a.y + px(22));
  draw_text_middle(list, a.x + px(10), a.y + px(34), Type::figure, t.text,
                   figure.text.empty() ? "\u2013" : figure.text);
}

void draw_key_figure(const StatisticsView& view) {
  const Theme& t = colours();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float room = ImGui::GetContentRegionAvail().x, height = px(44);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const std::string rate = view.rounds > 0 ? view.speed.text : "\u2013";
  const float wide = text_size(Type::key_figure, rate).x;
  ImGui::InvisibleButton("Speed figure", {std::max(1.0f, std::min(room, wide + px(52))), height});
  tooltip(view.rounds > 0 ? view.speed.denominator.c_str() : "after the first pass");
  draw_text_middle(list, at.x, at.y + height * 0.5f, Type::key_figure, t.text, rate);
  float base = at.y + height - px(14);
  draw_text_middle(list, at.x + wide + px(8), base, Type::base, t.text2, "tok/s");
  if (view.ratio <= 0) return;
  const std::string plain = speed(view.ar_tokens_per_second), over = "over plain ";
  const float over_width = text_size(Type::base, over).x + text_size(Type::mono, plain).x;
  const float ratio_width = text_size(Type::ratio, view.over_ar.text).x;
  const bool beside = wide + px(52) + ratio_width + px(8) + over_width <= room;
  const float x = beside ? at.x + room - over_width - px(8) - ratio_width : at.x;
  if (beside) {
    ImGui::SameLine(0, 0);
    ImGui::SetCursorScreenPos({x, at.y});
    ImGui::InvisibleButton("Ratio figure", {at.x + room - x, height});
  } else {  // a line of its own in a narrow panel
    ImGui::InvisibleButton("Ratio figure", {std::max(1.0f, room), px(28)});
    base += height - px(10);
  }
  tooltip(view.over_ar.denominator.c_str());
  draw_text_middle(list, x, base - px(3), Type::ratio, view.ratio >= 1 ? t.accent_text : t.bonus_text,
                   view.over_ar.text);
  draw_text_middle(list, x + ratio_width + px(8), base, Type::base, t.text2, over);
  draw_text_middle(list, x + ratio_width + px(8) + text_size(Type::base, over).x, base, Type::mono, t.text2, plain);
}

struct BoxSpec {
  const char *id, *name;
  const Figure* figure;
  float width = 0;  // needed by the box
};

/// Draws the boxes in one row if all fit, else in several; each row fills the width.
void draw_boxes(const StatisticsView& view) {
  const float room = ImGui::GetContentRegionAvail().x, gap = px(8);
  std::vector<BoxSpec> boxes = {{"Tokens per pass", "Tokens per pass", &view.tau},
                                {"Guesses used", "Guesses used", &view.node_use},
                                {"Pass time mean", "Pass time", &view.round_time}};
  for (BoxSpec& box : boxes)
    box.width = std::max(text_size(Type::caption, box.name).x, text_size(Type::figure, box.figure->text).x) + px(20);
  for (size_t first = 0, end = 0; first < boxes.size(); first = end) {
    float taken = 0;
    for (end = first; end < boxes.size(); ++end) {
      const float more = boxes[end].width + (end > first ? gap : 0);
      if (end > first && taken + more > room) break;
      taken += more;
    }
    const float spare = std::max(0.0f, room - taken) / static_cast<float>(end - first);
    for (size_t i = first; i < end; ++i) {
      if (i > first) ImGui::SameLine(0, gap);
      draw_box(boxes[i].id, boxes[i].name, *boxes[i].figure, std::floor(std::min(room, boxes[i].width + spare)));
    }
    if (end < boxes.size()) ImGui::Dummy({0, gap});
  }
}

void draw_verdict(const StatisticsView& view) {
  if (view.verdict == VerdictKind::none) return;
  const Theme& t = colours();
  const Colour bar = view.verdict == VerdictKind::loses  ? t.bonus
                     : view.verdict == VerdictKind::pays ? t.accent
                                                         : t.ctl;
  std::string more = view.cut;
  if (!view.missing.empty()) more += (more.empty() ? "" : " ") + view.missing;
  bar_card("Verdict", ImGui::GetContentRegionAvail().x, bar, view.verdict_title, view.verdict_detail, more);
}

/// Draws the result of the check that plain decoding writes the same text, if it was run for the shown reply.
void draw_ar_check(const ViewModel& view) {
  const ArCheck& check = view.checks.check;
  const bool same = check.phase == ArCheck::Phase::same;
  if ((!same && check.phase != ArCheck::Phase::different) || !view.own_chat()) return;
  const RoundLog& log = *view.rounds.log;
  const size_t shown = view.rounds.playback.shown;
  if (shown >= log.rounds() || log.replies()[log.summary(shown).reply].message != check.message) return;
  ImGui::Dummy({0, px(8)});
  bar_card("Plain check", ImGui::GetContentRegionAvail().x, same ? colours().accent : colours().rejected,
           same ? "Same text as plain decoding" : "Not the text of plain decoding", check_words(check) + ".", "");
}

}  // namespace

void StatisticsPanel::update(const ViewModel& view) {
  const RoundsState& rounds = view.rounds;
  const size_t shown = rounds.playback.shown;
  const TrailPoint& point = trail_.up_to(rounds.log, shown, StatisticsTrail::kRoundsAFrame);
  if (!trail_.done()) keep_drawing(0.1);
  const auto record = rounds.shown();
  DecodeMode mode = DecodeMode::ar;
  if (shown < rounds.log->rounds()) mode = rounds.log->replies()[rounds.log->summary(shown).reply].mode;
  view_ = statistics_view(point, record.get(), mode, ar_reference(view), view.chat.now_ms);
  speed_ = point.rounds.rounds() == 0 ? SpeedSeries{} : speed_series(*rounds.log, trail_.first(), shown);
}

void StatisticsPanel::refresh_figures(const ViewModel& view) {
  const double now = ImGui::GetTime();
  const bool streams = view.busy() && view.rounds.playback.state == PlayState::following;
  if (streams && refreshed_ >= 0 && now - refreshed_ < kFigureInterval && now >= refreshed_) return;
  figures_ = view_;
  refreshed_ = now;
  ++refreshes_;
}

void StatisticsPanel::draw(const ViewModel& view, CommandSink&) {
  update(view);
  refresh_figures(view);
  const PanelBody body("Live body");
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  const auto gap = [](float height) { ImGui::Dummy({0, px(height)}); };
  draw_key_figure(figures_);
  gap(8);
  draw_boxes(figures_);
  gap(10);
  draw_speed(speed_, view_);
  gap(10);
  draw_histogram(view_);
  gap(10);
  draw_depths(view_);
  gap(10);
  draw_stages(view_);
  gap(10);
  for (const SourceFigure& each : view_.by_source) pair_line(each.name, each.figure.text, each.figure.denominator);
  if (!view_.by_source.empty()) gap(8);
  if (!view_.oracle.text.empty()) {
    pair_line("Best afterwards", view_.oracle.text, view_.oracle.denominator);
    gap(8);
  }
  draw_verdict(view_);
  draw_ar_check(view);
  ImGui::PopStyleVar();
}

}  // namespace canopy::app
