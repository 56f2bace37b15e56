// The words that the window explains: each has a meaning, and labels that stand for the same thing lead to it.

#include "app/state/words.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "app/shell/focus_areas.h"
#include "app/shell/screen_regions.h"

namespace canopy::test {
namespace {

using app::find_term;

TEST(Terms, EachIsSaidOnceInOneOrTwoSentences) {
  std::set<std::string> names;
  for (const app::Term& term : app::terms()) {
    EXPECT_TRUE(names.insert(std::string(term.name)).second) << term.name;
    EXPECT_TRUE(term.meaning.ends_with('.')) << term.name;
    EXPECT_LE(term.meaning.size(), 180u) << term.name;
    EXPECT_EQ(find_term(term.name), &term) << "another term has the same label";
    EXPECT_TRUE(term.aliases.empty() || (term.aliases.starts_with('|') && term.aliases.ends_with('|'))) << term.name;
  }
}

TEST(Terms, LabelsOfTheWindowLeadToThem) {
  for (const char* label : {"pass",
                            "guess",
                            "Plain decoding",
                            "Big model",
                            "target",
                            "Drafter",
                            "MTP head",
                            "EAGLE-3 head",
                            "eagle3",
                            "Assistant",
                            "Text drafts",
                            "tree",
                            "node",
                            "root",
                            "budget",
                            "N",
                            "width",
                            "accepted",
                            "rejected",
                            "bonus",
                            "Tokens per pass",
                            "\u03c4",
                            "round",
                            "acceptance",
                            "AR",
                            "Cost of a pass",
                            "S(N)",
                            "\u00d7 plain",
                            "Ratio",
                            "Text",
                            "Way",
                            "Pass, ms",
                            "found in the text",
                            "confirmed text"})
    EXPECT_NE(find_term(label), nullptr) << label;
  EXPECT_EQ(find_term("AR"), find_term("plain decoding"));
  EXPECT_EQ(find_term("\u03c4"), find_term("tokens per pass"));
  EXPECT_EQ(find_term("times plain"), find_term("\u00d7 plain there"));
  EXPECT_EQ(find_term("prompt lookup"), find_term("text drafts"));
  EXPECT_EQ(find_term(""), nullptr);
  EXPECT_EQ(find_term("no such word"), nullptr);
}

// Recordings and sweeps keep the words of the field; names of files stay what they are.
TEST(Terms, SentencesOfTheFieldAreShownInTheWordsOfTheWindow) {
  using app::in_plain_words;
  EXPECT_EQ(in_plain_words("A tree of 24 drafted nodes was asked for."), "A tree of 24 guesses was asked for.");
  EXPECT_EQ(in_plain_words("adaptive is 1.34 \u00d7 ar here; same text"),
            "adaptive is 1.34 \u00d7 plain here; same text");
  EXPECT_EQ(in_plain_words("Plain: measured again after 128 rounds with drafts."),
            "Plain: measured again after 128 passes with guesses.");
  EXPECT_EQ(in_plain_words("ar, small-draft.gguf with ar.gguf at a/ar/b"),
            "plain, small-draft.gguf with ar.gguf at a/ar/b");
  EXPECT_EQ(in_plain_words("around the target's targets"), "around the big model's targets");
}

TEST(FocusOrder, IsThatOfThePartsAndTheBarIsLast) {
  const std::vector<app::ScreenRegion> drawn = {
      {"Top bar", {0, 0}, {900, 48}},          {"Watch chats", {0, 50}, {200, 500}},
      {"Watch chat", {200, 50}, {200, 500}},   {"Numbers", {400, 50}, {500, 70}},
      {"Caption", {400, 120}, {500, 40}},      {"Tree", {400, 160}, {500, 300}},
      {"Watch passes", {400, 500}, {500, 80}}, {"Budget line", {400, 470}, {500, 30}}};
  EXPECT_EQ(app::focus_order(drawn), (std::vector<std::string>{"Watch chats", "Watch chat", "Composer", "Tree",
                                                               "Watch passes", "Numbers", "Top bar"}));
}

// F1
TEST(ScreenRegions, TheChatSaysWhatEndsAReplyWhatLightsUpAndWhatTheChipsAre) {
  for (const char* part : {"Watch chat", "Chat"})
    for (const char* said : {"repeats itself", "lights up the place", "system prompt", "attached files", "tint"})
      EXPECT_NE(app::region_words(part).find(said), std::string_view::npos) << part << ": " << said;
}

TEST(ScreenRegions, AreNumberedFromTheTopAndOnce) {
  const std::vector<app::ScreenRegion> drawn = {{"Watch passes", {0, 500}, {900, 84}}, {"Tree", {300, 100}, {600, 300}},
                                                {"Watch chat", {0, 100}, {300, 300}},  {"Top bar", {0, 0}, {900, 48}},
                                                {"Top bar", {0, 0}, {900, 48}},        {"Legend", {0, 400}, {900, 0}},
                                                {"unheard of", {0, 0}, {900, 600}}};
  std::vector<std::string> names;
  for (const app::ScreenRegion& each : app::told_regions(drawn)) names.emplace_back(each.name);
  EXPECT_EQ(names, (std::vector<std::string>{"Top bar", "Watch chat", "Tree", "Watch passes"}));
}

}  // namespace
}  // namespace canopy::test
