#include "engine/speculation/round_record.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace canopy {
namespace {

/// A tree whose gain becomes smaller with every node, on a device with the given times.
struct Case {
  std::vector<double> tree, chain = {1}, ms;
  WidthCurves curves(WidthObjective objective, double tokens_per_ms = 0.1) const {
    return {.tree = tree,
            .chain = chain,
            .ms = ms,
            .longest_ms = 1e9,
            .tokens_per_ms = tokens_per_ms,
            .objective = objective};
  }
};

Case diminishing(uint32_t widest, double (*ms)(uint32_t)) {
  Case made;
  for (uint32_t width = 1; width <= widest; ++width) {
    made.tree.push_back(1 + std::log2(width));
    made.ms.push_back(ms(width));
  }
  return made;
}

TEST(ChooseWidth, FindsTheBestBeyondACliff) {
  // The first cliff is worth crossing for many rows, but not for one.
  const Case made = diminishing(64, [](uint32_t w) { return w <= 4 ? 10.0 + 3 * w : w <= 40 ? 24.0 : 60.0; });
  EXPECT_EQ(choose_width(made.curves(WidthObjective::per_round)).best.width, 40u);
  EXPECT_EQ(choose_width(made.curves(WidthObjective::long_run)).best.width, 40u);
}

TEST(ChooseWidth, IsTheBestOfAllWidthsWhateverTheTimes) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> uniform(5, 40);
  for (int i = 0; i < 200; ++i) {
    Case made = diminishing(200, [](uint32_t) { return 1.0; });
    for (double& ms : made.ms) ms = uniform(random);
    const WidthCurves curves = made.curves(i % 2 == 0 ? WidthObjective::per_round : WidthObjective::long_run);
    const WidthChoice choice = choose_width(curves);
    for (uint32_t width = 1; width <= 200; ++width) {
      if (!may_occur(width, 200)) continue;
      EXPECT_LE(worth(curves, made.tree[width - 1], made.ms[width - 1]),
                worth(curves, choice.best.expected, choice.best.ms));
    }
    EXPECT_TRUE(may_occur(choice.best.width, 200));
  }
}

TEST(ChooseWidth, WideTreesComeInSteps) {
  EXPECT_TRUE(may_occur(63, 512));
  EXPECT_FALSE(may_occur(65, 512));
  EXPECT_TRUE(may_occur(80, 512));
  EXPECT_TRUE(may_occur(77, 77));
}

// Averaging ratios of single rounds gives long rounds too little weight: the paper's objective takes 4 tokens in 9 ms,
// the other one 9 tokens in 21 ms.
TEST(ChooseWidth, ObjectivesDiffer) {
  const Case made{.tree = {1, 4, 9}, .ms = {8, 9, 21}};
  EXPECT_EQ(choose_width(made.curves(WidthObjective::per_round)).best.width, 2u);
  EXPECT_EQ(choose_width(made.curves(WidthObjective::long_run, 0.25)).best.width, 3u);
  EXPECT_EQ(choose_width(made.curves(WidthObjective::long_run, 0.5)).best.width, 2u);
  EXPECT_EQ(choose_width(made.curves(WidthObjective::long_run, 5)).shape, DecodeMode::ar);
}

TEST(ChooseWidth, StaysWithinTheTimeItIsGivenAndDecodesPlainlyWhereNothingFits) {
  const Case made = diminishing(32, [](uint32_t w) { return 10 + 0.1 * w; });
  WidthCurves curves = made.curves(WidthObjective::per_round);
  curves.longest_ms = 11.05;
  EXPECT_EQ(choose_width(curves).best.width, 10u);
  curves.longest_ms = 0;
  EXPECT_EQ(choose_width(curves).best.width, 1u);
  EXPECT_EQ(choose_width(curves).shape, DecodeMode::ar);
}

TEST(ChooseWidth, AChainMustBeClearlyBetter) {
  Case made{.tree = {1, 1.5, 2}, .chain = {1, 1.5, 2.01}, .ms = {10, 10, 10}};
  EXPECT_EQ(choose_width(made.curves(WidthObjective::per_round)).shape, DecodeMode::tree);
  made.chain = {1, 2.0, 2.4};
  const WidthChoice choice = choose_width(made.curves(WidthObjective::per_round));
  EXPECT_EQ(choice.shape, DecodeMode::chain);
  EXPECT_EQ(choice.best.width, 3u) << "the best chain, not the first that beats the tree";
}

TEST(Forecasts, AreThinnedButHoldWhatMatters) {
  for (const uint32_t widest : {1u, 2u, 40u, 41u, 64u, 65u, 300u, 1025u}) {
    const Case made = diminishing(widest, [](uint32_t w) { return 10.0 + w; });
    for (const uint32_t chosen : {1u, std::min(47u, widest), widest}) {
      const auto shown = forecasts(made.curves(WidthObjective::per_round), chosen);
      EXPECT_LE(shown.size(), 64u) << widest;
      EXPECT_EQ(shown.front().width, 1u);
      EXPECT_EQ(shown.back().width, widest);
      bool found = false;
      for (size_t i = 0; i < shown.size(); ++i) {
        if (i > 0) {
          EXPECT_LT(shown[i - 1].width, shown[i].width);
        }
        found = found || shown[i].width == chosen;
        EXPECT_DOUBLE_EQ(shown[i].ms, 10.0 + shown[i].width);
      }
      EXPECT_TRUE(found) << widest << " " << chosen;
    }
    if (widest >= 40) {
      EXPECT_EQ(forecasts(made.curves(WidthObjective::per_round), 1)[39].width, 40u);
    }
  }
}

TEST(WidthLimits, CountTheRootAndTheBonus) {
  WidthLimits limits{.budget = 16};
  EXPECT_EQ(limits.widest(), 17u);
  limits.rows = 9;
  EXPECT_EQ(limits.widest(), 9u);
  limits = {.depth = 7, .tokens_left = 5, .context_left = 100};
  EXPECT_EQ(limits.deepest(), 4u) << "four drafted and the target's own";
  limits.context_left = 3;
  EXPECT_EQ(limits.deepest(), 2u) << "the root takes a position too";
  limits.context_left = 0;
  EXPECT_EQ(limits.deepest(), 0u);
}

}  // namespace
}  // namespace canopy
