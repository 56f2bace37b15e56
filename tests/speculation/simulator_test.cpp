// The controller in virtual time: issues of cost and choice that no device is needed for.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "tests/speculation/simulator_table.h"

namespace canopy::test {
namespace {

// Fixed widths that differ by one differ by some 4% over 2,400 easy tokens (400 rounds), by luck alone, and the best of
// them in hindsight is the luckiest: hence several texts of a kind, and one fixed way for all of them. What is learnt
// of drafter and device in the first rounds of each is in the sum. Over four texts the luckiest of 78 ways
// is still some 0.5% ahead of what it would be in the long run; simulator_long_test asks the limits themselves of
// longer texts.
TEST(Simulator, KeepsTheBoundAndComesNearTheBestFixedWidthEverywhere) {
  Regrets regrets(Regrets::Best::of_all_seeds, 0.005);
  run_table({.texts = simulated_texts(), .devices = simulated_devices(), .tokens = 2400, .seeds = 4},
            [&](const TableRow& row) {
              expect_bound(row);
              regrets.add(row);
            });
  regrets.expect_small();
}

// Drafts are allowed when autoregressive decoding looks slow, and with a quarter of noise it often does so by chance:
// over 24,000 tokens that once bought 0.3% more time than the bound has.
TEST(Simulator, NoiseBuysNoTime) {
  run_table({.texts = texts_named({"hard", "adversarial"}),
             .devices = devices_named({"noisy linear", "noisy"}),
             .tokens = 24000,
             .hindsight = false},
            expect_bound);
}

// The drafter shows other probabilities than it has: the promise as ordered is nearer to what came than its own.
TEST(Simulator, CalibrationMakesPromisesTruer) {
  run_table({.texts = texts_named({"easy, too sure", "usual, unsure", "usual"}),
             .devices = devices_named({"roofline"}),
             .tokens = 4800},
            [](const TableRow& row) {
              const PromiseRecord& promises = *row.promises;
              std::printf("  error of the promise %.3f tokens, calibrated %.3f; bias %+.3f, %+.3f; correlation %.3f\n",
                          promises.raw_error(), promises.calibrated_error(), promises.raw_bias(),
                          promises.calibrated_bias(), promises.correlation());
              EXPECT_GT(promises.drafts(), 500u);
              EXPECT_GT(promises.correlation(), 0.2);
              const bool honest = row.text == "usual";  // nothing to gain, and next to nothing to lose
              EXPECT_LT(promises.calibrated_error(), (honest ? 1.01 : 1) * promises.raw_error()) << row.text;
              if (honest) return;
              EXPECT_LT(std::abs(promises.calibrated_bias()), std::abs(promises.raw_bias())) << row.text;
            });
}

}  // namespace
}  // namespace canopy::test
