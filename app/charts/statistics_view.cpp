#include "app/charts/statistics_view.h"

#include <algorithm>
#include <cmath>

#include "app/charts/budget_panel.h"
#include "app/state/words.h"

namespace canopy::app {
namespace {

void count(std::array<ReliabilityTally::Bin, ReliabilityTally::kBins>& bins, double log_probability, bool hit) {
  const double probability = std::exp(std::min(0.0, log_probability));
  if (!std::isfinite(probability)) return;
  const auto place = static_cast<size_t>(probability * ReliabilityTally::kBins);
  ReliabilityTally::Bin& bin = bins[std::min(place, ReliabilityTally::kBins - 1)];
  ++bin.nodes;
  bin.hits += hit ? 1 : 0;
  bin.probabilities += probability;
}

}  // namespace

void OracleTally::add(const RoundRecord& record) {
  const BudgetView view = budget_view(record, nullptr);
  WidthSpeed best = view.realised;
  if (view.hindsight && view.hindsight->tokens_per_second() > best.tokens_per_second()) best = *view.hindsight;
  const double plain = view.ar_tokens_per_second;
  if (record.shape != DecodeMode::ar && plain > best.tokens_per_second()) best = {1, 1, 1000 / plain};
  if (best.ms <= 0) return;
  ++rounds;
  tokens += best.expected;
  ms += best.ms;
  real_tokens += view.realised.expected;
  real_ms += view.realised.ms;
}

void ReliabilityTally::add(const RoundRecord& record) {
  if (record.nodes.size() < 2) return;
  const DraftedPart part = drafted_part(record);
  // Where the reply ended inside the tree, it is not known which nodes would have been right.
  if (part.cut) return;
  std::vector<bool> hit(record.nodes.size(), false);
  for (uint32_t node = part.last_node; node < record.nodes.size(); node = record.nodes[node].node.parent)
    hit[node] = true;
  std::vector<double> log_q(record.nodes.size(), 0);
  for (size_t i = 1; i < record.nodes.size(); ++i) {
    const TreeNode& node = record.nodes[i].node;
    if (node.parent >= i) return;
    log_q[i] = log_q[node.parent] + node.log_q;
    // Where the text had a say, the record has the probabilities of both together, and not the drafter's own.
    if (record.match == 0) count(raw_, log_q[i], hit[i]);
    count(calibrated_, node.score, hit[i]);
    ++nodes_;
  }
}

double ReliabilityTally::error(const std::array<Bin, kBins>& bins) {
  double sum = 0;
  uint64_t nodes = 0;
  for (const Bin& bin : bins) {
    sum += std::abs(bin.predicted() - bin.observed()) * static_cast<double>(bin.nodes);
    nodes += bin.nodes;
  }
  return nodes > 0 ? sum / static_cast<double>(nodes) : 0;
}

void TrailPoint::add(const RoundRecord* record) {
  // A record without its tree cannot be counted: it would look as if every draft had been rejected.
  if (record == nullptr || (record->shape != DecodeMode::ar && record->nodes.empty())) {
    ++missing;
    return;
  }
  rounds.add(*record);
  oracle.add(*record);
  reliability.add(*record);
}

const TrailPoint& StatisticsTrail::up_to(const std::shared_ptr<RoundLog>& log, size_t round, size_t most) {
  const bool exists = log && round < log->rounds();
  size_t first = 0;
  if (exists) first = log->first_of_reply(round);
  if (log != log_ || first != first_ || kept_.empty()) start(log, first);
  done_ = true;
  if (!exists) {
    start(log, 0);
    return answer_;
  }
  advance(round - first_ + 1, most);
  return answer_;
}

void StatisticsTrail::start(const std::shared_ptr<RoundLog>& log, size_t first) {
  log_ = log;
  first_ = first;
  kept_.assign(1, {});
  answer_ = {};
  counted_ = 0;
}

void StatisticsTrail::advance(size_t rounds, size_t most) {
  const size_t kept = std::min(kept_.size() - 1, rounds / kStride);
  // Going back, or far ahead, starts from the nearest copy.
  if (rounds < counted_ || kept * kStride > counted_) {
    answer_ = kept_[kept];
    counted_ = kept * kStride;
  }
  for (size_t read = 0; counted_ < rounds; ++read) {
    if (read >= most) {
      done_ = false;
      return;
    }
    answer_.add(log_->round(first_ + counted_).get());
    ++reads_;
    ++counted_;
    if (counted_ == kept_.size() * kStride) kept_.push_back(answer_);
  }
}

namespace {

constexpr double kClearly = 0.02;  // least difference of a ratio from 1 that is called one

std::string rounds_word(uint64_t rounds) {
  return counted(rounds, "pass", "passes");
}

void add_figures(const RoundStatistics& s, const OracleTally& oracle, StatisticsView& view) {
  view.speed = {speed(s.tokens_per_second()), grouped(s.emitted()) + " tokens in " + milliseconds(s.ms().total()) +
                                                  " of " + rounds_word(s.rounds()) +
                                                  ", measured; reading the prompt is left out."};
  view.tau = {fixed(s.tau(), 2), "\u03c4: " + grouped(s.emitted()) + " tokens over " + rounds_word(s.rounds()) +
                                     ", the big model's own included."};
  view.node_use = {s.drafted() > 0 ? percent(s.node_utilisation()) : "\u2013",
                   s.drafted() > 0
                       ? grouped(s.accepted()) + " accepted of " + grouped(s.drafted()) + " guesses that were checked."
                       : "Nothing was guessed."};
  const double rounds = static_cast<double>(std::max<uint64_t>(1, s.rounds()));
  view.round_time = {milliseconds(s.ms().total() / rounds),
                     "Mean of " + rounds_word(s.rounds()) + " by the wall clock, all stages included."};
  if (oracle.rounds == 0) return;
  view.oracle = {speed(oracle.tokens_per_second()) + " tok/s",
                 "Had each pass had the width that was best afterwards, plain decoding at its forecast included: " +
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

void add_sources(const RoundStatistics& s, StatisticsView& view) {
  if (!s.has_text_drafts()) return;
  view.by_source.push_back({"Guessed from the text alone",
                            {counted(s.rounds_by(kFromSuffix), "pass", "passes"),
                             "Of " + rounds_word(s.rounds()) +
                                 " so many asked no drafter: what stood behind the same words before was taken. In " +
                                 grouped(s.rounds_by(kFromDflash) + s.rounds_by(kUsualSources)) +
                                 " a drafter was asked, " + grouped(s.rounds_by(0)) + " were plain."}});
  const std::pair<DraftSources, const char*> sets[] = {{kFromDflash, "Right of the drafter\u2019s guesses"},
                                                       {kFromSuffix, "Right of the text\u2019s guesses"},
                                                       {kUsualSources, "Right of what both guessed"}};
  for (const auto& [sources, name] : sets) {
    const SourceCounts& counts = s.by_source(sources);
    if (counts.offered == 0) continue;
    view.by_source.push_back(
        {name,
         {percent(static_cast<double>(counts.accepted) / static_cast<double>(counts.offered)),
          grouped(counts.accepted) + " accepted of " + counted(counts.offered, "guess", "guesses") +
              " that the big model decided on, behind a token of the text" +
              (sources == kUsualSources ? ", and that both had proposed." : ", and that nobody else had proposed.")}});
  }
}

void add_shown(const RoundRecord& shown, StatisticsView& view) {
  const DraftedPart part = drafted_part(shown);
  view.shown_accepted = part.tokens;
  view.measured = stage_times(shown.ms);
  if (shown.predicted.total() > 0) view.predicted = stage_times(shown.predicted);
  if (part.cut && part.tokens > 0)
    view.cut = "The reply ended inside this pass's tree: its " + counted(part.tokens, "token counts", "tokens count") +
               ", what the tree had right beyond them does not.";
}

/// age: that of `plain`, as ar_age() says it.
void add_verdict(const RoundStatistics& s, DecodeMode mode, const ArReference& plain, const std::string& age,
                 StatisticsView& view) {
  if (mode == DecodeMode::ar || s.drafted() == 0) {
    view.verdict = VerdictKind::ar;
    view.verdict_title = mode == DecodeMode::ar ? "Plain decoding" : "Nothing was guessed yet";
    view.verdict_detail = mode == DecodeMode::ar
                              ? "This mode makes no guesses. Choose Tree or Adaptive to see whether they pay."
                              : "Every pass so far was plain.";
    return;
  }
  if (s.rounds() < kEnoughRounds) return;
  if (!enough_drafted(s)) {
    view.verdict = VerdictKind::ar;
    view.verdict_title = "Too few guesses to compare";
    view.verdict_detail = grouped(s.of(DecodeMode::chain).rounds + s.of(DecodeMode::tree).rounds) + " of " +
                          rounds_word(s.rounds()) + " had one.";
    return;
  }
  if (view.ratio <= 0) return;
  const std::string speeds = speed(view.tokens_per_second) + " tok/s measured; plain " +
                             speed(plain.tokens_per_second) + " tok/s, " + age + ".";
  if (view.ratio > 1 + kClearly) {
    view.verdict = VerdictKind::pays;
    view.verdict_title = "Guessing pays here";
  } else if (view.ratio < 1 - kClearly) {
    view.verdict = VerdictKind::loses;
    view.verdict_title = "Guessing loses here";
  } else {
    view.verdict = VerdictKind::even;
    view.verdict_title = "Guessing breaks even here";
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
                   "Plain decoding throughout: no widths for these guesses would have been faster. " +
                       std::string(plain.measured() ? "Measured" : "Predicted") + "."};
  add_histogram(s, view);
  add_depths(s, view);
  add_sources(s, view);
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
