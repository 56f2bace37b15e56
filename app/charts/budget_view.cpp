#include "app/charts/budget_view.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "app/base/figures.h"
#include "engine/trace/round_record.h"
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
  const std::string passed_over = "S(N) is highest at " + budget_of(best) + " (" + speed_of(best) + "), but ";
  if (const auto speeds = speeds_that_favour(chosen, widths)) {
    return passed_over + budget_of(chosen) +
           " leaves the most tokens above what its time brings at the usual speed, which is the long-run goal.";
  }
  const bool longer = best.ms > chosen.ms;
  return passed_over +
         (longer ? "its round would take " + milliseconds(best.ms) + ", beyond the bound on time lost to drafts."
                 : "it was passed over by the rule in force.");
}

std::string why_ar(const RoundRecord& record, const WidthSpeed& best) {
  if (record.mode == DecodeMode::ar) return "AR was asked for; no draft is made.";
  return "S(N) is highest at " + budget_of(best) + " (" + speed_of(best) +
         "), but within the bound on time lost to drafts, and over the long run, plain decoding was taken.";
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
    check.why_not = "Mode Chain: always a chain, whatever S(N) says of trees.";
  } else if (record.mode == DecodeMode::tree) {
    check.why_not = check.loses ? "AR promises more than any N." : "S(N) is highest at " + budget_of(best) + ".";
  } else if (record.shape == DecodeMode::chain) {
    check.why_not = "A chain of " + grouped(record.width - 1) +
                    " was taken: chains compete by what they were seen to bring, which S(N) of trees leaves out.";
  } else if (is_plain) {
    check.why_not = why_ar(record, best);
  } else if (check.loses) {
    check.why_not = "Plain decoding promises more; this draft was made to see whether drafting pays by now.";
  } else if (chosen == widths.end()) {
    check.why_not = "N was set by a rule that does not look at S(N).";
  } else {
    check.why_not = why_not_widest_speed(*chosen, best, widths);
  }
  return check;
}

constexpr uint32_t kShortestAxis = 128;
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
  return "N " + budget_of(*next) + " would add " + milliseconds(std::max(0.0, next->ms - here.ms)) + " for " +
         fixed(std::max(0.0, next->expected - here.expected), 2) + " tokens.";
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
    check.why_not = "It was chosen against AR at " + speed(forecast) +
                    " tok/s, the forecast for this round; measured, " + "AR has " + speed(shown) + ".";
  return check;
}

std::string title_of(const RoundRecord& record) {
  if (record.shape == DecodeMode::ar) return "Why AR";
  const std::string budget = grouped(record.width - 1);
  return record.mode == DecodeMode::adaptive ? "Why " + budget
         : record.mode == DecodeMode::chain  ? "A chain of " + budget
                                             : budget + " was set";
}

std::string reason_of(const RoundRecord& record) {
  if (!record.choice.reason.empty()) return record.choice.reason;
  switch (record.mode) {
    case DecodeMode::ar: return "AR was asked for; no draft is made.";
    case DecodeMode::chain: return "Mode Chain drafts as deep as the drafter goes; nothing is chosen.";
    default: return "N was set, not chosen.";
  }
}

std::vector<std::string> limits_of(const WidthLimits& limits) {
  std::vector<std::string> words;
  const auto add = [&](const char* name, uint32_t value) {
    if (value != WidthLimits::none) words.push_back(name + (" " + grouped(value)));
  };
  add("nodes", limits.budget);
  add("depth", limits.depth);
  add("rows", limits.rows);
  add("tokens left", limits.tokens_left);
  add("context left", limits.context_left);
  return words;
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
  view.axis_end = std::max(kShortestAxis, 2 * (record.width - 1));

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
  view.reason = reason_of(record);
  view.next_row = next_row(view.predicted, record.shape == DecodeMode::tree ? record.width : 0);
  view.limits = limits_of(record.choice.limits);
  return view;
}

std::string verdict(const BudgetView& view) {
  if (view.predicted.empty() || view.ar_tokens_per_second <= 0) return {};
  return view.loses ? "Speculation loses here: use AR" : "Speculation pays here";
}

}  // namespace canopy::app
