#include "engine/cpu/team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "tests/base/processor_time.h"

namespace canopy::test {
namespace {

using namespace cpu;

/// A step that adds 1 to each of `units` numbers of `to`, having seen that `before` are all at least as far.
Step counting(std::vector<uint32_t>& to, const std::vector<uint32_t>* before, std::atomic<uint32_t>& early) {
  const auto units = static_cast<uint32_t>(to.size());
  return {[&to, before, &early, units](Worker& worker) {
            uint32_t first = 0, end = 0;
            while (worker.next(units, 7, first, end)) {
              for (uint32_t i = first; i < end; ++i) {
                ++to[i];
                // A unit of the step before that is far from this one, so of another thread more often than not.
                if (before != nullptr && (*before)[(i + units / 2) % units] != to[i]) ++early;
              }
            }
          },
          false};
}

TEST(TeamTest, AStepBeginsWhenAllHaveEndedTheOneBefore) {
  for (const uint32_t threads : {1u, 2u, 3u, 8u}) {
    Team team(threads);
    std::vector<std::vector<uint32_t>> numbers(5, std::vector<uint32_t>(1000));
    std::atomic<uint32_t> early = 0;
    std::vector<Step> steps;
    for (size_t i = 0; i < numbers.size(); ++i) {
      steps.push_back(counting(numbers[i], i > 0 ? &numbers[i - 1] : nullptr, early));
    }
    for (uint32_t run = 1; run <= 200; ++run) {
      ASSERT_TRUE(team.run(steps));
      for (const std::vector<uint32_t>& each : numbers) ASSERT_EQ(each, std::vector<uint32_t>(1000, run));
    }
    EXPECT_EQ(early, 0u) << threads << " threads";
  }
}

TEST(TeamTest, AStopIsNoticedBeforeAnOp) {
  for (const uint32_t threads : {1u, 4u}) {
    Team team(threads);
    std::stop_source source;
    std::atomic<uint32_t> ended = 0, after = 0;
    const std::vector<Step> steps = {
        {[&](Worker&) { source.request_stop(); }, true},
        {[&](Worker&) { ++ended; }, false},  // of the same op
        {[&](Worker&) { ++after; }, true},
    };
    EXPECT_FALSE(team.run(steps, source.get_token()));
    EXPECT_EQ(ended, threads);
    EXPECT_EQ(after, 0u);
    EXPECT_FALSE(team.run(steps, source.get_token())) << "the stop stands";
    EXPECT_TRUE(team.run(steps));
    EXPECT_EQ(after, threads);
  }
}

TEST(TeamTest, EachThreadHasItsScratchAndAllHaveOneCommonMemory) {
  Team team(3);
  team.reserve(10, 20);
  std::vector<float*> scratch(3), common(3);
  ASSERT_TRUE(team.run(std::vector<Step>{{[&](Worker& worker) {
                                            scratch[worker.index()] = worker.scratch();
                                            common[worker.index()] = worker.common();
                                          },
                                          true}}));
  EXPECT_TRUE(scratch[0] != scratch[1] && scratch[1] != scratch[2] && scratch[0] != scratch[2]);
  EXPECT_TRUE(common[0] == common[1] && common[1] == common[2] && common[0] != nullptr);
}

// Whatever computing takes: bytes come one behind the other, and none before they are asked for.
TEST(PacedMemoryTest, BringsBytesOneBehindTheOther) {
  using std::chrono::microseconds;
  const PacedMemory::Time start{microseconds(1000)};
  PacedMemory memory(7);  // bytes a nanosecond
  EXPECT_TRUE(memory.is_emulated());
  EXPECT_EQ(memory.read(7'000, start), start + microseconds(1));
  EXPECT_EQ(memory.read(14'000, start), start + microseconds(3)) << "behind what was asked for before";
  EXPECT_EQ(memory.read(0, start), start + microseconds(3));
  EXPECT_EQ(memory.read(7'000, start + microseconds(10)), start + microseconds(11)) << "it does not read ahead";
  EXPECT_FALSE(PacedMemory().is_emulated());
  EXPECT_FALSE(PacedMemory(0).is_emulated());
}

TEST(PacedMemoryTest, AReadingLastsNoShorterThanThereItWould) {
  for (const uint32_t threads : {1u, 3u}) {
    Team team(threads, PacedMemory(1));
    std::atomic<uint32_t> readings = 0;
    const auto start = std::chrono::steady_clock::now();
    ASSERT_TRUE(team.run(std::vector<Step>{{[&](Worker& worker) {
                                              for (int i = 0; i < 2; ++i) {
                                                const Reading reading(worker, 500'000);
                                                ++readings;
                                              }
                                            },
                                            true}}));
    EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(1)) << "each thread has its own";
    EXPECT_EQ(readings, 2 * threads);
  }
}

TEST(TeamTest, SleepsWhenItHasNothingToDo) {
  Team team(4);
  ASSERT_TRUE(team.run(std::vector<Step>{{[](Worker&) {}, true}}));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // awake for a moment, in case a pass follows
  const ProcessorClock clock(ProcessorTimeOf::all_threads);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_LT(clock.seconds(), 0.005);
}

}  // namespace
}  // namespace canopy::test
