#include "engine/speculation/controller.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "tests/base/expect_error.h"

namespace canopy {
namespace {

using test::expect_error;

// Whatever rounds cost and bring, the bound holds at every moment as long as a draft runs only when it is allowed.
TEST(SpeculationBound, HoldsWhateverTheRoundsBring) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform(0, 1);
    SpeculationBound bound({});
    const double ar = 10, round = 12 + 20 * uniform(random);
    double elapsed = 0, plainly = 0;
    uint32_t refused = 0;
    for (int i = 0; i < 2000; ++i) {
      const double cost = round * (1 + uniform(random));
      if (bound.allows(cost, ar, round)) {
        const uint32_t tokens = uniform(random) < 0.1 ? 3 : 1;
        bound.speculated(cost, tokens, ar, false);
        elapsed += cost;
        plainly += tokens * ar;
      } else {
        ++refused;
        bound.decoded(ar);
        elapsed += ar;
        plainly += ar;
      }
      ASSERT_LE(elapsed, 1.02 * plainly + 2 * round + 1e-6) << "seed " << seed << ", round " << i;
    }
    EXPECT_GT(refused, 1000u);
  }
}

TEST(SpeculationBound, LetsRoundsRunThatPay) {
  SpeculationBound bound({});
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(bound.allows(15, 10, 15));
    bound.speculated(15, 2, 10, false);
  }
  EXPECT_NEAR(bound.balance_ms(), 1000 * (0.02 * 20 + 5), 1e-6);
}

TEST(SpeculationBound, ANewReplyKeepsDebtsAndNoGains) {
  SpeculationBound bound({});
  bound.speculated(15, 10, 10, false);
  EXPECT_GT(bound.balance_ms(), 0);
  bound.begin_reply();
  EXPECT_EQ(bound.balance_ms(), 0);
  bound.speculated(25, 1, 10, false);
  const double debt = bound.balance_ms();
  EXPECT_LT(debt, 0);
  bound.begin_reply();
  EXPECT_EQ(bound.balance_ms(), debt);
}

TEST(SpeculationBound, TrialsKeepTheirShareAndTheirIntervalIsCapped) {
  SpeculationBound bound({});
  uint32_t since = 0, trials = 0, longest = 0;
  double lost = 0;
  for (int i = 0; i < 20000; ++i, ++since) {
    if (!bound.may_try(2)) {
      bound.decoded(10);
      continue;
    }
    longest = std::max(longest, since);
    since = 0;
    ++trials;
    lost += 2;
    bound.speculated(12, 1, 10, true);
    ASSERT_LE(lost, 0.01 * 10 * (i + 1) + 2);
  }
  EXPECT_GT(trials, 60u);
  EXPECT_GE(longest, 200u);
  EXPECT_LE(longest, 257u);
}

TEST(SpeculationBound, ATrialThatPaysIsRepeatedAtOnce) {
  SpeculationBound bound({});
  for (int i = 0; i < 1000; ++i) bound.decoded(10);
  ASSERT_TRUE(bound.may_try(2));
  bound.speculated(14, 4, 10, true);
  EXPECT_EQ(bound.wait(), 1u);
  bound.decoded(10);
  EXPECT_TRUE(bound.may_try(2));
}

TEST(SpeculationBound, RefusesSettingsThatBoundNothing) {
  expect_error("slack", [] { SpeculationBound({.slack = -0.1}); });
  expect_error("rounds", [] { SpeculationBound({.rounds = std::numeric_limits<double>::quiet_NaN()}); });
  expect_error("trial_share", [] { SpeculationBound({.trial_share = std::numeric_limits<double>::infinity()}); });
  expect_error("shortest_wait 0", [] { SpeculationBound({.shortest_wait = 0}); });
  expect_error("longest_wait 4", [] { SpeculationBound({.longest_wait = 4}); });
}

}  // namespace
}  // namespace canopy
