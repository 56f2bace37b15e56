// The choice among variants, with made-up times.

#include "engine/vulkan/product_tuner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>

namespace canopy::vk {
namespace {

// Variants whose runs take what a function says, on a clock that moves only with them.
class FakeTimer : public VariantTimer {
 public:
  // Microseconds of run `run` (counted over all variants) of a variant.
  using Times = std::function<double(size_t variant, size_t run)>;
  explicit FakeTimer(Times times) : times_(std::move(times)) {}

  bool prepare(size_t variant) override {
    now_us += 1000;
    return !broken.contains(variant);
  }
  TimedRun run(size_t variant) override {
    const double us = times_(variant, runs++);
    ++runs_of[variant];
    now_us += 500;
    return {us, clock_error > 0 ? us / clock_error : us + 20};
  }
  bool over() override { return now_us >= end_us; }

  std::map<size_t, bool> broken;
  std::map<size_t, size_t> runs_of;
  double end_us = std::numeric_limits<double>::max();
  double now_us = 0;
  double clock_error = 0;
  size_t runs = 0;

 private:
  Times times_;
};

FakeTimer::Times constant(std::vector<double> us) {
  return [us](size_t variant, size_t) { return us[variant]; };
}

// Noise that is the same in every run of the test: a run in five is disturbed and takes up to three times as long.
double noise(size_t run) {
  const uint64_t bits = (run + 1) * 0x9E3779B97F4A7C15ull >> 20;
  return bits % 5 == 0 ? 1.2 + static_cast<double>(bits % 180) / 100 : 1 + static_cast<double>(bits % 10) / 1000;
}

TEST(VariantChoiceTest, TakesTheFastest) {
  FakeTimer timer(constant({100, 130, 60, 90}));
  const VariantChoice choice = choose_variant(timer, 4);
  EXPECT_EQ(choice.chosen, 2u);
  EXPECT_TRUE(choice.complete);
  EXPECT_EQ(choice.problem, "");
  EXPECT_DOUBLE_EQ(choice.typical_us[2], 60);
}

TEST(VariantChoiceTest, KeepsTheFirstUnlessAnotherIsClearlyFaster) {
  FakeTimer equal(constant({100, 99, 98}));
  EXPECT_EQ(choose_variant(equal, 3).chosen, 0u);
  FakeTimer faster(constant({100, 99, 96}));
  EXPECT_EQ(choose_variant(faster, 3).chosen, 2u);
}

TEST(VariantChoiceTest, OneVariantIsTakenAsItIs) {
  FakeTimer timer(constant({100}));
  EXPECT_EQ(choose_variant(timer, 1).chosen, 0u);
}

// Whatever the times: what is chosen was never slower than the first by the median of the measurement itself.
TEST(VariantChoiceTest, IsNeverWorseThanTheFirst) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    const auto cliffs = [seed](size_t variant, size_t run) {
      const uint64_t bits = (seed * 977 + variant * 31 + 7) * 0xBF58476D1CE4E5B9ull >> 16;
      return (20 + static_cast<double>(bits % 400)) * noise(run * 13 + seed);
    };
    FakeTimer timer(cliffs);
    const VariantChoice choice = choose_variant(timer, 6);
    ASSERT_TRUE(choice.complete) << seed;
    ASSERT_LE(choice.typical_us[choice.chosen], choice.typical_us[0]) << seed;
    for (const double us : choice.typical_us) {
      const bool clearly_faster = us > 0 && us < 0.97 * choice.typical_us[0];
      ASSERT_TRUE(!clearly_faster || choice.typical_us[choice.chosen] <= us) << seed;
    }
  }
}

// A variant that falls off a cliff (spills, no room for two workgroups) costs two runs, not eight.
TEST(VariantChoiceTest, WastesNoTimeOnCliffs) {
  FakeTimer timer(constant({100, 5000, 90, 160}));
  EXPECT_EQ(choose_variant(timer, 4).chosen, 2u);
  EXPECT_EQ(timer.runs_of[1], 2u);
  EXPECT_EQ(timer.runs_of[3], 2u);
  EXPECT_EQ(timer.runs_of[2], 8u);
}

TEST(VariantChoiceTest, SeesThroughDisturbedRuns) {
  FakeTimer timer([](size_t variant, size_t run) { return std::vector<double>{100, 92, 120}[variant] * noise(run); });
  EXPECT_EQ(choose_variant(timer, 3).chosen, 1u);
}

// All variants run once in every round, forth and back, so that what the clock does affects them alike.
TEST(VariantChoiceTest, SeesThroughAClockThatDrifts) {
  const auto drifting = [](size_t variant, size_t run) {
    return std::vector<double>{100, 100, 90}[variant] * (1 + 0.05 * static_cast<double>(run));
  };
  FakeTimer slower(drifting);
  EXPECT_EQ(choose_variant(slower, 3).chosen, 2u);
  FakeTimer faster([](size_t, size_t run) { return 100 / (1 + 0.05 * static_cast<double>(run)); });
  EXPECT_EQ(choose_variant(faster, 3).chosen, 0u);
}

TEST(VariantChoiceTest, LeavesOutWhatCannotRun) {
  FakeTimer timer(constant({100, 10, 80}));
  timer.broken[1] = true;
  const VariantChoice choice = choose_variant(timer, 3);
  EXPECT_EQ(choice.chosen, 2u);
  EXPECT_EQ(timer.runs_of[1], 0u);
  EXPECT_EQ(choice.typical_us[1], 0);
}

TEST(VariantChoiceTest, EndsInTimeWithTheBestSoFar) {
  FakeTimer timer(constant({100, 120, 60}));
  timer.end_us = 3 * 1000 + 3 * 500 * 3;  // preparations and three rounds
  const VariantChoice choice = choose_variant(timer, 3);
  EXPECT_FALSE(choice.complete);
  EXPECT_EQ(choice.chosen, 2u);
  EXPECT_LE(timer.now_us, timer.end_us);
}

TEST(VariantChoiceTest, ChoosesNothingWithoutTwoRuns) {
  for (const double end : {0.0, 500.0, 1500.0, 3000.0, 4600.0}) {
    FakeTimer timer(constant({100, 120, 10}));
    timer.end_us = end;
    const VariantChoice choice = choose_variant(timer, 3);
    EXPECT_FALSE(choice.complete) << end;
    EXPECT_EQ(choice.chosen, 0u) << end;
  }
}

TEST(VariantChoiceTest, DoesNotTrustAClockThatMakesNoSense) {
  const double wrapped = 1e15, endless = std::numeric_limits<double>::infinity();
  for (const double bad : {0.0, -5.0, std::nan(""), endless}) {
    FakeTimer timer([bad](size_t variant, size_t run) { return run == 4 ? bad : variant == 1 ? 10.0 : 100.0; });
    const VariantChoice choice = choose_variant(timer, 3);
    EXPECT_EQ(choice.chosen, 0u) << bad;
    EXPECT_FALSE(choice.complete) << bad;
    EXPECT_NE(choice.problem, "") << bad;
  }
  // A counter that went backwards, and a period that is wrong: the host saw the end long before.
  FakeTimer timer(constant({wrapped, 10, 10}));
  timer.clock_error = 1e9;
  EXPECT_NE(choose_variant(timer, 3).problem, "");
}

}  // namespace
}  // namespace canopy::vk
