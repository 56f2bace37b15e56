// The thread that answers, and when it is asked.

#include "app/state/what_if.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include "app/state/round_log.h"
#include "engine/base/error.h"

namespace canopy::test {
namespace {

using namespace std::chrono_literals;
using app::WhatIfAnswer;
using app::WhatIfQuestion;
using app::WhatIfWorker;

WhatIfQuestion question(uint64_t number) {
  WhatIfQuestion asked;
  asked.number = number;
  return asked;
}

/// The next state that take() gives; nothing after ten seconds.
std::optional<WhatIfAnswer> next_of(WhatIfWorker& worker) {
  for (const auto end = std::chrono::steady_clock::now() + 10s; std::chrono::steady_clock::now() < end;) {
    if (auto answer = worker.take()) return answer;
    std::this_thread::sleep_for(1ms);
  }
  return std::nullopt;
}

TEST(WhatIfWorker, ANewQuestionEndsTheOneBefore) {
  std::atomic<int> given_up = 0;
  std::atomic<bool> begun = false;
  WhatIfWorker worker([&](const WhatIfQuestion& asked, const auto& tell, const std::stop_token& stop) {
    if (asked.number == 1) {
      begun = true;
      while (!stop.stop_requested()) std::this_thread::sleep_for(1ms);
      ++given_up;
      tell({1, {}, false, "too late"});
      throw cancelled("given up");
    }
    return WhatIfAnswer{asked.number, {}, true, ""};
  });
  worker.ask(question(1));
  for (const auto end = std::chrono::steady_clock::now() + 10s; !begun && std::chrono::steady_clock::now() < end;)
    std::this_thread::sleep_for(1ms);
  worker.ask(question(2));
  const auto answer = next_of(worker);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->number, 2u);
  EXPECT_TRUE(answer->whole);
  EXPECT_EQ(given_up, 1);
}

TEST(WhatIfWorker, WhatGoesWrongIsItsAnswer) {
  WhatIfWorker worker([](const WhatIfQuestion&, const auto&, const std::stop_token&) -> WhatIfAnswer {
    throw bad_input("There is a hole in the file.");
  });
  worker.ask(question(7));
  const auto answer = next_of(worker);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->problem, "There is a hole in the file.");
  EXPECT_TRUE(answer->whole);
}

TEST(WhatIfWorker, ClosingDoesNotWaitForTheEnd) {
  const auto begin = std::chrono::steady_clock::now();
  {
    WhatIfWorker worker([](const WhatIfQuestion& asked, const auto&, const std::stop_token& stop) {
      while (!stop.stop_requested()) std::this_thread::sleep_for(1ms);
      return WhatIfAnswer{asked.number, {}, true, ""};
    });
    worker.ask(question(1));
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
}

TEST(WhatIfState, ARecordingIsAskedAboutOnceAndAgainForOtherDevices) {
  app::RoundsState rounds;
  app::WhatIfState state;
  EXPECT_FALSE(next_question(state, rounds));  // no rounds
  const std::string path = CANOPY_SOURCE_DIR "/assets/demos/code.canopytrace";
  show_log(rounds, std::make_shared<app::TraceLog>(path), path);
  const auto first = next_question(state, rounds);
  ASSERT_TRUE(first);
  EXPECT_NE(first->trace, nullptr);
  EXPECT_EQ(first->devices, state.devices);
  EXPECT_FALSE(next_question(state, rounds));
  update(state, app::WhatIfCommand(app::SetWhatIfDevice{1, "b580"}));
  const auto second = next_question(state, rounds);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->devices[1], "b580");
  take_answer(state, {first->number, {}, true, "old"});
  EXPECT_EQ(state.answer.problem, "");  // to an earlier question
  take_answer(state, {second->number, {}, true, "new"});
  EXPECT_EQ(state.answer.problem, "new");
}

TEST(WhatIfState, TheChipOfWatchAsksForItsDeviceAlone) {
  app::RoundsState rounds;
  app::WhatIfState state;
  EXPECT_FALSE(next_chip_question(state, rounds, "rtx4090"));
  const std::string path = CANOPY_SOURCE_DIR "/assets/demos/code.canopytrace";
  show_log(rounds, std::make_shared<app::TraceLog>(path), path);
  const auto first = next_chip_question(state, rounds, "rtx4090");
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->brief);
  EXPECT_EQ(first->devices, std::vector<std::string>{"rtx4090"});
  EXPECT_TRUE(first->calibrations.empty());
  EXPECT_FALSE(next_chip_question(state, rounds, "rtx4090"));
  EXPECT_TRUE(next_question(state, rounds)) << "a question of its own";
  take_answer(state.chip, {first->number, {std::make_shared<app::WhatIfThere>()}, true, ""});
  EXPECT_TRUE(next_chip_question(state, rounds, "h100"));
  EXPECT_EQ(state.chip.answer.there.size(), 1u) << "what is known stays until more is";
  EXPECT_TRUE(state.answer.there.empty());
}

TEST(WhatIfState, ADeviceOfOnesOwnIsKeptInPlaceOfOneOfItsName) {
  app::RoundsState rounds;
  app::WhatIfState state;
  const std::string path = CANOPY_SOURCE_DIR "/assets/demos/code.canopytrace";
  show_log(rounds, std::make_shared<app::TraceLog>(path), path);
  ASSERT_TRUE(next_question(state, rounds));
  const auto keep = [&](double gb_s) {
    update(state, app::WhatIfCommand(app::KeepOwnDevice{{"My GPU", gb_s, 31, 1.3}}));
  };
  keep(0);
  EXPECT_TRUE(state.own.empty()) << "of that nothing can be predicted";
  EXPECT_FALSE(next_question(state, rounds));
  keep(400);
  EXPECT_EQ(state.devices.back(), "own:My GPU");
  EXPECT_EQ(state.known.back().choice, "own:My GPU");
  auto question = next_question(state, rounds);
  ASSERT_TRUE(question);
  EXPECT_EQ(question->own, state.own);
  keep(800);
  EXPECT_EQ(state.own.size(), 1u);
  question = next_question(state, rounds);
  ASSERT_TRUE(question) << "its figures are others";
  const app::WhatIfAnswer answer = app::answer_what_if(*question, [](const app::WhatIfAnswer&) {}, {});
  ASSERT_FALSE(answer.there.empty());
  EXPECT_EQ(answer.there.back()->problem, "");
  EXPECT_EQ(answer.there.back()->name, "My GPU");
  EXPECT_EQ(answer.there.back()->times, app::TimesFrom::predicted);
  EXPECT_GT(answer.there.back()->run.tokens_per_second(), 0);
  for (size_t i = 1; i < app::kMostOwnDevices; ++i)
    update(state, app::WhatIfCommand(app::KeepOwnDevice{{std::to_string(i), 400, 31, 1.3}}));
  EXPECT_NE(own_device_problem(state, {"One more", 400, 31, 1.3}).find("remove one first"), std::string::npos);
  update(state, app::WhatIfCommand(app::DropOwnDevice{state.own.back().name}));
  EXPECT_EQ(state.own.size(), app::kMostOwnDevices - 1);
  for (const std::string& device : state.devices) EXPECT_NE(device, "own:7");
}

TEST(WhatIfState, CalibrationsAreFewAndTheOldestGoes) {
  app::WhatIfState state;
  for (const char* path : {"a", "b", "a", "c", "d"}) update(state, app::WhatIfCommand(app::AddCalibration{path}));
  EXPECT_EQ(state.calibrations, (std::vector<std::string>{"a", "c", "d"}));
  update(state, app::WhatIfCommand(app::DropCalibration{"c"}));
  EXPECT_EQ(state.calibrations, (std::vector<std::string>{"a", "d"}));
}

/// A device with passes of these milliseconds and tokens.
std::shared_ptr<const app::WhatIfThere> device(std::vector<std::pair<double, uint32_t>> passes, double ar_ms) {
  auto there = std::make_shared<app::WhatIfThere>();
  for (const auto& [ms, tokens] : passes) {
    WhatIfRound round;
    round.record.ms.verify = ms;
    round.record.emitted.assign(tokens, 1);
    round.record.accepted = tokens - 1;
    there->run.ms += ms;
    there->run.tokens += tokens;
    there->run.rounds.push_back(round);
  }
  there->run.ar_ms = ar_ms;
  return there;
}

TEST(Race, LanesAreByTimeAndTokensComeWhenTheirPassEnds) {
  WhatIfAnswer answer;
  answer.there = {device({{50, 2}, {50, 3}}, 300), std::make_shared<app::WhatIfThere>(), device({{4, 5}}, 9)};
  const app::Race race = race_of(answer);
  ASSERT_EQ(race.lanes.size(), 2u);  // one device is not known
  EXPECT_EQ(race.lanes[0].there, 2u);
  EXPECT_EQ(race.lanes[1].there, 0u);
  EXPECT_DOUBLE_EQ(race.fastest_ms, 4);
  EXPECT_DOUBLE_EQ(race.axis_ms, 50);  // not all of the slow one: the fast one would be a point
  EXPECT_EQ(race.most_tokens, 5u);
  EXPECT_EQ(race.lanes[1].tokens_at(49.9), 0u);
  EXPECT_EQ(race.lanes[1].tokens_at(50), 2u);
  EXPECT_EQ(race.lanes[1].tokens_at(1000), 5u);
  EXPECT_NEAR(race_speed(race, 4), 0.001, 1e-12);
  EXPECT_TRUE(app::race_of({}).empty());
}

// One device was computed for a word less: the others stop there, too, in the pass that brings them so far.
TEST(Race, AllLanesRunOverTheSameTokens) {
  WhatIfAnswer answer;
  answer.there = {device({{10, 3}, {10, 3}, {10, 2}}, 80), device({{4, 5}}, 10)};
  const app::Race race = race_of(answer);
  ASSERT_EQ(race.lanes.size(), 2u);
  for (const app::RaceLane& lane : race.lanes) {
    EXPECT_EQ(lane.tokens, 5u);
    EXPECT_EQ(lane.tokens_at(1e9), 5u);
  }
  const app::RaceLane& cut = race.lanes[1];
  EXPECT_DOUBLE_EQ(cut.ms, 20);
  EXPECT_DOUBLE_EQ(cut.plain_ms, 50) << "of as many tokens";
  ASSERT_EQ(cut.passes.size(), 2u);
  EXPECT_EQ(cut.passes[1].guessed, 2u);
  EXPECT_EQ(cut.passes[1].added, 0u);
}

}  // namespace
}  // namespace canopy::test
