// The controller in virtual time: questions of costs and choice that need no device.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "tests/speculation/simulator_table.h"

namespace canopy::test {
namespace {

// Over 2,400 easy tokens (400 rounds), fixed widths that differ by one differ by some 4% by luck alone, and the best of
// them in hindsight is the luckiest. Therefore there are several texts of a kind and one fixed way for all of them. The
// sums include the first rounds, in which drafter and device are learnt. Over four texts the luckiest of 78 ways is
// still some 0.5% better than in the long run; simulator_long_test checks the limits themselves on longer texts.
TEST(Simulator, KeepsTheBoundAndComesNearTheBestFixedWidthEverywhere) {
  Regrets regrets(Regrets::Best::of_all_seeds, 0.005);
  run_table({.texts = simulated_texts(), .devices = simulated_devices(), .tokens = 2400, .seeds = 4},
            [&](const TableRow& row) {
              expect_bound(row);
              regrets.add(row);
            });
  regrets.expect_small();
}

// Drafts are allowed when plain decoding looks slow, which with noise of a quarter often happens by chance: over 24,000
// tokens that once cost 0.3% more time than the bound allows.
TEST(Simulator, NoiseBuysNoTime) {
  run_table({.texts = texts_named({"hard", "adversarial"}),
             .devices = devices_named({"noisy linear", "noisy"}),
             .tokens = 24000,
             .hindsight = false},
            expect_bound);
}

// The drafter shows wrong probabilities: the calibrated promise is nearer to the result than its own.
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
              const bool honest = row.text == "usual";  // a case with nothing to gain and next to nothing to lose
              EXPECT_LT(promises.calibrated_error(), (honest ? 1.01 : 1) * promises.raw_error()) << row.text;
              if (honest) return;
              EXPECT_LT(std::abs(promises.calibrated_bias()), std::abs(promises.raw_bias())) << row.text;
            });
}

}  // namespace
}  // namespace canopy::test
