#include "app/charts/choice_check.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "app/charts/budget_view.h"
#include "app/look/figures.h"

namespace canopy::app {
namespace {

// Forecasts go through a file as doubles, but are compared with what was recomputed from their parts.
constexpr double kSame = 1e-9;

/// The widths the choice was among: within the limits, and such as ever occur.
std::vector<WidthSpeed> eligible(const std::vector<WidthSpeed>& curve, const WidthLimits& limits) {
  std::vector<WidthSpeed> widths;
  for (const WidthSpeed& each : curve) {
    if (each.width < 2 || each.width > limits.widest()) continue;
    if (may_occur(each.width, curve.back().width)) widths.push_back(each);
  }
  return widths;
}

std::string speed_of(const WidthSpeed& speed) {
  return whole(speed.tokens_per_second()) + " tok/s";
}

/// The usual speeds, in tokens a millisecond, at which `chosen` has the most tokens above what its time would bring.
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
  const std::string passed_over = "S(N) is highest at " + grouped(best.width) + " (" + speed_of(best) + "), but ";
  if (const auto speeds = speeds_that_favour(chosen, widths)) {
    return passed_over + grouped(chosen.width) +
           " leaves the most tokens above what its time brings at the usual speed, which is the long-run goal.";
  }
  const bool longer = best.ms > chosen.ms;
  return passed_over +
         (longer ? "its round would take " + milliseconds(best.ms) + ", beyond the bound on time lost to drafts."
                 : "it was passed over by the rule in force.");
}

std::string why_plain(const RoundRecord& record, const WidthSpeed& best) {
  if (record.mode == DecodeMode::ar) return "AR was asked for; no draft is made.";
  return "S(N) is highest at " + grouped(best.width) + " (" + speed_of(best) +
         "), but within the bound on time lost to drafts, and over the long run, plain decoding was taken.";
}

}  // namespace

ChoiceCheck check_choice(const RoundRecord& record, const std::vector<WidthSpeed>& curve,
                         double plain_tokens_per_second) {
  ChoiceCheck check;
  const std::vector<WidthSpeed> widths = eligible(curve, record.choice.limits);
  if (widths.empty()) {
    check.best = plain_tokens_per_second > 0 ? 1 : 0;
    check.is_argmax = check.best == 1 && record.shape == DecodeMode::ar;
    return check;
  }
  const WidthSpeed best = *std::ranges::max_element(widths, {}, &WidthSpeed::tokens_per_second);
  check.loses = best.tokens_per_second() <= plain_tokens_per_second;
  check.best = check.loses ? 1 : best.width;
  const bool is_plain = record.shape == DecodeMode::ar;
  const uint32_t ran = is_plain ? 1 : record.width;
  if (record.shape != DecodeMode::chain && ran == check.best) {
    check.is_argmax = true;
    return check;
  }
  const auto chosen = std::ranges::find(widths, ran, &WidthSpeed::width);
  // Two widths may promise the same.
  if (record.shape == DecodeMode::tree && chosen != widths.end() && !check.loses &&
      chosen->tokens_per_second() >= best.tokens_per_second() * (1 - kSame)) {
    check.best = ran;
    check.is_argmax = true;
    return check;
  }
  if (record.mode == DecodeMode::chain) {
    check.why_not = "Mode Chain: always a chain, whatever S(N) says of trees.";
  } else if (record.mode == DecodeMode::tree) {
    check.why_not = "Mode Tree: the width is set, not chosen; S(N) is highest at " +
                    (check.loses ? std::string("AR") : grouped(best.width)) + ".";
  } else if (record.shape == DecodeMode::chain) {
    check.why_not = "A chain of " + grouped(record.width) +
                    " rows was taken: chains compete by what they were seen to bring, which S(N) of trees leaves out.";
  } else if (is_plain) {
    check.why_not = why_plain(record, best);
  } else if (check.loses) {
    check.why_not = "Plain decoding promises more; this draft was made to see whether drafting pays by now.";
  } else if (chosen == widths.end()) {
    check.why_not = "The width was set by a rule that does not look at S(N).";
  } else {
    check.why_not = why_not_widest_speed(*chosen, best, widths);
  }
  return check;
}

}  // namespace canopy::app
