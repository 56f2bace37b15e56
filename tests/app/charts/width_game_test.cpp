// Guess the width.

#include "app/charts/watch_numbers_view.h"

#include <gtest/gtest.h>

namespace canopy::app {
namespace {

/// A pass of 25 rows whose best budget in hindsight is 7, if plain decoding is slower than that.
BudgetView some_budget(double plain = 10) {
  BudgetView budget;
  budget.ar_tokens_per_second = plain;
  for (uint32_t width = 1; width <= 25; ++width) {
    const double tokens = width >= 8 ? 5 : width >= 4 ? 2 : 1;
    budget.measured.push_back({width, tokens, 20 + 10.0 * width});
  }
  budget.hindsight = budget.measured[7];
  return budget;
}

TEST(WidthGame, TheBestIsThatOfHindsightOrPlainDecoding) {
  EXPECT_EQ(best_guesses(some_budget()), 7u);
  EXPECT_EQ(best_guesses(some_budget(900)), 0u);
  EXPECT_EQ(best_guesses({}), std::nullopt);
}

TEST(WidthGame, AsksForEachPassOnce) {
  WidthGame game;
  game.show(3, some_budget());
  EXPECT_FALSE(game.asking()) << "it is off";
  game.set(true);
  game.show(3, some_budget());
  EXPECT_TRUE(game.asking());
  EXPECT_EQ(game.verdict(), "");
  game.answer(2);
  EXPECT_FALSE(game.asking());
  EXPECT_EQ(game.verdict(), "Right: 7 was best afterwards.");
  game.answer(0);
  game.show(3, some_budget());
  EXPECT_EQ(game.points(), "1 of 1 right");
  game.show(4, some_budget(900));
  EXPECT_TRUE(game.asking());
  game.answer(3);
  EXPECT_EQ(game.verdict(), "You said 13 to 32; none was best afterwards: plain decoding.");
  EXPECT_EQ(game.points(), "1 of 2 right");
}

TEST(WidthGame, DoesNotAskWhereTheCostsAreNotKnown) {
  WidthGame game;
  game.set(true);
  game.show(1, {});
  EXPECT_FALSE(game.asking());
}

TEST(WidthGame, AnswersCoverEveryNumberOnce) {
  for (const uint32_t guesses : {0u, 1u, 4u, 5u, 12u, 13u, 32u, 33u, 1024u}) {
    int held = 0;
    for (const WidthAnswer& answer : kWidthAnswers) held += guesses >= answer.least && guesses <= answer.most;
    EXPECT_EQ(held, 1) << guesses;
  }
}

}  // namespace
}  // namespace canopy::app
