// The words of the tour.

#include "app/shell/tour.h"

#include <gtest/gtest.h>

#include "app/state/round_log.h"
#include "app/state/settings.h"
#include "app/state/shell.h"

namespace canopy::test {
namespace {

std::string words_of(const app::TourStep& step) {
  std::string all;
  for (const app::TourWords& part : step.words) all += part.text;
  return all;
}

app::TourFacts some_facts() {
  app::TourFacts facts;
  facts.guesses = 24;
  facts.right = 6;
  facts.emitted = 7;
  facts.favourite = ".";
  facts.taken = "stack";
  facts.own = "append";
  facts.chain = 5;
  facts.tokens_per_pass = "5.3";
  return facts;
}

TEST(TourText, EveryStepIsShortAndHasItsPlace) {
  for (const DraftSources sources : {kFromDflash, kFromSuffix, kUsualSources})
    for (uint32_t i = 0; i < app::kTourSteps; ++i) {
      app::TourFacts facts = some_facts();
      facts.sources = sources;
      facts.match = 14;
      const app::TourStep step = app::tour_step(i, facts);
      EXPECT_FALSE(step.title.empty());
      EXPECT_LE(words_of(step).size(), 360u) << step.title;
      EXPECT_FALSE(step.parts.empty()) << step.title;
    }
}

TEST(TourText, SaysThatTheTextItselfWasGuessedFrom) {
  app::TourFacts facts = some_facts();
  facts.sources = kFromSuffix;
  facts.match = 14;
  const std::string words = words_of(app::tour_step(1, facts));
  EXPECT_NE(words.find("The last 14 tokens of the text were written before"), std::string::npos) << words;
  EXPECT_EQ(words.find("smaller model"), std::string::npos) << words;
  EXPECT_TRUE(
      words_of(app::tour_step(3, facts)).starts_with("The likeliest guess was ., but the big model wanted stack"))
      << words_of(app::tour_step(3, facts));
  facts.sources = kUsualSources;
  EXPECT_NE(words_of(app::tour_step(1, facts)).find("with a filled corner"), std::string::npos);
}

TEST(TourText, TheTreeIsComparedWithAChainInTheWordsOfThePass) {
  const app::TourStep step = app::tour_step(3, some_facts());
  EXPECT_EQ(words_of(step),
            "The drafter liked . best, but the big model wanted stack. A guess that does not fit (orange) is dropped "
            "with everything behind it: a single chain would have ended here with 5 tokens. The tree held both and "
            "brought 7 in the same pass.");
  ASSERT_EQ(step.figure.size(), 2u);
  EXPECT_EQ(step.figure[0].tokens, 5u);
  EXPECT_EQ(step.figure[1].tokens, 7u);
}

TEST(TourText, SaysWhenAPassCostsMoreThanItBrings) {
  app::TourFacts facts = some_facts();
  facts.plain_tokens = "11";
  facts.slower = true;
  EXPECT_NE(words_of(app::tour_step(5, facts)).find("There it was 11 of them: more than a pass brings."),
            std::string::npos);
  facts.plain_tokens = "1.6";
  facts.slower = false;
  EXPECT_NE(words_of(app::tour_step(5, facts)).find("There it was only 1.6."), std::string::npos);
}

TEST(TourText, SaysAtTheEndWhetherItPaysHereAndWhatTheRecordingAlwaysDoes) {
  app::TourFacts facts = some_facts();
  const std::string pays = words_of(app::tour_step(6, facts));
  EXPECT_EQ(pays.find("as here"), std::string::npos);
  EXPECT_NE(pays.find("always makes 24 guesses"), std::string::npos);
  facts.slower = true;
  EXPECT_NE(words_of(app::tour_step(6, facts)).find("costs more than it brings, as here,"), std::string::npos);
}

TEST(TourText, WithoutSuchAPlaceItExplainsTheTreeAllTheSame) {
  EXPECT_NE(words_of(app::tour_step(3, {})).find("second and third choices"), std::string::npos);
}

// The pass that the tour shows is one whose text left the drafter's favourite.
TEST(Tour, FindsATellingRoundInTheDemo) {
  const app::TraceLog log(CANOPY_SOURCE_DIR "/assets/demos/code.canopytrace");
  const size_t round = app::telling_round(log);
  EXPECT_GE(log.summary(round).emitted, 5u);
  bool left = false;
  for (const RoundNode& row : log.round(round)->nodes)
    left = left || (row.state == NodeState::accepted && row.node.rank > 0);
  EXPECT_TRUE(left);
}

}  // namespace
}  // namespace canopy::test
