#include "app/charts/budget_panel.h"

#include <imgui.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "app/charts/chart_frame.h"
#include "app/state/words.h"
#include "app/ui/widgets.h"
#include "engine/trace/round_statistics.h"

namespace canopy::app {
namespace {

/// Whether a round had the width with the highest S(N) shown, and if not, why not.
struct ChoiceCheck {
  uint32_t best = 0;       // width of the highest S(N) within the limits, 1 for plain decoding; 0: not known
  bool is_argmax = false;  // the round had the best width
  bool loses = false;      // no width above 1 promised more than plain decoding
  // Why the round had another width, as a sentence; empty where it had the best, and where nothing is known.
  std::string why_not;
};

// Relative difference up to which two speeds count as the same: recorded forecasts are compared with values computed
// here from their parts.
constexpr double kSame = 1e-9;

/// The widths that the choice was made among: within the limits, and possible for a pass.
std::vector<WidthSpeed> eligible(const std::vector<WidthSpeed>& curve, const WidthLimits& limits) {
  std::vector<WidthSpeed> widths;
  for (const WidthSpeed& each : curve) {
    if (each.width < 2 || each.width > limits.widest()) continue;
    if (may_occur(each.width, curve.back().width)) widths.push_back(each);
  }
  return widths;
}

std::string budget_of(const WidthSpeed& speed) {
  return grouped(speed.budget());
}

std::string speed_of(const WidthSpeed& speed) {
  return whole(speed.tokens_per_second()) + " tok/s";
}

/// The range of usual speeds, in tokens per millisecond, with which `chosen` is the best choice: that with the most
/// expected tokens above what its time would bring at the usual speed.
struct Speeds {
  double low = 0, high = std::numeric_limits<double>::infinity();
};
std::optional<Speeds> speeds_that_favour(const WidthSpeed& chosen, const std::vector<WidthSpeed>& others) {
  Speeds speeds;
  for (const WidthSpeed& other : others) {
    const double more_ms = other.ms - chosen.ms, more_tokens = other.expected - chosen.expected;
    if (more_ms > 0) speeds.low = std::max(speeds.low, more_tokens / more_ms);
    if (more_ms < 0) speeds.high = std::min(speeds.high, more_tokens / more_ms);
    if (more_ms == 0 && more_tokens > kSame) return std::nullopt;
  }
  if (speeds.low > speeds.high * (1 + kSame)) return std::nullopt;
  return speeds;
}

std::string why_not_widest_speed(const WidthSpeed& chosen, const WidthSpeed& best,
                                 const std::vector<WidthSpeed>& widths) {
  const std::string passed_over = "Expected best was " + budget_of(best) + " (" + speed_of(best) + "), but ";
  if (const auto speeds = speeds_that_favour(chosen, widths)) {
    return passed_over + budget_of(chosen) +
           " leaves the most tokens above what its time brings at the usual speed, which is the long-run goal.";
  }
  const bool longer = best.ms > chosen.ms;
  return passed_over +
         (longer ? "its pass would take " + milliseconds(best.ms) + ", beyond the bound on time lost to guesses."
                 : "it was passed over by the rule in force.");
}

constexpr const char* kPlainAlways = "Plain decoding in every pass: no guesses are made.";

std::string why_ar(const RoundRecord& record, const WidthSpeed& best) {
  if (record.mode == DecodeMode::ar) return kPlainAlways;
  return "Expected best was " + budget_of(best) + " (" + speed_of(best) +
         "), but within the bound on time lost to guesses, and over the long run, plain decoding was chosen.";
}

/// Compares the width of a round with the best one of the curve. curve: S(N) as shown, ascending widths.
/// ar_tokens_per_second: 0 where it is not known.
ChoiceCheck check_choice(const RoundRecord& record, const std::vector<WidthSpeed>& curve, double ar_tokens_per_second) {
  ChoiceCheck check;
  const std::vector<WidthSpeed> widths = eligible(curve, record.choice.limits);
  if (widths.empty()) {
    check.best = ar_tokens_per_second > 0 ? 1 : 0;
    check.is_argmax = check.best == 1 && record.shape == DecodeMode::ar;
    return check;
  }
  const WidthSpeed best = *std::ranges::max_element(widths, {}, &WidthSpeed::tokens_per_second);
  check.loses = best.tokens_per_second() <= ar_tokens_per_second;
  check.best = check.loses ? 1 : best.width;
  const bool is_plain = record.shape == DecodeMode::ar;
  const uint32_t ran = is_plain ? 1 : record.width;
  if (record.shape != DecodeMode::chain && ran == check.best) {
    check.is_argmax = true;
    return check;
  }
  const auto chosen = std::ranges::find(widths, ran, &WidthSpeed::width);
  // Not ==, since two widths may promise the same speed.
  if (record.shape == DecodeMode::tree && chosen != widths.end() && !check.loses &&
      chosen->tokens_per_second() >= best.tokens_per_second() * (1 - kSame)) {
    check.best = ran;
    check.is_argmax = true;
    return check;
  }
  if (record.mode == DecodeMode::chain) {
    check.why_not = "Mode Chain: always a chain, whatever is expected of trees.";
  } else if (record.mode == DecodeMode::tree) {
    check.why_not = check.loses ? "Expected best was plain decoding." : "Expected best was " + budget_of(best) + ".";
  } else if (record.shape == DecodeMode::chain) {
    check.why_not = "A chain of " + grouped(record.width - 1) +
                    " was taken: chains compete by what they were seen to bring, which the curve of trees leaves out.";
  } else if (is_plain) {
    check.why_not = why_ar(record, best);
  } else if (check.loses) {
    check.why_not = "Expected best was plain decoding; these guesses were made to see whether they pay by now.";
  } else if (chosen == widths.end()) {
    check.why_not = "It was chosen by a rule that does not look at this curve.";
  } else {
    check.why_not = why_not_widest_speed(*chosen, best, widths);
  }
  return check;
}

constexpr uint32_t kShortestAxis = 16;
constexpr size_t kRows = 5;

/// The forecasts of all widths, as the engine recorded them.
std::vector<WidthSpeed> recorded_forecast(const RoundRecord& record) {
  std::vector<WidthSpeed> curve;
  for (const WidthForecast& each : record.choice.candidates) curve.push_back({each.width, each.expected, each.ms});
  return curve;
}

/// Forecasts computed here, for rounds of a fixed width: the expected tokens of this tree and the times of the table.
/// The backlog is not recorded; it is taken as the number of emitted tokens, which is about right.
std::vector<WidthSpeed> worked_out_forecast(const RoundRecord& record, const CostTable& table) {
  std::vector<WidthSpeed> curve;
  const auto backlog = static_cast<uint32_t>(std::max<size_t>(1, record.emitted.size()));
  const double draft = table.draft_ms(backlog, record.context);
  double expected = 0;
  for (size_t i = 0; i < record.nodes.size(); ++i) {
    const auto width = static_cast<uint32_t>(i + 1);
    expected += i == 0 ? 1 : std::exp(record.nodes[i].node.score);
    curve.push_back({width, expected, draft + table.verify_ms(width, record.context) + table.other_ms(width)});
  }
  return curve;
}

/// Predicted milliseconds of a round of this width, interpolated between the points of the curve.
double ms_at(const std::vector<WidthSpeed>& curve, uint32_t width) {
  const auto above = std::ranges::lower_bound(curve, width, {}, &WidthSpeed::width);
  if (above == curve.end()) return curve.back().ms;
  if (above->width == width || above == curve.begin()) return above->ms;
  const WidthSpeed& below = *(above - 1);
  const double t = static_cast<double>(width - below.width) / static_cast<double>(above->width - below.width);
  return below.ms + (above->ms - below.ms) * t;
}

void add_measured(const RoundRecord& record, BudgetView& view) {
  const double ms = record.ms.total();
  view.realised = {record.width, static_cast<double>(record.emitted.size()), ms};
  if (view.predicted.empty() || record.nodes.empty() || ms <= 0) return;
  const double predicted = ms_at(view.predicted, record.width);
  if (predicted <= 0) return;
  const double correction = ms / predicted;
  const std::vector<uint32_t> accepted = accepted_by_width(record);
  const double emitted = view.realised.expected;
  for (uint32_t width = 1; width <= record.width; ++width) {
    const double tokens = std::min(emitted, accepted[width - 1] + 1.0);
    view.measured.push_back({width, tokens, ms_at(view.predicted, width) * correction});
  }
  view.hindsight = *std::ranges::max_element(view.measured, {}, &WidthSpeed::tokens_per_second);
}

/// The widths of the table's rows, ascending: the chosen one, the best one and, while there are rows left, the widths
/// nearest to 0.75, 1.25, 0.5 and 2 times the chosen one.
std::vector<uint32_t> landmarks(const std::vector<WidthSpeed>& curve, uint32_t chosen, uint32_t best) {
  std::vector<uint32_t> widths;
  const auto add = [&](double wish) {
    const auto nearest = std::ranges::min_element(curve, {}, [&](const WidthSpeed& each) {
      const bool taken = std::ranges::find(widths, each.width) != widths.end() || each.width < 2;
      return taken ? 1e9 : std::abs(each.width - wish);
    });
    if (nearest == curve.end() || nearest->width < 2 || std::ranges::find(widths, nearest->width) != widths.end())
      return;
    widths.push_back(nearest->width);
  };
  const double middle = chosen > 1 ? chosen : best;
  if (middle > 1) add(middle);
  if (best > 1 && best != middle) add(best);
  for (const double wish : {middle * 0.75, middle * 1.25, middle * 0.5, middle * 2}) {
    if (widths.size() < kRows - 1) add(wish);
  }
  std::ranges::sort(widths);
  return widths;
}

void add_rows(const RoundRecord& record, uint32_t best, BudgetView& view) {
  const bool is_plain = record.shape == DecodeMode::ar;
  for (const uint32_t width : landmarks(view.predicted, is_plain ? 1 : record.width, best)) {
    const auto found = std::ranges::find(view.predicted, width, &WidthSpeed::width);
    view.rows.push_back({*found, false, !is_plain && width == record.width, width == best});
  }
  if (view.ar_tokens_per_second > 0)
    view.rows.push_back({{1, 1, 1000 / view.ar_tokens_per_second}, true, is_plain, best == 1});
}

std::string next_row(const std::vector<WidthSpeed>& curve, uint32_t chosen) {
  const auto next = std::ranges::upper_bound(curve, chosen, {}, &WidthSpeed::width);
  if (chosen < 2 || next == curve.end() || next == curve.begin()) return {};
  const WidthSpeed& here = *(next - 1);
  if (here.width != chosen) return {};
  return counted(next->budget(), "guess", "guesses") + " would add " + milliseconds(std::max(0.0, next->ms - here.ms)) +
         " for " + fixed(std::max(0.0, next->expected - here.expected), 2) + " tokens.";
}

/// The speed of plain decoding that the engine reckoned with, in tokens per second; 0 where it had none. costs: may be
/// null.
double forecast_of_plain(const RoundRecord& record, const CostSnapshot* costs) {
  if (record.choice.ar_tokens_per_second > 0 || costs == nullptr) return record.choice.ar_tokens_per_second;
  return 1000 / costs->table.ar_ms(record.context);
}

/// The check against the speed of plain decoding that is shown. A choice that was right by what the engine reckoned
/// with says that this was something else.
ChoiceCheck judged(const RoundRecord& record, const std::vector<WidthSpeed>& curve, double shown, double forecast) {
  ChoiceCheck check = check_choice(record, curve, shown);
  if (check.is_argmax || record.mode != DecodeMode::adaptive || forecast <= 0) return check;
  if (check_choice(record, curve, forecast).is_argmax)
    check.why_not = "It was chosen against plain decoding at " + speed(forecast) +
                    " tok/s, the forecast for this pass; measured, plain has " + speed(shown) + ".";
  return check;
}

std::string title_of(const RoundRecord& record) {
  if (record.shape == DecodeMode::ar) return "Why plain";
  const std::string budget = grouped(record.width - 1);
  return record.mode == DecodeMode::adaptive ? "Why " + budget
         : record.mode == DecodeMode::chain  ? "A chain of " + budget
                                             : "A tree of " + budget;
}

std::string reason_of(const RoundRecord& record) {
  // Recordings say of every fixed size that it was asked for, also where nobody did: it may be what is taken by itself.
  const std::string& reason = record.choice.reason;
  if (!reason.empty() && !reason.ends_with(" asked for.")) return in_plain_words(reason);
  switch (record.mode) {
    case DecodeMode::ar: return kPlainAlways;
    case DecodeMode::chain: return "Mode Chain guesses as far as it can; nothing is chosen.";
    default: return "All passes of this reply have one size; nothing is chosen.";
  }
}

/// The engine's reason with the speed of plain decoding that table and chart have. The engine could only name the one
/// that it expected; two speeds for one thing, side by side, would leave the reader to guess which one counts.
std::string on_one_basis(std::string reason, const ArReference& plain) {
  if (!plain.measured()) return reason;
  constexpr std::string_view kBefore = " tok/s against ", kBehind = " plain";
  if (const size_t at = reason.find(kBefore); at != std::string::npos) {
    const size_t from = at + kBefore.size(),
                 to = std::min(reason.find_first_not_of("0123456789.", from), reason.size());
    if (to > from && std::string_view(reason).substr(to).starts_with(kBehind))
      return reason.substr(0, from) + speed(plain.tokens_per_second) + " plain, as measured" +
             reason.substr(to + kBehind.size());
  }
  // Here the time of a plain pass stands in a sum with others, which stays as it was reckoned.
  if (reason.find("plain pass ") != std::string::npos || reason.ends_with(" ms without)."))
    reason += " Measured, a plain pass takes " + milliseconds(plain.ms()) + ".";
  return reason;
}

std::vector<std::string> limits_of(const WidthLimits& limits) {
  std::vector<std::string> words;
  const auto add = [&](const char* name, uint32_t value) {
    if (value != WidthLimits::none) words.push_back(name + (" " + grouped(value)));
  };
  add("guesses", limits.budget);
  add("depth", limits.depth);
  add("rows", limits.rows);
  add("tokens left", limits.tokens_left);
  add("context left", limits.context_left);
  return words;
}

/// The end of the axis: a power of two, so that it seldom changes from pass to pass, with everything that is marked in
/// its first half.
uint32_t axis_for(const BudgetView& view) {
  uint32_t marked = std::max(view.realised.budget(), view.best_budget.value_or(0));
  if (view.own) marked = std::max(marked, view.own->budget());
  if (view.hindsight) marked = std::max(marked, view.hindsight->budget());
  return std::max(kShortestAxis, std::bit_ceil(2 * marked));
}

}  // namespace

std::vector<uint32_t> accepted_by_width(const RoundRecord& record) {
  std::vector<uint32_t> accepted(record.width, 0);
  const DraftedPart part = drafted_part(record);
  for (uint32_t node = part.last_node; node != 0 && node < record.nodes.size(); node = record.nodes[node].node.parent)
    ++accepted[node];
  for (size_t i = 1; i < accepted.size(); ++i) accepted[i] += accepted[i - 1];
  return accepted;
}

BudgetView budget_view(const RoundRecord& record, const CostSnapshot* costs, const ArReference& plain) {
  BudgetView view;
  view.predicted = recorded_forecast(record);
  view.recorded = !view.predicted.empty();
  const bool is_plain = record.shape == DecodeMode::ar, priced = costs != nullptr && !costs->passes.empty();
  if (priced && !view.recorded && !is_plain) view.predicted = worked_out_forecast(record, costs->table);
  const double forecast = forecast_of_plain(record, priced ? costs : nullptr);
  view.ar_tokens_per_second = plain.known() ? plain.tokens_per_second : forecast;
  add_measured(record, view);
  const auto own = std::ranges::find(view.predicted, record.width, &WidthSpeed::width);
  if (own != view.predicted.end() && !is_plain) view.own = *own;
  if (is_plain && view.ar_tokens_per_second > 0) view.own = WidthSpeed{1, 1, 1000 / view.ar_tokens_per_second};
  const double predicted_ms = view.recorded || is_plain ? record.predicted.total() : view.own ? view.own->ms : 0;
  if (predicted_ms > 0 && view.realised.ms > 0) view.time_error = view.realised.ms / predicted_ms - 1;
  const ChoiceCheck check = judged(record, view.predicted, view.ar_tokens_per_second, forecast);
  if (check.best > 0 && !view.predicted.empty()) view.best_budget = check.best - 1;
  view.is_argmax = check.is_argmax;
  view.not_argmax = check.why_not;
  view.loses = check.loses;
  view.was_chosen = record.mode == DecodeMode::adaptive;
  const WidthSpeed& judged_by = view.own ? *view.own : view.realised;
  view.slower = !is_plain && judged_by.tokens_per_second() < view.ar_tokens_per_second;
  add_rows(record, check.best, view);
  view.title = title_of(record);
  view.reason = on_one_basis(reason_of(record), plain);
  if (plain.measured()) view.plain_forecast = forecast;
  view.next_row = next_row(view.predicted, record.shape == DecodeMode::tree ? record.width : 0);
  view.limits = limits_of(record.choice.limits);
  view.axis_end = axis_for(view);
  return view;
}

std::string verdict(const BudgetView& view) {
  if (view.predicted.empty() || view.ar_tokens_per_second <= 0) return {};
  return view.loses ? "Guessing was not expected to pay" : "Guessing was expected to pay";
}

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
  for (const WidthSpeed& each : view.predicted)
    if (each.budget() <= view.axis_end) most = std::max(most, each.tokens_per_second());
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
  const float words = text_size(Type::caption, "plain ").x, width = words + text_size(Type::mono_caption, figure).x;
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
  draw_text_middle(list, box.left + px(2), middle, Type::caption, colours().text2, "plain ");
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
    labels.push_back({at, px(4.5f), "best afterwards", counted(view.hindsight->budget(), "guess", "guesses"), false});
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
  std::string text = counted(width - 1, "guess", "guesses") + ", a pass of " + counted(width, "row", "rows");
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
  show_tooltip(text);
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
  const double end = view ? view->axis_end : kShortestAxis;
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
      chart.say("after the first pass");
    }
  }
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const char* words = "guesses; the pass has one row more, the root";
  draw_text_middle(ImGui::GetWindowDrawList(), at.x + (size.x - text_size(Type::caption, words).x) * 0.5f,
                   at.y - ImGui::GetStyle().ItemSpacing.y + px(7), Type::caption, colours().text3, words);
}

constexpr float kSide = 290, kLeastSide = 240;  // width of the column of text
constexpr float kTwoColumns = 500;              // below this width, chart and text are in one column
constexpr float kLeastChart = 150;              // least height of the chart
constexpr float kBudgetHeader = 30;
constexpr float kBudgetRow = 18;

void draw_header(float width) {
  const Theme& t = colours();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::InvisibleButton("S(N) title", {std::max(1.0f, width), px(kBudgetHeader)});
  term_tooltip(
      "Speed by guesses",
      "Predicted: expected tokens over predicted time, before the pass. Measured: the tokens this tree cut at so many "
      "guesses would have brought; the time of sizes that did not run is the predicted one, corrected by this pass's "
      "error.");
  const float middle = at.y + px(kBudgetHeader) * 0.5f;
  const std::string title = "Speed by guesses, tok/s";
  draw_text_middle(ImGui::GetWindowDrawList(), at.x, middle, Type::secondary_semibold, t.text, title);
  const char *first = "predicted", *second = "measured, this tree cut there";
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
  draw_cells(ImGui::GetCursorScreenPos(), width, {"guesses", "tokens", "ms", "tok/s"}, Type::caption, t.text3);
  ImGui::Dummy({width, px(kBudgetRow)});
  for (const BudgetRow& row : view.rows) {
    const ImVec2 a = ImGui::GetCursorScreenPos();
    if (row.ran) list->AddRectFilled(a, {a.x + width, a.y + px(kBudgetRow)}, t.accent_bg);
    const std::string name = row.plain ? "plain" : grouped(row.speed.budget());
    draw_cells(a, width,
               {name, fixed(row.speed.expected, 2), fixed(row.speed.ms, 2), speed(row.speed.tokens_per_second())},
               row.ran ? Type::mono_semibold : Type::mono, t.text);
    ImGui::InvisibleButton(("row " + name).c_str(), {std::max(1.0f, width), px(kBudgetRow)});
    if (row.plain && !view.plain_from.empty()) {
      tooltip(("Plain decoding, " + view.plain_from + ".").c_str());
      continue;
    }
    std::string words = row.ran ? "What the pass had." : row.best ? "Expected best." : "";
    words += std::string(words.empty() ? "" : " ") + "Expected tokens and time are predicted.";
    tooltip(words.c_str());
  }
}

void draw_outcome(const BudgetView& view, float width) {
  const std::string tokens = counted(static_cast<uint64_t>(view.realised.expected), "token", "tokens");
  pair_line(
      width, "Realised", tokens + " in " + milliseconds(view.realised.ms),
      "Measured: what the pass emitted, over its wall time. " + speed(view.realised.tokens_per_second()) + " tok/s.");
  pair_line(width, "Time error", view.time_error ? signed_percent(*view.time_error) : "\u2013",
            view.time_error ? "Measured over predicted time of this pass, less 1." : "No time was predicted.");
  if (view.limits.empty()) return;
  std::string all = "What bounds the size and the depth of this pass's tree:";
  for (const std::string& each : view.limits) all += "\n" + each;
  pair_line(width, "Limits", view.limits.size() > 1 ? view.limits[0] + ", " + view.limits[1] : view.limits[0], all);
}

/// "7", "plain decoding"
std::string afterwards_words(const BudgetView& view) {
  const bool plain = view.hindsight->budget() == 0 || view.ar_tokens_per_second >= view.hindsight->tokens_per_second();
  return plain ? "plain decoding" : budget_of(*view.hindsight);
}

/// Draws the verdict and the reason for the width.
void draw_why(const BudgetView& view, float width) {
  const Theme& t = colours();
  const std::string title = view.loses ? verdict(view) : view.title;
  bar_card("Why", width, view.loses || view.slower ? t.bonus : t.accent, title, view.reason, view.not_argmax);
  std::string more = view.is_argmax ? "It was expected best within the limits, plain decoding included." : "";
  if (view.hindsight)
    more += (more.empty() ? "" : " ") + ("Best afterwards, by what was accepted: " + afterwards_words(view) + ".");
  if (!view.next_row.empty()) more += (more.empty() ? "" : " ") + view.next_row;
  if (view.plain_forecast > 0)
    more += " When the pass was chosen, plain was expected at " + speed(view.plain_forecast) + " tok/s.";
  if (!view.recorded && !view.predicted.empty()) more += " The curve is worked out from the tree and the cost table.";
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
    const float words = std::min(px(kSide), std::max(px(kLeastSide), room.x * 0.4f)), chart = room.x - words - px(24);
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
