// The sentence above the tree.

#include "app/tree/tree_model.h"

#include <gtest/gtest.h>

#include "tests/app/tree/tree_samples.h"

namespace canopy::test {
namespace {

std::string sentence(const RoundRecord& record, size_t emitted) {
  const app::TreeModel tree = app::tree_model(record);
  std::vector<std::string> labels;
  for (uint32_t i = 0; i < tree.size(); ++i) labels.push_back("w" + std::to_string(i));
  std::string words;
  for (const app::CaptionPart& part : app::tree_caption(tree, labels, emitted)) words += part.text;
  return words;
}

TEST(TreeCaption, SaysWhatWasRightAndWhatWasAdded) {
  EXPECT_EQ(sentence(small_round(), 3),
            "Two guesses were right, and the big model added w8 itself: three tokens from one pass.");
  EXPECT_EQ(sentence(sample_round({{0, 10, 0, .6}, {0, 11, 1, .3}}, {10, 99}), 2),
            "One guess was right, and the big model added w3 itself: two tokens from one pass.");
  EXPECT_EQ(sentence(sample_round({{0, 10, 0, .6}}, {99}), 1),
            "No guess was right, so the big model added w2 itself: one token from one pass.");
}

TEST(TreeCaption, SaysThatTheGuessesAreFromTheText) {
  EXPECT_EQ(sentence(text_round(), 3),
            "Two guesses from the text were right, and the big model added w8 itself: three tokens from one pass.");
  EXPECT_EQ(sentence(found_round(), 3), sentence(small_round(), 3)) << "the drafter was asked too";
}

TEST(TreeCaption, NamesTheDrafterOnlyWhereItGuessedAlone) {
  EXPECT_EQ(app::thickness_words(kFromDflash), "branch thickness: how sure the drafter was");
  EXPECT_EQ(app::thickness_words(0), app::thickness_words(kFromDflash));
  EXPECT_EQ(app::thickness_words(kFromSuffix), "branch thickness: how sure the guess was");
  EXPECT_EQ(app::chain_note_lines({2, false}, 5, kFromDflash)[0], "The drafter\u2019s favourite.");
  EXPECT_EQ(app::chain_note_lines({2, false}, 5, kFromSuffix)[0], "The likeliest guess.");
}

TEST(TreeCaption, SaysThatTheTextEndedInsideTheTree) {
  EXPECT_EQ(sentence(sample_round({{0, 10, 0, .6}, {1, 20, 0, .5}}, {10}), 1),
            "One guess was right, and the text ended there: one token from one pass.");
}

TEST(TreeCaption, SaysThatNothingWasGuessed) {
  RoundRecord plain;
  plain.emitted = {7};
  EXPECT_EQ(sentence(plain, 1),
            "Nothing was guessed: the big model wrote one token from one pass. That is plain decoding.");
}

TEST(TreeCaption, SaysWhenFarFewerGuessesWouldHaveDone) {
  std::vector<SampleNode> drafted = {{0, 10, 0, .6}, {1, 20, 0, .5}};
  for (uint32_t i = 0; i < 14; ++i) drafted.push_back({0, 30 + i, i + 1, 0.01});
  EXPECT_EQ(sentence(sample_round(drafted, {10, 20, 99}), 3),
            "Two guesses were right, and the big model added w17 itself: three tokens from one pass. Two guesses would "
            "have brought the same.");
}

TEST(TreeCaption, HasABriefForm) {
  const app::TreeModel tree = app::tree_model(small_round());
  const auto parts = app::brief_caption(tree, 3);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].text + parts[1].text, "Two guesses were right: three tokens from one pass.");
  EXPECT_EQ(app::brief_caption(app::tree_model(sample_round({{0, 10, 0, .6}}, {99})), 1).front().text,
            "One token from one pass.");
  EXPECT_EQ(app::briefest_caption(3).front().text, "Three tokens from one pass.");
}

TEST(TreeCaption, SpellsSmallNumbers) {
  EXPECT_EQ(app::spelled(12), "twelve");
  EXPECT_EQ(app::spelled(13), "13");
  EXPECT_EQ(app::capitalised("four"), "Four");
}

}  // namespace
}  // namespace canopy::test
