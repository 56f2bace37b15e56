// The figures of the statistics panel, computed from records.

#include "app/charts/statistics_view.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <thread>

#include "app/charts/cost_panels.h"
#include "app/state/calibration.h"
#include "app/state/process.h"
#include "app/state/words.h"
#include "tests/app/charts/chart_samples.h"
#include "tests/app/support/sample_log.h"

namespace canopy::app {
namespace {

using test::SampleLog;
using test::TraceBuilder;

constexpr size_t kAll = 1'000'000;

std::shared_ptr<SampleLog> log_of(size_t rounds, uint64_t seed = 1, uint32_t widest = 24) {
  auto log = std::make_shared<SampleLog>();
  TraceBuilder builder(seed);
  builder.begin();
  for (size_t i = 0; i < rounds; ++i) log->add(builder.any(widest));
  return log;
}

/// The statistics counted from the start, without copies to start from.
RoundStatistics counted_anew(const RoundLog& log, size_t last) {
  RoundStatistics statistics;
  for (size_t i = 0; i <= last; ++i) statistics.add(*log.round(i));
  return statistics;
}

TEST(StatisticsTrail, AnswersForAnyRoundAsIfCountedFromTheStart) {
  const auto log = log_of(300);
  StatisticsTrail trail;
  for (const size_t round : {0u, 299u, 5u, 64u, 63u, 65u, 128u, 7u, 298u, 299u, 150u}) {
    const TrailPoint& point = trail.up_to(log, round, kAll);
    EXPECT_TRUE(trail.done());
    EXPECT_EQ(point.rounds, counted_anew(*log, round)) << round;
    EXPECT_EQ(trail.rounds(), round + 1);
    EXPECT_EQ(point.missing, 0u);
  }
}

/// Going back in a long reply that was read once reads at most kStride rounds again.
TEST(StatisticsTrail, ScrubbingReadsNoMoreThanAStride) {
  constexpr size_t rounds = 5000;
  const auto log = log_of(rounds, 2, 4);
  StatisticsTrail trail;
  trail.up_to(log, rounds - 1, kAll);
  EXPECT_EQ(trail.reads(), rounds);
  size_t before = trail.reads();
  for (size_t round = rounds - 1; round > 37; round -= 37) {
    trail.up_to(log, round, kAll);
    EXPECT_LE(trail.reads() - before, StatisticsTrail::kStride);
    before = trail.reads();
  }
  // Playing reads each round at most once.
  trail.up_to(log, 100, kAll);
  before = trail.reads();
  for (size_t round = 101; round < 400; ++round) trail.up_to(log, round, kAll);
  EXPECT_LE(trail.reads() - before, 299u);
}

TEST(StatisticsTrail, ALongReplyIsReadAPartAFrame) {
  const auto log = log_of(1000, 3, 4);
  StatisticsTrail trail;
  size_t frames = 0;
  do {
    trail.up_to(log, 999, 100);
    ++frames;
  } while (!trail.done() && frames < 100);
  EXPECT_EQ(frames, 10u);
  EXPECT_EQ(trail.up_to(log, 999, 100).rounds, counted_anew(*log, 999));
}

TEST(StatisticsTrail, CountsWhatWasLetGoInsteadOfTakingItForRefused) {
  const auto log = log_of(20, 4);
  log->forget(3);
  log->forget(4);
  StatisticsTrail trail;
  const TrailPoint& point = trail.up_to(log, 19, kAll);
  EXPECT_EQ(point.missing, 2u);
  EXPECT_EQ(point.rounds.rounds(), 18u);
  const StatisticsView view = statistics_view(point, nullptr, DecodeMode::adaptive, {});
  EXPECT_NE(view.missing.find("2 passes"), std::string::npos);
}

TEST(StatisticsTrail, AnotherLogStartsAnew) {
  StatisticsTrail trail;
  trail.up_to(log_of(10, 5), 9, kAll);
  const auto other = log_of(4, 6);
  EXPECT_EQ(trail.up_to(other, 3, kAll).rounds, counted_anew(*other, 3));
  const auto none = std::make_shared<SampleLog>();
  EXPECT_EQ(trail.up_to(none, 0, kAll).rounds.rounds(), 0u);
}

/// Plain decoding at this speed, measured.
ArReference at(double tokens_per_second) {
  ArReference plain;
  plain.tokens_per_second = tokens_per_second;
  plain.source = ArSource::plain_rounds;
  plain.rounds = 8;
  return plain;
}

StatisticsView view_of(const std::shared_ptr<SampleLog>& log, size_t round, const ArReference& plain = {}) {
  StatisticsTrail trail;
  return statistics_view(trail.up_to(log, round, kAll), log->round(round).get(), DecodeMode::adaptive, plain);
}

/// gui.md, criterion 10.
TEST(StatisticsView, HistogramSumsToRoundsAndEmittedToTokens) {
  const auto log = log_of(200, 7);
  for (const size_t round : {0u, 10u, 199u}) {
    const StatisticsView view = view_of(log, round);
    EXPECT_EQ(std::accumulate(view.histogram.begin(), view.histogram.end(), uint64_t{0}), round + 1);
    uint64_t tokens = 0;
    for (size_t i = 0; i <= round; ++i) tokens += log->round(i)->emitted.size();
    EXPECT_NE(view.tau.denominator.find(grouped(tokens) + " tokens"), std::string::npos) << view.tau.denominator;
    EXPECT_NE(view.tau.denominator.find(counted(round + 1, "pass", "passes")), std::string::npos);
    ASSERT_TRUE(view.shown_accepted.has_value());
    EXPECT_GT(view.histogram.at(*view.shown_accepted), 0u);
  }
}

/// gui.md, criterion 10: a last round that was cut by a stop counts the tokens that came, and the panel says so.
TEST(StatisticsView, ACutLastRoundIsFlagged) {
  auto log = std::make_shared<SampleLog>();
  TraceBuilder builder(8);
  builder.begin();
  RoundRecord record = builder.tree(24);
  while (record.accepted < 3) record = builder.tree(24);
  const uint32_t whole_round = record.accepted;
  log->add(record);
  EXPECT_TRUE(view_of(log, 0).cut.empty());
  record.emitted.resize(2);  // the second drafted token was the stop
  log->add(record);
  const StatisticsView view = view_of(log, 1);
  EXPECT_NE(view.cut.find("2 tokens count"), std::string::npos) << view.cut;
  EXPECT_EQ(view.shown_accepted, 2u);
  EXPECT_EQ(view.histogram.at(2) + (whole_round == 2 ? 0 : view.histogram.at(whole_round)), 2u);
}

/// gui.md, criterion 11.
TEST(StatisticsView, StagesAndTheRestAreTheWallTime) {
  const auto log = log_of(100, 9);
  for (size_t round = 0; round < 100; ++round) {
    const StatisticsView view = view_of(log, round);
    const RoundTimes& ms = log->round(round)->ms;
    EXPECT_NEAR(view.measured.draft + view.measured.verify + view.measured.rest, ms.total(), 0.01 * ms.total());
    EXPECT_DOUBLE_EQ(view.measured.rest, ms.build + ms.walk + ms.commit + ms.other);
    ASSERT_TRUE(view.predicted.has_value());
    EXPECT_NEAR(view.predicted->total(), log->round(round)->predicted.total(), 1e-12);
  }
}

TEST(StatisticsView, AcceptedToDepthIsAFallingShareOfAllRounds) {
  const auto log = log_of(300, 10);
  const StatisticsView view = view_of(log, 299);
  ASSERT_FALSE(view.by_depth.empty());
  uint64_t at_least_one = 0;
  for (size_t i = 1; i < view.histogram.size(); ++i) at_least_one += view.histogram[i];
  EXPECT_EQ(view.by_depth.front().accepted, at_least_one);
  for (size_t i = 0; i < view.by_depth.size(); ++i) {
    EXPECT_EQ(view.by_depth[i].depth, i + 1);
    EXPECT_LE(view.by_depth[i].accepted, view.by_depth[i].offered);
    EXPECT_DOUBLE_EQ(view.by_depth[i].share, static_cast<double>(view.by_depth[i].accepted) / 300);
    if (i > 0) {
      EXPECT_LE(view.by_depth[i].share, view.by_depth[i - 1].share);
    }
  }
}

TEST(StatisticsView, TellsGuessesByTheirSources) {
  auto log = std::make_shared<SampleLog>();
  TraceBuilder builder(14);
  builder.begin(DecodeMode::tree);
  for (int i = 0; i < 9; ++i) log->add(builder.tree(12));
  EXPECT_TRUE(view_of(log, 8).by_source.empty()) << "of the drafter alone there is nothing to tell";
  for (int i = 0; i < 3; ++i) {
    RoundRecord record = builder.tree(12);
    for (size_t node = 1; node < record.nodes.size(); ++node) record.nodes[node].node.sources = kFromSuffix;
    record.match = 6;
    record.ms.draft = 0;
    log->add(record);
  }
  const StatisticsView view = view_of(log, 11);
  ASSERT_EQ(view.by_source.size(), 3u);  // how many rounds, the drafter's guesses, those of the text
  EXPECT_EQ(view.by_source[0].figure.text, "3 passes");
  EXPECT_NE(view.by_source[0].figure.denominator.find("In 9 a drafter was asked, 0 were plain"), std::string::npos)
      << view.by_source[0].figure.denominator;
  const SourceCounts& text = log->statistics().by_source(kFromSuffix);
  EXPECT_NE(view.by_source[2].figure.denominator.find(grouped(text.accepted) + " accepted of " + grouped(text.offered)),
            std::string::npos)
      << view.by_source[2].figure.denominator;
}

TEST(StatisticsView, VerdictComparesWithPlainDecodingAfterEightRounds) {
  const auto log = log_of(20, 11);
  const double speed = view_of(log, 19).tokens_per_second;
  EXPECT_EQ(view_of(log, 19).verdict, VerdictKind::none);  // nothing to compare with
  EXPECT_EQ(view_of(log, 19, at(speed / 2)).verdict_title, "Guessing pays here");
  EXPECT_EQ(view_of(log, 19, at(speed / 2)).over_ar.text, "\u00d72.0");
  EXPECT_EQ(view_of(log, 19, at(speed * 2)).verdict_title, "Guessing loses here");
  EXPECT_EQ(view_of(log, 19, at(speed)).verdict, VerdictKind::even);
  EXPECT_EQ(view_of(log, 6, at(speed / 2)).verdict, VerdictKind::none);
  StatisticsTrail trail;
  const StatisticsView plain = statistics_view(trail.up_to(log, 19, kAll), nullptr, DecodeMode::ar, {});
  EXPECT_EQ(plain.verdict, VerdictKind::ar);
  // No texts were compared, so the panel must not call them the same.
  EXPECT_EQ(view_of(log, 19, at(speed / 2)).verdict_detail.find("Same text"), std::string::npos);
}

TEST(StatisticsView, FiguresOfNothingDraftedHaveNoShare) {
  auto log = std::make_shared<SampleLog>();
  TraceBuilder builder(12);
  builder.begin(DecodeMode::ar);
  for (int i = 0; i < 10; ++i) log->add(builder.plain());
  const StatisticsView view = view_of(log, 9);
  EXPECT_EQ(view.node_use.text, "\u2013");
  EXPECT_EQ(view.node_use.denominator, "Nothing was guessed.");
  EXPECT_EQ(view.tau.text, "1.00");
}

/// The best widths in hindsight can never be slower than what happened.
TEST(OracleTally, IsNeverSlowerThanWhatHappened) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const auto log = log_of(30, 100 + seed);
    StatisticsTrail trail;
    const OracleTally& oracle = trail.up_to(log, 29, kAll).oracle;
    EXPECT_EQ(oracle.rounds, 30u);
    EXPECT_NEAR(oracle.real_tokens_per_second(), counted_anew(*log, 29).tokens_per_second(), 1e-6);
    double best = 0, real = 0;
    for (size_t i = 0; i < 30; ++i) {
      OracleTally one;
      one.add(*log->round(i));
      EXPECT_GE(one.tokens_per_second(), one.real_tokens_per_second() * (1 - 1e-12));
      best += one.tokens_per_second();
      real += one.real_tokens_per_second();
    }
    EXPECT_GE(best, real);
  }
}

TEST(ReliabilityTally, CountsEveryDraftedNodeOnceAndSeesACalibrationThatHelps) {
  TraceBuilder builder(14);
  builder.begin();
  ReliabilityTally tally;
  uint64_t nodes = 0;
  for (int i = 0; i < 400; ++i) {
    RoundRecord record = builder.tree(32);
    // The drafter shows the square root of its true probabilities; the tree was ordered by the true ones.
    for (RoundNode& each : record.nodes) each.node.log_q *= 0.5;
    if (drafted_part(record).cut) continue;
    nodes += record.width - 1;
    tally.add(record);
  }
  EXPECT_EQ(tally.nodes(), nodes);
  uint64_t raw = 0, calibrated = 0;
  for (const auto& bin : tally.raw()) raw += bin.nodes;
  for (const auto& bin : tally.calibrated()) calibrated += bin.nodes;
  EXPECT_EQ(raw, nodes);
  EXPECT_EQ(calibrated, nodes);
  EXPECT_LT(ReliabilityTally::error(tally.calibrated()), 0.5 * ReliabilityTally::error(tally.raw()));
}

TEST(Series, SpeedIsTokensOverTimeAndLongRepliesShareTheirPoints) {
  const auto log = log_of(1000, 15, 4);
  const SpeedSeries each = speed_series(*log, 0, 99, 512);
  ASSERT_EQ(each.speed.size(), 100u);
  EXPECT_EQ(each.rounds_a_point, 1u);
  EXPECT_NEAR(each.speed[7], 1000.0 * log->summary(7).emitted / log->summary(7).ms.total(), 1e-9);
  EXPECT_EQ(each.mean.front(), each.speed.front());
  EXPECT_NEAR(each.mean[1], 0.8 * each.mean[0] + 0.2 * each.speed[1], 1e-9);
  const SpeedSeries shared = speed_series(*log, 0, 999, 128);
  EXPECT_LE(shared.speed.size(), 128u);
  EXPECT_EQ(shared.rounds_a_point, 8u);
  double tokens = 0, ms = 0;
  for (size_t i = 0; i < 8; ++i) {
    tokens += log->summary(i).emitted;
    ms += log->summary(i).ms.total();
  }
  EXPECT_NEAR(shared.speed.front(), 1000 * tokens / ms, 1e-9);
  EXPECT_TRUE(speed_series(SampleLog(), 0, 0).speed.empty());
}

TEST(Series, ResidualsAreMeasuredOverPredicted) {
  auto log = std::make_shared<SampleLog>();
  TraceBuilder builder(16);
  builder.begin();
  RoundRecord record = builder.tree(16);
  record.predicted.verify = 10;
  record.ms.verify = 12;
  log->add(record);
  record.predicted.verify = 0;  // not predicted: left out
  log->add(record);
  const auto residuals = round_residuals(*log, 0, 1);
  ASSERT_EQ(residuals.size(), 1u);
  EXPECT_EQ(residuals[0].width, 16);
  EXPECT_NEAR(residuals[0].error, 0.2, 1e-12);
}

/// The best in hindsight, which plain decoding is a part of, is never slower than what plain decoding was measured at.
TEST(StatisticsView, TheBestInHindsightIsNoSlowerThanPlainDecoding) {
  const auto log = log_of(20, 11);
  const double best = view_of(log, 19).tokens_per_second;
  EXPECT_EQ(view_of(log, 19, at(1000 * best)).oracle.text, app::speed(1000 * best) + " tok/s");
  EXPECT_EQ(view_of(log, 19, at(0.001 * best)).oracle.text, view_of(log, 19).oracle.text);
}

/// Where next to nothing was drafted, the speed says nothing of drafting, whatever it is compared with.
TEST(StatisticsView, FewDraftsHaveNoRatioAndNoVerdict) {
  auto log = std::make_shared<SampleLog>();
  TraceBuilder builder(31);
  builder.begin(DecodeMode::adaptive);
  for (int i = 0; i < 60; ++i) log->add(builder.plain());
  for (int i = 0; i < 3; ++i) log->add(builder.tree(16));
  const StatisticsView view = view_of(log, 62, at(27));
  EXPECT_EQ(view.ratio, 0);
  EXPECT_TRUE(view.over_ar.text.empty());
  EXPECT_EQ(view.verdict_title, "Too few guesses to compare");
  EXPECT_EQ(view.verdict_detail, "3 of 63 passes had one.");
  // Nor in a reply without drafts, whose speed is that of plain decoding.
  StatisticsTrail trail;
  EXPECT_EQ(statistics_view(trail.up_to(log, 59, kAll), nullptr, DecodeMode::ar, at(27)).ratio, 0);
}

TEST(CacheView, KeepsTheRootAndTheAcceptedRows) {
  TraceBuilder builder(20);
  builder.begin();
  for (int i = 0; i < 50; ++i) {
    const RoundRecord record = builder.any(40);
    const CacheView view = cache_view(&record, nullptr, 7);
    EXPECT_EQ(view.committed, record.context);
    EXPECT_EQ(view.kept + view.dropped, record.width);
    EXPECT_EQ(view.kept, record.accepted + 1);
  }
  EXPECT_EQ(cache_view(nullptr, nullptr, 7).used(), 7u);
}

TEST(CalibrationState, GoesFromWaitingToItsEnd) {
  CalibrationState state;
  EXPECT_FALSE(update(state, StartCalibration{}, false).has_value());
  EXPECT_FALSE(state.busy());
  auto command = update(state, StartCalibration{12}, true);
  ASSERT_TRUE(command && std::holds_alternative<Calibrate>(*command));
  EXPECT_EQ(std::get<Calibrate>(*command).seconds, 12);
  EXPECT_EQ(state.phase, CalibrationState::Phase::waiting);
  EXPECT_FALSE(update(state, StartCalibration{}, true).has_value());  // once
  update(state, Event(CalibrationProgress{3, 12, 20}));
  EXPECT_EQ(state.phase, CalibrationState::Phase::running);
  EXPECT_FLOAT_EQ(state.fraction(), 0.25f);
  const auto costs = test::costs_of(test::tiled_cost);
  update(state, Event(Calibrated{costs}));
  EXPECT_FALSE(state.busy());
  EXPECT_EQ(state.costs, costs);
}

TEST(CalibrationState, CancelKeepsWhatWasKnown) {
  CalibrationState state;
  const auto costs = test::costs_of(test::tiled_cost);
  state.costs = costs;
  EXPECT_FALSE(update(state, StopCalibration{}, true).has_value());  // nothing runs
  update(state, StartCalibration{}, true);
  const auto command = update(state, StopCalibration{}, true);
  ASSERT_TRUE(command && std::holds_alternative<CancelCalibration>(*command));
  EXPECT_FALSE(update(state, StopCalibration{}, true).has_value());
  update(state, Event(CalibrationProgress{4, 12, 20}));  // was under way
  EXPECT_EQ(state.phase, CalibrationState::Phase::cancelling);
  Failure failure;
  failure.reply_id = 9;  // of a reply: not its end
  update(state, Event(failure));
  EXPECT_TRUE(state.busy());
  failure.reply_id = 0;
  failure.kind = ErrorKind::cancelled;
  update(state, Event(failure));
  EXPECT_FALSE(state.busy());
  EXPECT_EQ(state.costs, costs);
  EXPECT_FALSE(state.note.empty());
}

TEST(MessageLog, KeepsTheLastAndCutsNoCharacter) {
  MessageLog log;
  for (size_t i = 0; i < MessageLog::kKept + 5; ++i) log.add(LogLevel::info, "message " + std::to_string(i));
  EXPECT_EQ(log.count(), MessageLog::kKept + 5);
  const auto messages = log.messages();
  ASSERT_EQ(messages.size(), MessageLog::kKept);
  EXPECT_EQ(messages.front().text, "message 5");
  std::string text(MessageLog::kLongest - 1, 'x');
  log.add(LogLevel::warning, text + "\u20ac");
  EXPECT_EQ(log.messages().back().text, text);
  EXPECT_NE(as_text(log.messages()).find("warning"), std::string::npos);
}

TEST(MessageLog, TakesMessagesFromSeveralThreads) {
  MessageLog log;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int j = 0; j < 200; ++j) log.add(LogLevel::info, "x");
    });
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(log.count(), 800u);
}

TEST(Figures, AreWrittenAsTheDesignSays) {
  EXPECT_EQ(whole(1102.6), "1,103");
  EXPECT_EQ(whole(-3.2), "\u22123");
  EXPECT_EQ(milliseconds(9.967), "9.97 ms");
  EXPECT_EQ(milliseconds(0.1), "0.10 ms");
  EXPECT_EQ(milliseconds(99.99), "99.99 ms");
  EXPECT_EQ(milliseconds(99.996), "100.0 ms");
  EXPECT_EQ(milliseconds(404.27), "404.3 ms");
  EXPECT_EQ(milliseconds(999.96), "1,000 ms");
  EXPECT_EQ(milliseconds(99999), "99,999 ms");
  EXPECT_EQ(percent(0.0884), "8.8%");
  EXPECT_EQ(signed_percent(0.0091), "+0.9%");
  EXPECT_EQ(signed_percent(-0.12), "\u221212.0%");
  EXPECT_EQ(signed_percent(-0.0001), "0.0%");
  EXPECT_EQ(times(3.52), "\u00d73.5");
  EXPECT_EQ(times(0.1), "\u00d70.1");
  EXPECT_EQ(times(0.25), "\u00d70.25") << "the sentence beside it says 0.25 too";
  EXPECT_EQ(times(0.996), "\u00d71.0");
  EXPECT_EQ(times(0.04), "\u00d70.04");
  EXPECT_EQ(times(0.001), "<\u00d70.01");
  EXPECT_EQ(counted(1, "pass", "passes"), "1 pass");
}

}  // namespace
}  // namespace canopy::app
