#include "app/charts/statistics_view.h"

#include <algorithm>

#include "app/base/figures.h"
#include "engine/trace/round_statistics.h"

namespace canopy::app {
namespace {

constexpr double kClearly = 0.02;  // least difference of a ratio from 1 that is called one

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
                 "Had each round had the width that was best in hindsight, plain decoding at its forecast included: " +
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

/// age: that of `plain`, as ar_age() says it.
void add_verdict(const RoundStatistics& s, DecodeMode mode, const ArReference& plain, const std::string& age,
                 StatisticsView& view) {
  if (mode == DecodeMode::ar || s.drafted() == 0) {
    view.verdict = VerdictKind::ar;
    view.verdict_title = mode == DecodeMode::ar ? "Plain decoding" : "Nothing was drafted yet";
    view.verdict_detail = mode == DecodeMode::ar
                              ? "Mode AR makes no drafts. Choose Tree or Adaptive to see whether they pay."
                              : "Every round so far was plain.";
    return;
  }
  if (s.rounds() < kEnoughRounds) return;
  if (!enough_drafted(s)) {
    view.verdict = VerdictKind::ar;
    view.verdict_title = "Too few drafts to compare";
    view.verdict_detail = grouped(s.of(DecodeMode::chain).rounds + s.of(DecodeMode::tree).rounds) + " of " +
                          rounds_word(s.rounds()) + " had one.";
    return;
  }
  if (view.ratio <= 0) return;
  const std::string speeds =
      speed(view.tokens_per_second) + " tok/s measured; AR " + speed(plain.tokens_per_second) + " tok/s, " + age + ".";
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

constexpr double kWeight = 0.2;  // of the newest round in the moving mean

}  // namespace

StageTimes stage_times(const RoundTimes& times) {
  return {times.draft, times.verify, times.build + times.walk + times.commit + times.other};
}

StatisticsView statistics_view(const TrailPoint& point, const RoundRecord* shown, DecodeMode mode,
                               const ArReference& plain, int64_t now_ms) {
  StatisticsView view;
  const RoundStatistics& s = point.rounds;
  view.rounds = s.rounds();
  if (point.missing > 0) view.missing = rounds_word(point.missing) + " were let go for memory and are not counted.";
  if (view.rounds == 0) return view;
  view.tokens_per_second = s.tokens_per_second();
  view.ar_tokens_per_second = plain.tokens_per_second;
  add_figures(s, point.oracle, view);
  if (plain.known() && mode != DecodeMode::ar && enough_drafted(s)) {
    view.ratio = view.tokens_per_second / plain.tokens_per_second;
    view.over_ar = {times(view.ratio), speed(view.tokens_per_second) + " tok/s measured over " +
                                           speed(plain.tokens_per_second) + " tok/s of plain decoding, " +
                                           ar_origin(plain, now_ms) + "."};
  }
  if (plain.tokens_per_second > point.oracle.tokens_per_second() && !view.oracle.text.empty())
    view.oracle = {speed(plain.tokens_per_second) + " tok/s",
                   "Plain decoding throughout: no widths for these drafts would have been faster. " +
                       std::string(plain.measured() ? "Measured" : "Predicted") + "."};
  add_histogram(s, view);
  add_depths(s, view);
  if (shown != nullptr) add_shown(*shown, view);
  add_verdict(s, mode, plain, ar_age(plain, now_ms), view);
  return view;
}

SpeedSeries speed_series(const RoundLog& log, size_t first, size_t last, size_t most) {
  SpeedSeries series;
  last = std::min(last, log.rounds() == 0 ? 0 : log.rounds() - 1);
  if (log.rounds() == 0 || first > last || most == 0) return series;
  const size_t rounds = last - first + 1;
  series.rounds_a_point = (rounds + most - 1) / most;
  double mean = 0, tokens = 0, ms = 0;
  bool begun = false;
  for (size_t i = 0; i < rounds; ++i) {
    const RoundSummary& round = log.summary(first + i);
    const double took = round.ms.total();
    if (took > 0) {
      const double speed = 1000.0 * round.emitted / took;
      mean = begun ? mean + kWeight * (speed - mean) : speed;
      begun = true;
    }
    tokens += round.emitted;
    ms += took;
    if ((i + 1) % series.rounds_a_point != 0 && i + 1 != rounds) continue;
    if (ms > 0) {
      series.round.push_back(static_cast<double>(i + 1));
      series.speed.push_back(1000 * tokens / ms);
      series.mean.push_back(mean);
      series.highest = std::max(series.highest, series.speed.back());
    }
    tokens = ms = 0;
  }
  return series;
}

std::vector<RoundResidual> round_residuals(const RoundLog& log, size_t first, size_t last, size_t most) {
  std::vector<RoundResidual> residuals;
  if (log.rounds() == 0) return residuals;
  last = std::min(last, log.rounds() - 1);
  for (size_t i = last + 1; i-- > first && residuals.size() < most;) {
    const RoundSummary& round = log.summary(i);
    if (round.predicted.verify <= 0 || round.ms.verify <= 0) continue;
    residuals.push_back({static_cast<double>(round.width), round.ms.verify / round.predicted.verify - 1});
  }
  return residuals;
}

}  // namespace canopy::app
