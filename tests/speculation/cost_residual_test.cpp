// Learning how long a device takes at present: quickly, but not misled by single passes or a bad clock.

#include "engine/speculation/pass_cost.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace canopy {
namespace {

TEST(RatioMean, FollowsADeviceThatChanges) {
  RatioMean mean;
  EXPECT_DOUBLE_EQ(mean.value(), 1);
  for (int i = 0; i < 40; ++i) mean.add(10, 15);
  EXPECT_NEAR(mean.value(), 1.5, 0.02);
  for (int i = 0; i < 40; ++i) mean.add(10, 30);  // far from the mean: counts from the second time on
  EXPECT_NEAR(mean.value(), 3, 0.05);
  for (int i = 0; i < 40; ++i) mean.add(10, 8);
  EXPECT_NEAR(mean.value(), 0.8, 0.05);
}

TEST(RatioMean, BelievesAJumpThatLastsWithinAFewPasses) {
  RatioMean mean;
  for (int i = 0; i < 30; ++i) mean.add(10, 10);
  for (int i = 0; i < 6; ++i) mean.add(10, 20);
  EXPECT_GT(mean.value(), 1.6);
}

TEST(RatioMean, ASinglePassFarFromTheOthersDoesNotCount) {
  RatioMean mean;
  for (int i = 0; i < 30; ++i) mean.add(10, 11);
  const double before = mean.value();
  for (int i = 0; i < 50; ++i) {
    mean.add(10, i % 2 == 0 ? 500 : 0.01);  // alternates between slow and fast, never the same twice in a row
    mean.add(10, 11);
  }
  EXPECT_NEAR(mean.value(), before, 0.01);
}

TEST(RatioMean, PassesOverWhatIsNoTime) {
  RatioMean mean;
  for (int i = 0; i < 10; ++i) mean.add(10, 12);
  const double before = mean.value();
  const double infinite = std::numeric_limits<double>::infinity();
  for (const double bad : {0.0, -5.0, std::nan(""), infinite, -infinite}) {
    EXPECT_FALSE(mean.add(10, bad));
    EXPECT_FALSE(mean.add(bad, 10));
  }
  EXPECT_DOUBLE_EQ(mean.value(), before);
}

TEST(RatioMean, StaysWithinItsBounds) {
  RatioMean slow, fast;
  for (int i = 0; i < 1000; ++i) {
    slow.add(1e-6, 1e9);
    fast.add(1e9, 1e-6);
  }
  EXPECT_LE(slow.value(), RatioMean::bound);
  EXPECT_GE(fast.value(), 1 / RatioMean::bound);
}

TEST(RatioMean, FindsTheMeanOfNoise) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> noise(0.8, 1.4);
  RatioMean mean;
  double sum = 0;
  for (int i = 0; i < 400; ++i) {
    mean.add(1, noise(random));
    if (i >= 100) sum += mean.value();
  }
  EXPECT_NEAR(sum / 300, 1.1, 0.03);
}

TEST(WidthResiduals, KeepsRangesApart) {
  WidthResiduals residuals;
  for (int i = 0; i < 30; ++i) {
    residuals.observe(1, 10, 10);
    residuals.observe(40, 10, 14);
  }
  EXPECT_NEAR(residuals.factor(1), 1, 0.02);
  for (const uint32_t width : {33u, 40u, 64u}) EXPECT_NEAR(residuals.factor(width), 1.4, 0.03) << width;
}

TEST(WidthResiduals, ARangeNotMetFollowsTheOthers) {
  WidthResiduals residuals;
  EXPECT_DOUBLE_EQ(residuals.factor(200), 1);
  for (int i = 0; i < 30; ++i) residuals.observe(16, 10, 15);
  EXPECT_NEAR(residuals.factor(200), 1.5, 0.05);
  EXPECT_NEAR(residuals.factor(1), 1.5, 0.05);

  // A width observed once and long ago: the other widths are more reliable.
  WidthResiduals later;
  for (int i = 0; i < 30; ++i) later.observe(1, 10, 10);
  for (int i = 0; i < 300; ++i) later.observe(16, 10, 15);
  EXPECT_NEAR(later.factor(1), 1.5, 0.06);
}

TEST(WidthResiduals, TakesAnyWidthAndNoBadTime) {
  WidthResiduals residuals;
  for (const uint32_t width : {0u, 1u, 65536u, UINT32_MAX}) {
    EXPECT_FALSE(residuals.observe(width, 10, std::nan("")));
    EXPECT_FALSE(residuals.observe(width, 10, -1));
    EXPECT_DOUBLE_EQ(residuals.factor(width), 1);
    EXPECT_TRUE(residuals.observe(width, 10, 10));
  }
}

CostTable steady_table() {
  CostTable table;
  for (uint32_t width = 1; width <= 64; width *= 2) table.set_verify(width, 512, 10.0 + width);
  return table;
}

TEST(CostDrift, SaysNothingBeforeItHasSeenEnough) {
  const CostTable table = steady_table();
  CostDrift drift;
  for (uint32_t i = 0; i < CostDrift::enough_passes; ++i) drift.add(table, 1, 512, 22);
  drift.end_reply();
  EXPECT_FALSE(drift.off());
  EXPECT_FALSE(drift.is_far());
  drift.end_reply();
  EXPECT_FALSE(drift.off()) << "a reply without a pass is none";
  drift.add(table, 1, 512, 22);
  drift.end_reply();
  ASSERT_TRUE(drift.off());
  EXPECT_NEAR(*drift.off(), 1, 0.05);
  EXPECT_NEAR(drift.ratio(), 2, 0.05);
}

TEST(CostDrift, CountsRangesOfWidthsBesideEachOther) {
  const CostTable table = steady_table();
  CostDrift drift;
  // Narrow passes as measured, wide ones take half again as long: on both the width is chosen.
  for (int i = 0; i < 200; ++i) {
    drift.add(table, 1, 512, 11);
    if (i % 4 == 0) drift.add(table, 32, 512, 63);
    if (i % 100 == 0) drift.end_reply();
  }
  EXPECT_NEAR(*drift.off(), 0.25, 0.05);
  EXPECT_TRUE(drift.is_far());
}

TEST(CostDrift, TakesLongerHereAndShorterThereForADistance) {
  const CostTable table = steady_table();
  CostDrift drift;
  for (int i = 0; i < 200; ++i) {
    drift.add(table, 1, 512, 11 * 1.3);
    drift.add(table, 32, 512, 42 * 0.7);
    drift.end_reply();
  }
  EXPECT_NEAR(drift.ratio(), 1, 0.05);
  EXPECT_NEAR(*drift.off(), 0.3, 0.05);
}

TEST(CostDrift, KnowsNothingOfAnEmptyTable) {
  CostDrift drift;
  drift.add(CostTable(), 1, 512, 10);
  drift.add(steady_table(), 1, 512, std::numeric_limits<double>::quiet_NaN());
  drift.end_reply();
  EXPECT_FALSE(drift.off());
  EXPECT_EQ(drift.ratio(), 1);
}

}  // namespace
}  // namespace canopy
