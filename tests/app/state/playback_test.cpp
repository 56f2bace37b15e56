// The replay of rounds (gui.md, criteria 13 and 14), without a window.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "app/state/rounds.h"

namespace canopy::app {
namespace {

/// A log of rounds with the given durations in milliseconds; every third one is an AR round.
class FixedLog final : public RoundLog {
 public:
  explicit FixedLog(std::vector<double> ms, bool live = true) : live_(live) {
    replies_.emplace_back();
    for (const double each : ms) add(each);
  }
  void add(double ms, DraftSources sources = kFromDflash) {
    RoundSummary summary;
    summary.sources = sources;
    summary.shape = rounds() % 3 == 2 ? DecodeMode::ar : DecodeMode::tree;
    summary.ms.verify = ms;
    summaries_.push_back(summary);
  }
  std::shared_ptr<const RoundRecord> round(size_t) const override { return nullptr; }
  std::optional<trace::Piece> piece(uint32_t) const override { return std::nullopt; }
  bool is_live() const override { return live_; }
  std::string origin() const override { return ""; }

 private:
  bool live_;
};

Playback playing(size_t shown = 0) {
  Playback playback;
  playback.state = PlayState::playing;
  playback.shown = shown;
  return playback;
}

double time_of_phases(DecodeMode shape) {
  double ms = 0;
  for (auto phase = static_cast<uint8_t>(first_phase(shape)); phase < kPhases; ++phase)
    ms += phase_ms(static_cast<Phase>(phase), 0);
  return ms;
}

TEST(Playback, FollowsTheNewestRound) {
  FixedLog log({});
  Playback playback;
  advance(playback, log, 16);
  EXPECT_EQ(playback.shown, 0u);
  for (size_t i = 0; i < 5; ++i) {
    log.add(10);
    advance(playback, log, 0);
    EXPECT_EQ(playback.shown, i);
  }
  EXPECT_FALSE(moves(playback, log)) << "rounds come with events; nothing moves by itself";
}

// gui.md, criterion 13
TEST(Playback, APauseFreezesWhileRoundsArrive) {
  FixedLog log({10, 10, 10});
  Playback playback;
  advance(playback, log, 0);
  toggle_pause(playback, log);
  for (int i = 0; i < 100; ++i) {
    log.add(10);
    advance(playback, log, 16);
    ASSERT_EQ(playback.shown, 2u);
    ASSERT_EQ(playback.state, PlayState::paused);
  }
  EXPECT_FALSE(moves(playback, log));
  toggle_pause(playback, log);  // continues where it was paused, not at the end
  EXPECT_EQ(playback.state, PlayState::playing);
  EXPECT_EQ(playback.shown, 2u);
  advance(playback, log, 25);
  EXPECT_EQ(playback.shown, 4u);
  follow(playback, log);
  EXPECT_EQ(playback.shown, 102u);
}

// gui.md, criterion 13
TEST(Playback, StepsAndScrubsExactly) {
  FixedLog log(std::vector<double>(20, 10));
  Playback playback;
  advance(playback, log, 0);
  step(playback, log, -1);
  EXPECT_EQ(playback.shown, 18u);
  EXPECT_EQ(playback.state, PlayState::paused);
  step(playback, log, -5);
  EXPECT_EQ(playback.shown, 13u);
  step(playback, log, 1);
  EXPECT_EQ(playback.shown, 14u);
  step(playback, log, -1000);
  EXPECT_EQ(playback.shown, 0u);
  step(playback, log, -1);
  EXPECT_EQ(playback.shown, 0u);
  step(playback, log, std::numeric_limits<int>::max());
  EXPECT_EQ(playback.shown, 19u);
  for (const size_t round : {7u, 0u, 19u, 3u}) {
    show(playback, log, round);
    EXPECT_EQ(playback.shown, round);
    EXPECT_EQ(playback.state, PlayState::paused);
  }
  show(playback, log, 1000);
  EXPECT_EQ(playback.shown, 19u);
}

TEST(Playback, PlaysAtThePaceOfTheRoundsTimesTheSpeed) {
  const FixedLog log({10, 20, 30, 40}, false);
  Playback playback = playing();
  advance(playback, log, 19.9);
  EXPECT_EQ(playback.shown, 0u);
  advance(playback, log, 0.2);  // the second round took 20 ms to write
  EXPECT_EQ(playback.shown, 1u);
  advance(playback, log, 30);
  EXPECT_EQ(playback.shown, 2u);
  EXPECT_TRUE(moves(playback, log));
  advance(playback, log, 40);
  EXPECT_EQ(playback.shown, 3u);
  EXPECT_EQ(playback.state, PlayState::paused) << "a trace ends";
  EXPECT_FALSE(moves(playback, log));

  for (const double speed : {0.1, 0.5, 2.0, 10.0}) {
    Playback scaled = playing();
    set_speed(scaled, speed);
    advance(scaled, log, 20 / speed * 0.999);
    EXPECT_EQ(scaled.shown, 0u) << speed;
    advance(scaled, log, 20 / speed * 0.002);
    EXPECT_EQ(scaled.shown, 1u) << speed;
  }
}

TEST(Playback, ManySmallStepsOfTimeAndOneLargeAreTheSame) {
  std::vector<double> ms;
  for (int i = 0; i < 200; ++i) ms.push_back(3 + i % 17);
  const FixedLog log(ms);
  for (const bool slow : {false, true}) {
    Playback fine = playing(), coarse = playing();
    if (slow) set_slow_motion(fine, log, true), set_slow_motion(coarse, log, true);
    for (int i = 0; i < 1000; ++i) advance(fine, log, 0.5);
    advance(coarse, log, 500);
    EXPECT_EQ(fine.shown, coarse.shown);
    EXPECT_EQ(fine.phase, coarse.phase);
    EXPECT_NEAR(fine.progress, coarse.progress, 1e-4);
  }
}

TEST(Playback, AtTheEndOfALiveLogItWaitsForMore) {
  FixedLog log({10, 10});
  Playback playback = playing();
  advance(playback, log, 1000);
  EXPECT_EQ(playback.shown, 1u);
  EXPECT_EQ(playback.state, PlayState::playing);
  EXPECT_FALSE(moves(playback, log)) << "an idle window draws nothing";
  log.add(10);
  EXPECT_TRUE(moves(playback, log));
  advance(playback, log, 5);
  EXPECT_EQ(playback.shown, 1u) << "the wait was no time of the next round";
  advance(playback, log, 5);
  EXPECT_EQ(playback.shown, 2u);
}

TEST(Playback, GoesOnFromTheEnd) {
  const FixedLog trace({10, 10, 10}, false);
  Playback playback;
  show(playback, trace, 2);
  toggle_pause(playback, trace);
  EXPECT_EQ(playback.state, PlayState::playing);
  EXPECT_EQ(playback.shown, 0u) << "a trace plays again";
  const FixedLog live({10, 10, 10});
  show(playback, live, 2);
  toggle_pause(playback, live);
  EXPECT_EQ(playback.state, PlayState::following);
}

// gui.md, criterion 14
TEST(Playback, SlowMotionGoesThroughThePhasesInOrder) {
  const FixedLog log({10, 10, 10, 10}, false);
  Playback playback;
  show(playback, log, 0);
  set_slow_motion(playback, log, true);
  std::vector<std::pair<size_t, Phase>> seen;
  float before = 0;
  for (int i = 0; i < 100'000 && playback.state == PlayState::playing; ++i) {
    const std::pair now{playback.shown, playback.phase};
    if (seen.empty() || seen.back() != now) {
      seen.push_back(now);
      before = 0;
    }
    EXPECT_GE(playback.progress, before);
    before = playback.progress;
    advance(playback, log, 5);
  }
  using enum Phase;
  const std::vector<std::pair<size_t, Phase>> expected = {
      {0, fill},   {0, insert}, {0, verify}, {0, walk},   {0, bonus}, {0, commit},  //
      {1, fill},   {1, insert}, {1, verify}, {1, walk},   {1, bonus}, {1, commit},  //
      {2, verify}, {2, walk},   {2, bonus},  {2, commit},                           // plain: nothing was drafted
      {3, fill},   {3, insert}, {3, verify}, {3, walk},   {3, bonus}, {3, commit}};
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(playback.progress, 1);
}

// No drafter fills anything where none was asked.
TEST(Playback, GuessesFromTheTextAloneHaveNoDraftPhase) {
  FixedLog log({10}, false);
  log.add(10, kFromSuffix);
  Playback playback;
  show(playback, log, 1);
  set_slow_motion(playback, log, true);
  EXPECT_EQ(playback.phase, Phase::insert);
  show_phase(playback, log, Phase::fill);
  EXPECT_EQ(playback.phase, Phase::insert);
  step(playback, log, -1);
  EXPECT_EQ(playback.shown, 0u);
  EXPECT_EQ(playback.phase, Phase::commit);
  step(playback, log, 1);
  EXPECT_EQ(playback.shown, 1u);
  EXPECT_EQ(playback.phase, Phase::insert);
  EXPECT_EQ(first_phase(DecodeMode::ar, kFromSuffix), Phase::verify);
  EXPECT_EQ(first_phase(DecodeMode::tree, kUsualSources), Phase::fill);
}

// look/watch.md, "Slow motion"
TEST(Playback, PhasesTakeTheirTimeTimesTheSpeed) {
  for (uint8_t phase = 0; phase < kPhases; ++phase) {
    if (static_cast<Phase>(phase) == Phase::walk) continue;
    EXPECT_GE(phase_ms(static_cast<Phase>(phase), 3), 600);
    EXPECT_LE(phase_ms(static_cast<Phase>(phase), 3), 900);
  }
  EXPECT_EQ(phase_ms(Phase::walk, 3), 1000) << "four steps: three accepted nodes and the bonus";
  EXPECT_EQ(phase_ms(Phase::walk, 30), 1500);
  const FixedLog log(std::vector<double>(4, 10), false);
  for (const double speed : {0.1, 1.0, 10.0}) {
    Playback playback;
    show(playback, log, 0);
    set_speed(playback, speed);
    set_slow_motion(playback, log, true);
    advance(playback, log, time_of_phases(DecodeMode::tree) / speed - 1);
    EXPECT_EQ(playback.shown, 0u);
    EXPECT_EQ(playback.phase, Phase::commit);
    advance(playback, log, 2);
    EXPECT_EQ(playback.shown, 1u);
    EXPECT_EQ(playback.phase, Phase::fill);
  }
}

TEST(Playback, SlowMotionStepsAPhaseAtATime) {
  const FixedLog log({10, 10, 10}, false);
  Playback playback;
  show(playback, log, 0);
  set_slow_motion(playback, log, true);
  advance(playback, log, 100);
  step(playback, log, 1);  // from the middle of a phase to its end
  EXPECT_EQ(playback.phase, Phase::fill);
  EXPECT_EQ(playback.progress, 1);
  EXPECT_EQ(playback.state, PlayState::paused);
  for (const Phase phase : {Phase::insert, Phase::verify, Phase::walk, Phase::bonus, Phase::commit}) {
    step(playback, log, 1);
    EXPECT_EQ(playback.phase, phase);
  }
  step(playback, log, 2);
  EXPECT_EQ(playback.shown, 1u);
  EXPECT_EQ(playback.phase, Phase::insert);
  step(playback, log, -2);
  EXPECT_EQ(playback.shown, 0u);
  EXPECT_EQ(playback.phase, Phase::commit);
  step(playback, log, 12);  // to the AR round's last phase but two
  EXPECT_EQ(playback.shown, 2u);
  step(playback, log, 1000);
  EXPECT_EQ(playback.phase, Phase::commit);
  step(playback, log, -1000);
  EXPECT_EQ(playback.shown, 0u);
  EXPECT_EQ(playback.phase, Phase::fill);
}

TEST(Playback, ReducedMotionStepsByKeyOnly) {
  const FixedLog log({10, 10}, false);
  Playback playback;
  show(playback, log, 0);
  set_slow_motion(playback, log, true, true);
  EXPECT_EQ(playback.state, PlayState::paused);
  EXPECT_EQ(playback.progress, 1) << "shown at its end, not on its way";
  toggle_pause(playback, log);
  EXPECT_FALSE(moves(playback, log, true));
  const Phase before = playback.phase;
  advance(playback, log, 60'000, true);
  EXPECT_EQ(playback.phase, before);
  EXPECT_EQ(playback.shown, 0u);
}

TEST(Playback, EndingSlowMotionShowsTheWholeRound) {
  const FixedLog log({10, 10}, false);
  Playback playback;
  show(playback, log, 1);
  set_slow_motion(playback, log, true);
  advance(playback, log, 1000);
  set_slow_motion(playback, log, false);
  EXPECT_EQ(playback.shown, 1u);
  EXPECT_EQ(playback.phase, Phase::commit);
  EXPECT_EQ(playback.progress, 1);
  set_slow_motion(playback, log, true);
  follow(playback, log);
  EXPECT_FALSE(playback.slow_motion);
}

TEST(Playback, KeepsTheSpeedWithinItsRange) {
  Playback playback;
  set_speed(playback, std::nan(""));
  EXPECT_EQ(playback.state, PlayState::following);
  set_speed(playback, 0);
  EXPECT_EQ(playback.speed, kSlowest);
  EXPECT_EQ(playback.state, PlayState::playing) << "following has no speed";
  set_speed(playback, 1e9);
  EXPECT_EQ(playback.speed, kFastest);
  set_speed(playback, 0.5);
  set_speed(playback, std::nan(""));
  EXPECT_EQ(playback.speed, 0.5);
}

TEST(Playback, AnEmptyLogIsNoTrouble) {
  const FixedLog log({});
  Playback playback;
  toggle_pause(playback, log);
  step(playback, log, 1);
  show(playback, log, 5);
  set_slow_motion(playback, log, true);
  advance(playback, log, 100);
  EXPECT_EQ(playback.shown, 0u);
  EXPECT_FALSE(moves(playback, log));
  toggle_pause(playback, log);
  toggle_pause(playback, log);
  EXPECT_EQ(playback.state, PlayState::following);
}

}  // namespace
}  // namespace canopy::app
