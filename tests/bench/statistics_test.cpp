#include "engine/bench/sweep_summary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace canopy {
namespace {

TEST(Statistics, SpreadIsThatOfASample) {
  const std::vector<double> values = {2, 4, 4, 4, 5, 5, 7, 9};
  const Spread spread = spread_of(values);
  EXPECT_DOUBLE_EQ(spread.mean, 5);
  EXPECT_NEAR(spread.sd, std::sqrt(32.0 / 7), 1e-12);
  EXPECT_NEAR(spread.error(), spread.sd / std::sqrt(8.0), 1e-12);
}

TEST(Statistics, OneValueHasNoSpreadAndNoneHasNothing) {
  EXPECT_EQ(spread_of(std::vector<double>{3}).sd, 0);
  EXPECT_EQ(spread_of(std::vector<double>{3}).error(), 0);
  EXPECT_EQ(spread_of({}).count, 0u);
}

TEST(Statistics, ARatioIsThatOfThePairsAndNotOfTheMeans) {
  // The device became half as fast in between; each pair says 1.5.
  const std::vector<std::pair<double, double>> pairs = {{150, 100}, {75, 50}, {150, 100}};
  const Ratio ratio = ratio_of_pairs(pairs);
  EXPECT_NEAR(ratio.value, 1.5, 1e-12);
  EXPECT_NEAR(ratio.error, 0, 1e-12);
  EXPECT_EQ(ratio.pairs, 3u);
}

TEST(Statistics, TheOtherWayRoundIsTheReciprocal) {
  const std::vector<std::pair<double, double>> pairs = {{3, 2}, {5, 3}, {8, 6}};
  std::vector<std::pair<double, double>> turned;
  for (const auto& [a, b] : pairs) turned.emplace_back(b, a);
  const Ratio ratio = ratio_of_pairs(pairs), other = ratio_of_pairs(turned);
  EXPECT_NEAR(ratio.value * other.value, 1, 1e-12);
  EXPECT_NEAR(ratio.error / ratio.value, other.error / other.value, 1e-12);
}

TEST(Statistics, AnErrorNeedsTwoPairs) {
  const std::vector<std::pair<double, double>> one = {{3, 2}};
  EXPECT_TRUE(ratio_of_pairs(one).known());
  EXPECT_FALSE(ratio_of_pairs(one).has_error());
  EXPECT_FALSE(ratio_of_pairs(one).differs_from_one());
  EXPECT_FALSE(ratio_of_pairs({}).known());
}

TEST(Statistics, PairsThatAreNoSpeedsAreLeftOut) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<std::pair<double, double>> pairs = {{0, 1}, {1, 0}, {inf, 1}, {1, std::nan("")}, {4, 2}};
  const Ratio ratio = ratio_of_pairs(pairs);
  EXPECT_EQ(ratio.pairs, 1u);
  EXPECT_DOUBLE_EQ(ratio.value, 2);
}

/// The error says how far the value is from the truth: of many experiments, about two of three lie within it.
TEST(Statistics, TheErrorOfARatioCoversTheTruth) {
  std::mt19937 random(7);
  std::normal_distribution<double> noise(0, 0.05);
  constexpr int experiments = 2000, repeats = 8;
  int within = 0;
  for (int i = 0; i < experiments; ++i) {
    std::vector<std::pair<double, double>> pairs;
    for (int k = 0; k < repeats; ++k) pairs.emplace_back(1.4 * std::exp(noise(random)), 1.0 * std::exp(noise(random)));
    const Ratio ratio = ratio_of_pairs(pairs);
    within += std::abs(ratio.value - 1.4) <= ratio.error ? 1 : 0;
  }
  // Student's t with 7 degrees of freedom: 0.649 lie within one standard error.
  EXPECT_NEAR(static_cast<double>(within) / experiments, 0.649, 0.04);
}

TEST(Statistics, OnlyWhatIsFarFromOneDiffersFromIt) {
  EXPECT_TRUE((Ratio{1.2, 0.05, 5}.differs_from_one()));
  EXPECT_FALSE((Ratio{1.08, 0.05, 5}.differs_from_one()));
  EXPECT_TRUE((Ratio{0.8, 0.05, 5}.differs_from_one()));
  // Few pairs tell little of their own error.
  EXPECT_FALSE((Ratio{1.2, 0.05, 3}.differs_from_one()));
  EXPECT_TRUE((Ratio{1.22, 0.05, 3}.differs_from_one()));
  EXPECT_FALSE((Ratio{1.6, 0.05, 2}.differs_from_one()));
  EXPECT_TRUE((Ratio{1.65, 0.05, 2}.differs_from_one()));
  EXPECT_FALSE((Ratio{3, 0, 1}.differs_from_one()));
  EXPECT_TRUE((Ratio{1.11, 0.05, 1000}.differs_from_one()));
}

}  // namespace
}  // namespace canopy
