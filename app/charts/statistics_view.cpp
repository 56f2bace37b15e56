#include "app/charts/statistics_view.h"

#include <algorithm>

#include "app/base/figures.h"
#include "engine/trace/round_statistics.h"

namespace canopy::app {
namespace {

constexpr uint64_t kEnoughRounds = 8;  // for a verdict
constexpr double kClearly = 0.02;      // of a ratio to 1

std::string rounds_word(uint64_t rounds) {
  return counted(rounds, "round", "rounds");
}

void add_figures(const RoundStatistics& s, const OracleTally& oracle, StatisticsView& view) {
  view.speed = {speed(s.tokens_per_second()), grouped(s.emitted()) + " tokens in " + milliseconds(s.ms().total()) +
                                                  " of " + rounds_word(s.rounds()) +
                                                  ", measured; reading the prompt is left out."};
  view.tau = {fixed(s.tau(), 2), "\u03c4: " + grouped(s.emitted()) + " tokens over " + rounds_word(s.rounds()) +
                                     ", the target's own included."};
  view.node_use = {s.drafted() > 0 ? percent(s.node_utilisation()) : "\u2013",
                   s.drafted() > 0 ? grouped(s.accepted()) + " accepted of " + grouped(s.drafted()) +
                                         " drafted nodes that were verified."
                                   : "Nothing was drafted."};
  const double rounds = static_cast<double>(std::max<uint64_t>(1, s.rounds()));
  view.round_time = {milliseconds(s.ms().total() / rounds),
                     "Mean of " + rounds_word(s.rounds()) + " by the wall clock, all stages included."};
  if (oracle.rounds == 0) return;
  view.oracle = {speed(oracle.tokens_per_second()) + " tok/s",
                 "Had each round had the width that was best in hindsight, plain decoding included: " +
                     rounds_word(oracle.rounds) + ", which really ran at " + speed(oracle.real_tokens_per_second()) +
                     " tok/s. Tokens are measured, times of widths that did not run are predicted."};
}

void add_histogram(const RoundStatistics& s, StatisticsView& view) {
  if (s.accepted_histogram().empty()) return;
  view.histogram.assign(s.accepted_histogram().rbegin()->first + 1, 0);
  for (const auto& [accepted, rounds] : s.accepted_histogram()) view.histogram[accepted] = rounds;
  view.mean_accepted = static_cast<double>(s.accepted()) / static_cast<double>(std::max<uint64_t>(1, s.rounds()));
}

void add_depths(const RoundStatistics& s, StatisticsView& view) {
  for (size_t i = 0; i < s.by_depth().size(); ++i) {
    const DepthCounts& counts = s.by_depth()[i];
    const double share = static_cast<double>(counts.accepted) / static_cast<double>(std::max<uint64_t>(1, s.rounds()));
    view.by_depth.push_back({static_cast<uint32_t>(i + 1), counts.accepted, counts.offered, share});
  }
}

void add_shown(const RoundRecord& shown, StatisticsView& view) {
  const DraftedPart part = drafted_part(shown);
  view.shown_accepted = part.tokens;
  view.measured = stage_times(shown.ms);
  if (shown.predicted.total() > 0) view.predicted = stage_times(shown.predicted);
  if (part.cut && part.tokens > 0)
    view.cut = "The reply ended inside this round's tree: its " + counted(part.tokens, "token counts", "tokens count") +
               ", what the tree had right beyond them does not.";
}

void add_verdict(const RoundStatistics& s, DecodeMode mode, const PlainSpeed& plain, StatisticsView& view) {
  if (mode == DecodeMode::ar || s.drafted() == 0) {
    view.verdict = VerdictKind::plain;
    view.verdict_title = mode == DecodeMode::ar ? "Plain decoding" : "Nothing was drafted yet";
    view.verdict_detail = mode == DecodeMode::ar
                              ? "Mode AR makes no drafts. Choose Tree or Adaptive to see whether they pay."
                              : "Every round so far was plain.";
    return;
  }
  if (view.ratio <= 0 || s.rounds() < kEnoughRounds) return;
  const std::string speeds = speed(view.tokens_per_second) + " tok/s measured, AR " + speed(plain.tokens_per_second) +
                             " tok/s " + plain.origin + ".";
  if (view.ratio > 1 + kClearly) {
    view.verdict = VerdictKind::pays;
    view.verdict_title = "Speculation pays here";
  } else if (view.ratio < 1 - kClearly) {
    view.verdict = VerdictKind::loses;
    view.verdict_title = "Speculation loses here: use AR";
  } else {
    view.verdict = VerdictKind::even;
    view.verdict_title = "Speculation breaks even here";
  }
  view.verdict_detail = speeds;
}

}  // namespace

StageTimes stage_times(const RoundTimes& times) {
  return {times.draft, times.verify, times.build + times.walk + times.commit + times.other};
}

StatisticsView statistics_view(const TrailPoint& point, const RoundRecord* shown, DecodeMode mode,
                               const PlainSpeed& plain) {
  StatisticsView view;
  const RoundStatistics& s = point.rounds;
  view.rounds = s.rounds();
  if (point.missing > 0) view.missing = rounds_word(point.missing) + " were let go for memory and are not counted.";
  if (view.rounds == 0) return view;
  view.tokens_per_second = s.tokens_per_second();
  view.plain_tokens_per_second = plain.tokens_per_second;
  add_figures(s, point.oracle, view);
  if (plain.tokens_per_second > 0) {
    view.ratio = view.tokens_per_second / plain.tokens_per_second;
    view.over_plain = {times(view.ratio), speed(view.tokens_per_second) + " tok/s measured over " +
                                              speed(plain.tokens_per_second) + " tok/s of plain decoding, " +
                                              plain.origin + "."};
  }
  add_histogram(s, view);
  add_depths(s, view);
  if (shown != nullptr) add_shown(*shown, view);
  add_verdict(s, mode, plain, view);
  return view;
}

}  // namespace canopy::app
