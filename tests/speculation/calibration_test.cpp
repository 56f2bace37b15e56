// Calibration in virtual time, on devices that are noisy, drift and have cliffs; and how it spends its budget.

#include "engine/speculation/calibration.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>

#include "tests/base/expect_error.h"

namespace canopy {
namespace {

/// A device whose clock advances by the simulated times of its passes.
class VirtualTimer : public PassTimer {
 public:
  std::function<double(uint32_t width, uint32_t context)> verify;
  std::function<double(uint32_t backlog, uint32_t context)> draft;
  std::function<double(double seconds)> drift = [](double) { return 1.0; };
  double noise = 0;        // standard deviation, relative
  double spikes = 0;       // probability of a pass that takes four times as long
  double preparation = 0;  // additional ms of the first pass of a width
  double overhead = 0.02;  // ms between passes
  int stop_after = -1;     // passes until it is stopped; below 0: never

  double verify_ms(uint32_t width, uint32_t context) override {
    ++passes[{width, context}];
    return pass(verify(width, context) + (prepared.insert(width).second ? preparation : 0));
  }
  double draft_ms(uint32_t backlog, uint32_t context) override {
    ++drafts[{backlog, context}];
    return pass(draft(backlog, context));
  }
  bool stopped() const override { return stop_after >= 0 && count >= stop_after; }
  double now() override { return seconds; }

  std::map<std::pair<uint32_t, uint32_t>, int> passes, drafts;
  std::set<uint32_t> prepared;
  int count = 0;
  double seconds = 1000;  // clocks do not start at 0
  double longest = 0;

 private:
  double pass(double ms) {
    ++count;
    ms *= drift(seconds - 1000) * std::max(0.3, 1 + noise * normal_(random_));
    if (uniform_(random_) < spikes) ms *= 4;
    seconds += (ms + overhead) / 1e3;
    longest = std::max(longest, ms / 1e3);
    return ms;
  }

  std::mt19937 random_{7};
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
};

// A GPU: memory-bound up to 8 columns, matrix products from 9 on, another tile from 33; attention by rows and context.
double gpu_ms(uint32_t width, uint32_t context) {
  const double tiles = std::ceil(width / 32.0);
  return (width <= 8 ? 5 + 0.15 * width : 6.5 + 1.2 * tiles) + 2e-6 * width * context;
}
double gpu_draft_ms(uint32_t backlog, uint32_t context) {
  return 1.2 + 0.01 * backlog + 1e-5 * context;
}

VirtualTimer gpu() {
  VirtualTimer timer;
  timer.verify = gpu_ms;
  timer.draft = gpu_draft_ms;
  return timer;
}

// A processor, where every row costs nearly as much as a pass of its own.
VirtualTimer processor(double one_row_ms) {
  VirtualTimer timer;
  timer.verify = [=](uint32_t width, uint32_t context) {
    return one_row_ms * (0.45 + 0.55 * width) + 1e-5 * one_row_ms * width * context;
  };
  timer.draft = [=](uint32_t backlog, uint32_t) { return one_row_ms * (1.5 + 0.1 * backlog); };
  return timer;
}

double spent(const VirtualTimer& timer) {
  return timer.seconds - 1000;
}

// The largest relative error over widths 1 to `widest` at these contexts.
double worst_error(const CostTable& table, const VirtualTimer& timer, uint32_t widest,
                   const std::vector<uint32_t>& contexts) {
  double worst = 0;
  for (const uint32_t context : contexts) {
    for (uint32_t width = 1; width <= widest; ++width) {
      worst = std::max(worst, std::abs(table.verify_ms(width, context) / timer.verify(width, context) - 1));
    }
  }
  return worst;
}

std::set<uint32_t> measured_widths(const CostTable& table, uint32_t context) {
  std::set<uint32_t> widths;
  for (const CostPoint& p : table.verify_points()) {
    if (p.context == context) widths.insert(p.rows);
  }
  return widths;
}

TEST(Calibration, MeasuresEveryWidthThenTilesThenOtherContexts) {
  VirtualTimer timer = gpu();
  const CalibrationPlan plan = {.max_width = 200, .tile = 32, .max_context = 4096};
  const CostTable table = calibrate(timer, plan);
  EXPECT_EQ(table.tile(), 32u);
  std::set<uint32_t> wanted = {96, 128, 160, 192};
  for (uint32_t width = 1; width <= 64; ++width) wanted.insert(width);
  EXPECT_EQ(measured_widths(table, reference_context(plan)), wanted);
  const auto contexts = calibration_contexts(plan);
  EXPECT_GE(contexts.size(), 4u);
  EXPECT_EQ(contexts.back(), 4096u);
  for (const uint32_t context : contexts) EXPECT_GE(measured_widths(table, context).size(), 4u) << context;
  EXPECT_LT(worst_error(table, timer, 192, {64, 300, 512, 1000, 4096}), 5e-3);  // the cliffs are at the right widths
  EXPECT_NEAR(table.draft_ms(10, 512), gpu_draft_ms(10, 512), 0.01);
  EXPECT_NEAR(table.draft_ms(1, 4096), gpu_draft_ms(1, 4096), 0.01);
}

TEST(Calibration, NoiseIsRepeatedAway) {
  VirtualTimer timer = gpu();
  timer.noise = 0.05;
  timer.spikes = 0.03;
  const CostTable table = calibrate(timer, {.max_width = 128, .tile = 32});
  EXPECT_LT(worst_error(table, timer, 128, {512}), 0.09);
  double sum = 0;
  for (uint32_t width = 1; width <= 64; ++width) sum += std::abs(table.verify_ms(width, 512) / gpu_ms(width, 512) - 1);
  EXPECT_LT(sum / 64, 0.025);
  EXPECT_LE(spent(timer), 90);
  std::printf("%d passes in %.1f s of the device's time\n", timer.count, spent(timer));
}

TEST(Calibration, APassThatPreparesItsWidthIsNotReliedOn) {
  VirtualTimer timer = gpu();
  timer.preparation = 40;
  const CostTable table = calibrate(timer, {.max_width = 64});
  EXPECT_LT(worst_error(table, timer, 64, {512}), 1e-3);
}

TEST(Calibration, PreparingDoesNotSpoilAShortCalibration) {
  // With four seconds, of which preparing a width takes 0.4: few widths are measured, but none of them is wrong.
  VirtualTimer timer = processor(40);
  timer.preparation = 400;
  const CostTable table = calibrate(timer, {.max_width = 64, .tile = 1, .budget_s = 4});
  EXPECT_LE(spent(timer), 4.5);
  const auto widths = measured_widths(table, 512);
  EXPECT_GE(widths.size(), 3u);
  for (const CostPoint& p : table.verify_points()) {
    EXPECT_NEAR(p.ms / timer.verify(p.rows, p.context), 1, 0.02) << p.rows << " rows at " << p.context;
  }
  EXPECT_TRUE(table.has_draft());

  // The same with a preparation that takes most of the time.
  VirtualTimer compiler = processor(40);
  compiler.preparation = 2500;
  const CostTable one = calibrate(compiler, {.max_width = 64, .budget_s = 4});
  EXPECT_NEAR(one.verify_ms(1, 512) / compiler.verify(1, 512), 1, 0.02);

  // And with one that takes all of it: a draft is measured all the same, as the choice to draft depends on it.
  VirtualTimer slow_compiler = processor(40);
  slow_compiler.preparation = 6000;
  const CostTable late = calibrate(slow_compiler, {.max_width = 64, .budget_s = 4});
  EXPECT_TRUE(late.has_draft());
  EXPECT_NEAR(late.draft_ms(1, 512) / slow_compiler.draft(1, 512), 1, 0.02);
}

TEST(Calibration, ADriftTouchesAllWidthsAlike) {
  // A device that becomes 30% slower after some time, as it heats up: the table has the times of the end.
  for (const double heated_after : {1.0, 3.0, 60.0}) {
    for (VirtualTimer timer : {gpu(), processor(40)}) {
      timer.drift = [=](double seconds) { return 1 + 0.3 * std::min(1.0, seconds / heated_after); };
      timer.noise = 0.02;
      const CostTable table = calibrate(timer, {.max_width = 24});
      const double end = timer.drift(spent(timer));
      double least = 10, most = 0;
      for (uint32_t width = 1; width <= 24; ++width) {
        const double ratio = table.verify_ms(width, 512) / timer.verify(width, 512);
        least = std::min(least, ratio);
        most = std::max(most, ratio);
      }
      EXPECT_LT(most / least, 1.13) << "heated after " << heated_after << " s";
      EXPECT_NEAR(least / end, 1, 0.12);
      EXPECT_NEAR(most / end, 1, 0.12);
      std::printf("heated after %.0f s of %.1f: %.3f to %.3f of what passes take at the end\n", heated_after,
                  spent(timer), least / end, most / end);
    }
  }
}

TEST(Calibration, LeavesOutWidthsThatCannotWin) {
  for (const double one_row : {4.0, 40.0}) {
    VirtualTimer timer = processor(one_row);
    const CalibrationPlan plan = {.block = 16, .max_width = 512};
    const CostTable table = calibrate(timer, plan);
    const auto widths = measured_widths(table, reference_context(plan));
    const auto wins = [&](uint32_t width) {
      return timer.draft(1, 512) + timer.verify(width, 512) <= 16 * timer.verify(1, 512);
    };
    uint32_t limit = 1;
    while (wins(limit + 1)) ++limit;
    ASSERT_GT(limit, 16u);
    ASSERT_LT(limit, 40u);
    for (uint32_t width = 1; width <= limit; ++width) EXPECT_TRUE(widths.contains(width)) << width;
    for (uint32_t width = limit + 3; width < 64; ++width) {
      if (std::has_single_bit(width)) continue;  // of the outline
      EXPECT_FALSE(widths.contains(width)) << width;
    }
    EXPECT_LE(*widths.rbegin(), 64u);
    EXPECT_LE(spent(timer), 90);
    std::printf("%.0f ms a row: widths that can win up to %u, %d passes in %.1f s\n", one_row, limit, timer.count,
                spent(timer));
  }
}

TEST(Calibration, LooksBehindACliffThatLoses) {
  // Passes of 9 to 16 rows are too slow to be chosen, while wider ones go through other kernels and may be.
  VirtualTimer timer = gpu();
  timer.verify = [](uint32_t width, uint32_t) { return width >= 9 && width <= 16 ? 200.0 : 10 + 0.1 * width; };
  const CostTable table = calibrate(timer, {.max_width = 64});
  const auto widths = measured_widths(table, 512);
  for (uint32_t width = 17; width <= 64; ++width) EXPECT_TRUE(widths.contains(width)) << width;
  EXPECT_NEAR(table.verify_ms(17, 512), 11.7, 1e-9);
}

TEST(Calibration, KeepsItsBudgetOnAnyDevice) {
  for (const double one_row : {0.2, 5.0, 40.0, 300.0, 2000.0, 20000.0}) {
    for (const double budget : {2.0, 20.0, 90.0}) {
      VirtualTimer timer = processor(one_row);
      timer.noise = 0.05;
      const CalibrationPlan plan = {.max_width = 256, .budget_s = budget};
      const CostTable table = calibrate(timer, plan);
      // The times of the first pass and the first draft cannot be foreseen. Apart from these, nothing is begun that
      // would not end in time.
      const double first_s = 1.3e-3 * timer.verify(1, 512), draft_s = 1.3e-3 * timer.draft(1, 512);
      EXPECT_LE(spent(timer), std::max(budget, first_s) + draft_s) << one_row << " ms, " << budget << " s";
      EXPECT_GT(timer.passes.at({1, 512}), 0);
      EXPECT_TRUE(table.has_draft()) << one_row << " ms, " << budget << " s";
      for (const uint32_t width : {1u, 7u, 64u, 256u}) {
        for (const uint32_t context : {1u, 512u, 8192u}) {
          const double ms = table.verify_ms(width, context);
          EXPECT_TRUE(std::isfinite(ms) && ms > 0);
        }
      }
    }
  }
}

TEST(Calibration, AShortBudgetGoesToTheOutlineAndToNarrowPasses) {
  VirtualTimer timer = processor(40);
  const CalibrationPlan plan = {.max_width = 64, .tile = 1, .budget_s = 12};
  const CostTable table = calibrate(timer, plan);
  const auto widths = measured_widths(table, reference_context(plan));
  for (const uint32_t width : {1u, 2u, 3u, 4u, 5u, 6u, 8u, 16u}) EXPECT_TRUE(widths.contains(width)) << width;
  EXPECT_LT(widths.size(), 30u);
  EXPECT_TRUE(table.has_draft());
  EXPECT_GT(measured_widths(table, plan.max_context).size(), 0u);
  EXPECT_LT(worst_error(table, timer, 16, {512}), 0.15);
}

TEST(Calibration, StopsWhenTold) {
  for (const int passes : {0, 1, 2, 10, 100}) {
    VirtualTimer timer = gpu();
    timer.stop_after = passes;
    try {
      calibrate(timer, {});
      FAIL() << "it was not stopped";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::cancelled);
    }
    EXPECT_EQ(timer.count, passes);
  }
}

TEST(Calibration, ReportsItsProgress) {
  VirtualTimer timer = processor(40);
  timer.noise = 0.03;
  std::vector<CalibrationProgress> seen;
  std::vector<double> at;
  calibrate(timer, {.max_width = 128}, [&](const CalibrationProgress& p) {
    seen.push_back(p);
    at.push_back(spent(timer));
  });
  ASSERT_EQ(seen.size(), static_cast<size_t>(timer.count) + 1);
  for (size_t i = 0; i + 1 < seen.size(); ++i) {
    EXPECT_EQ(seen[i].done, i + 1);
    EXPECT_GE(seen[i].total, seen[i].done);
    EXPECT_GE(seen[i].seconds_left, 0);
    EXPECT_LE(seen[i].seconds_left + at[i], 90 + 1e-9);
  }
  EXPECT_EQ(seen.back().done, seen.back().total);
  EXPECT_EQ(seen.back().seconds_left, 0);
  // Half way through, the predicted time left is right within a factor of two.
  const size_t half = std::lower_bound(at.begin(), at.end(), at.back() / 2) - at.begin();
  EXPECT_GT(seen[half].seconds_left, 0.25 * at.back());
  EXPECT_LT(seen[half].seconds_left, 1.0 * at.back());
}

/// A device whose clock sometimes gives no time.
class BrokenClock : public VirtualTimer {
 public:
  double bad = 0;
  int every = 3;  // every how many-th call; 1: always
  double verify_ms(uint32_t width, uint32_t context) override {
    const double ms = VirtualTimer::verify_ms(width, context);
    return count % every == 0 ? bad : ms;
  }
};

TEST(Calibration, PassesOverWhatIsNoTime) {
  for (const double bad : {0.0, -3.0, std::nan(""), std::numeric_limits<double>::infinity(), 1e12}) {
    BrokenClock timer;
    timer.verify = gpu_ms;
    timer.draft = gpu_draft_ms;
    timer.bad = bad;
    const CostTable table = calibrate(timer, {.max_width = 64});
    EXPECT_LT(worst_error(table, timer, 64, {512}), 1e-3) << bad;

    BrokenClock none;
    none.verify = gpu_ms;
    none.draft = gpu_draft_ms;
    none.bad = bad;
    none.every = 1;
    test::expect_error("no usable time for a pass of one row", [&] { calibrate(none, {}); });
  }
}

TEST(Calibration, EndsWhenTheClockStandsStillOrRunsBackwards) {
  class OddClock : public VirtualTimer {
   public:
    double step = 0;
    double now() override { return odd_ += step; }

   private:
    double odd_ = 5;
  };
  for (const double step : {0.0, -1.0, std::nan("")}) {
    OddClock timer;
    timer.verify = gpu_ms;
    timer.draft = gpu_draft_ms;
    timer.noise = 0.2;
    timer.step = step;
    const CostTable table = calibrate(timer, {.max_width = 64});
    EXPECT_GE(measured_widths(table, 512).size(), 64u);
    EXPECT_LT(timer.count, 2000);
  }
}

TEST(Calibration, SmallModelsAndCaches) {
  VirtualTimer timer = gpu();
  const CalibrationPlan plan = {.block = 2, .max_width = 1, .tile = 1, .max_backlog = 1, .max_context = 16};
  const CostTable table = calibrate(timer, plan);
  for (const auto& [at, count] : timer.passes) {
    EXPECT_EQ(at.first, 1u);
    EXPECT_LE(at.second, 16u);
  }
  for (const auto& [at, count] : timer.drafts) EXPECT_EQ(at.first, 1u);
  EXPECT_GT(table.verify_ms(1, 16), 0);
}

TEST(Calibration, NoPassGoesBeyondThePlan) {
  VirtualTimer timer = gpu();
  const CalibrationPlan plan = {.max_width = 100, .tile = 24, .max_backlog = 20, .max_context = 1000};
  calibrate(timer, plan);
  std::set<uint32_t> wide;
  for (const auto& [at, count] : timer.passes) {
    EXPECT_LE(at.first, 100u);
    EXPECT_LE(at.second, 1000u);
    if (at.first > 64) wide.insert(at.first);
  }
  EXPECT_EQ(wide, (std::set<uint32_t>{72, 96}));
  for (const auto& [at, count] : timer.drafts) EXPECT_LE(at.first, 20u);
}

TEST(Calibration, RefusesPlansThatCannotBe) {
  const auto expect_refused = [](const char* message, auto change) {
    CalibrationPlan plan;
    change(plan);
    VirtualTimer timer = gpu();
    test::expect_error(message, [&] { calibrate(timer, plan); });
    EXPECT_EQ(timer.count, 0);
  };
  expect_refused("block size is 1", [](CalibrationPlan& p) { p.block = 1; });
  expect_refused("largest width is 0", [](CalibrationPlan& p) { p.max_width = 0; });
  expect_refused("largest width is 4294967295", [](CalibrationPlan& p) { p.max_width = UINT32_MAX; });
  expect_refused("tile is 0", [](CalibrationPlan& p) { p.tile = 0; });
  expect_refused("largest backlog is 0", [](CalibrationPlan& p) { p.max_backlog = 0; });
  expect_refused("largest context is 15", [](CalibrationPlan& p) { p.max_context = 15; });
  for (const double bad : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    expect_refused("time is", [&](CalibrationPlan& p) { p.budget_s = bad; });
  }
}

}  // namespace
}  // namespace canopy
