#include "engine/speculation/acceptance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/base/expect_error.h"

namespace canopy {
namespace {

/// The outcome of a draft of one depth with one candidate of probability q, which is right with probability `truth`.
DraftOutcome draft(double q, double truth, std::mt19937& random) {
  DraftOutcome outcome;
  outcome.chain_predicted = {q};
  outcome.predicted = {0, q};
  outcome.listed = 1;
  outcome.log_q = {static_cast<float>(std::log(q))};
  const bool hit = std::uniform_real_distribution<double>()(random) < truth;
  outcome.ranks = {hit ? 0 : DraftOutcome::no_rank};
  if (hit) outcome.reach = {2};
  return outcome;
}

/// The calibrated probability of q at depth 1.
double calibrated(const DepthCalibrator& calibrator, double q) {
  const DepthCalibration c = calibrator.calibration(1)[0];
  return std::exp(std::min(0.0, c.scale * std::log(q) + c.shift));
}

TEST(DepthCalibration, IsTheDrafterAtFirstAndHardlyChangesWithAFewDrafts) {
  DepthCalibrator calibrator(3);
  for (const DepthCalibration& c : calibrator.calibration(3)) {
    EXPECT_EQ(c.scale, 1);
    EXPECT_EQ(c.shift, 0);
  }
  std::mt19937 random(1);
  for (int i = 0; i < 2; ++i) calibrator.learn(draft(0.8, 0, random));
  EXPECT_GT(calibrated(calibrator, 0.8), 0.5);
}

// The drafter says q while the truth is exp(a log q + b), so it is too confident or not confident enough.
TEST(DepthCalibration, FindsTheLineThatTheTruthFollows) {
  for (const auto& [a, b] : {std::pair{1.0, 0.0}, {1.0, -0.7}, {2.0, -0.1}, {0.5, -0.05}, {1.5, 0.0}}) {
    DepthCalibrator calibrator(1);
    std::mt19937 random(2);
    std::uniform_real_distribution<double> uniform(0.05, 0.98);
    for (int i = 0; i < 4000; ++i) {
      const double q = uniform(random);
      calibrator.learn(draft(q, std::exp(a * std::log(q) + b), random));
    }
    for (const double q : {0.2, 0.4, 0.6, 0.8, 0.95}) {
      EXPECT_NEAR(calibrated(calibrator, q), std::exp(a * std::log(q) + b), 0.07) << a << " " << b << " at " << q;
    }
  }
}

TEST(DepthCalibration, NeverTurnsTheOrderRound) {
  DepthCalibrator calibrator(1);
  std::mt19937 random(3);
  for (int i = 0; i < 3000; ++i) {
    const double q = i % 2 == 0 ? 0.9 : 0.3;
    calibrator.learn(draft(q, 1 - q, random));
  }
  const DepthCalibration c = calibrator.calibration(1)[0];
  EXPECT_GE(c.scale, 0);
  EXPECT_NEAR(calibrated(calibrator, 0.9), 0.4, 0.2);
}

TEST(DepthCalibration, FollowsADrafterThatChanges) {
  DepthCalibrator calibrator(1);
  std::mt19937 random(4);
  for (int i = 0; i < 2000; ++i) calibrator.learn(draft(0.7, 0.95, random));
  EXPECT_GT(calibrated(calibrator, 0.7), 0.85);
  for (int i = 0; i < 4000; ++i) calibrator.learn(draft(0.7, 0.2, random));
  EXPECT_LT(calibrated(calibrator, 0.7), 0.3);
}

TEST(DepthCalibration, LearnsOnlyWhereTheTrueTextReachedTheParent) {
  DepthCalibrator calibrator(2);
  DraftOutcome outcome;
  outcome.chain_predicted = {0.5, 0.3};
  outcome.predicted = {0, 0.5};
  outcome.listed = 1;
  outcome.log_q = {std::log(0.5f), std::log(0.5f)};
  outcome.ranks = {DraftOutcome::no_rank, 0};  // wrong at the first depth, so that the second gives no information
  for (int i = 0; i < 100; ++i) calibrator.learn(outcome);
  EXPECT_TRUE(calibrator.reliability(2).empty());
  EXPECT_EQ(calibrator.calibration(2)[1].scale, 1);
  EXPECT_LT(calibrated(calibrator, 0.5), 0.1);
}

TEST(DepthCalibration, ReliabilityShowsWhatWasSaidAndWhatCame) {
  DepthCalibrator calibrator(1);
  std::mt19937 random(5);
  for (int i = 0; i < 500; ++i) {
    calibrator.learn(draft(0.75, 0.5, random));
    calibrator.learn(draft(0.25, 0.25, random));
  }
  const auto bins = calibrator.reliability(1);
  ASSERT_EQ(bins.size(), 2u);
  EXPECT_NEAR(bins[0].predicted, 0.25, 1e-3);
  EXPECT_NEAR(bins[0].observed, 0.25, 0.08);
  EXPECT_NEAR(bins[1].predicted, 0.75, 1e-3);
  EXPECT_NEAR(bins[1].observed, 0.5, 0.08);
  EXPECT_NEAR(bins[1].calibrated, 0.5, 0.1);
  EXPECT_NEAR(bins[0].count + bins[1].count, (1 - std::pow(0.999, 1000)) / 0.001, 1);
  EXPECT_EQ(calibrator.reliability(0).size(), 2u);
  EXPECT_EQ(calibrator.drafts(), 1000u);
  test::expect_error("no depth 2", [&] { calibrator.reliability(2); });
}

// Probabilities of 1 that are all wrong or all right: the fit stays finite.
TEST(DepthCalibration, StaysFiniteForCertainties) {
  for (const bool right : {false, true}) {
    DepthCalibrator calibrator(1);
    DraftOutcome outcome;
    outcome.chain_predicted = {1};
    outcome.predicted = {0, 1};
    outcome.listed = 1;
    outcome.log_q = {0.0f};
    outcome.ranks = {right ? 0 : DraftOutcome::no_rank};
    if (right) outcome.reach = {2};
    for (int i = 0; i < 1000; ++i) calibrator.learn(outcome);
    const DepthCalibration c = calibrator.calibration(1)[0];
    ASSERT_TRUE(std::isfinite(c.scale) && std::isfinite(c.shift));
    EXPECT_GE(c.scale, 0);
    if (right) {
      EXPECT_GT(calibrated(calibrator, 0.9999), 0.97);
    }
    if (!right) {
      EXPECT_LT(calibrated(calibrator, 0.9999), 0.05);
    }
  }
}

}  // namespace
}  // namespace canopy
