// Facts about a token: its label, its card, the fates of a round's nodes, and the chain to compare with.

#include "app/tree/token_card.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <string>

#include "app/tree/tree_look.h"
#include "app/tree/tree_model.h"
#include "engine/trace/trace_records.h"
#include "tests/app/tree/tree_samples.h"

namespace canopy::test {
namespace {

using app::NodeFate;
using app::token_label;
using app::TreeModel;

std::string label(std::string_view bytes, size_t longest = app::kLongestLabel) {
  return token_label(trace::Piece{bytes, false}, 7, longest);
}

TEST(TokenLabel, LeavesOutBlanksAroundAWord) {
  EXPECT_EQ(label(" the"), "the");
  EXPECT_EQ(label("):\n"), "):\\n");
  EXPECT_EQ(label(" a b "), "a b");
}

TEST(TokenLabel, CountsRunsOfBlanks) {
  EXPECT_EQ(label("       "), "\u00b7\u00d77");
  EXPECT_EQ(label(" "), "\u00b7");
  EXPECT_EQ(label("\n    "), "\\n");
  EXPECT_EQ(label("\n    x"), "\\n\u00b7\u00d74x");
}

TEST(TokenLabel, EscapesWhatActsAndShowsBytesThatAreNoCharacter) {
  EXPECT_EQ(label("\xe2\x82"), "\u2039E2 82\u203a");
  EXPECT_EQ(label("\x1b[2J"), "\\x1b[2J");
  EXPECT_EQ(label("a\xff"), "a\u2039FF\u203a");
  EXPECT_EQ(label("\u202e"), "\\u202e");
  EXPECT_EQ(label("\u4f60\u597d"), "\u4f60\u597d");
}

TEST(TokenLabel, EndsAfterTwentyFourCharacters) {
  EXPECT_EQ(label(std::string(24, 'x')), std::string(24, 'x'));
  EXPECT_EQ(label(std::string(25, 'x')), std::string(23, 'x') + "\u2026");
  EXPECT_EQ(app::characters(label("\u4f60\u597d\u4e16\u754c", 3)), 3u);
}

TEST(TokenLabel, GoesByNumberWhereNobodyKnowsTheText) {
  EXPECT_EQ(token_label(std::nullopt, 1234), "#1234");
  EXPECT_EQ(token_label(std::nullopt, std::nullopt), "?");
  for (const char* stop : {"<|im_end|>", "</s>", "<|eot_id|>", "<end_of_turn>", "<|endoftext|>", "<|return|>"}) {
    EXPECT_EQ(token_label(trace::Piece{stop, true}, 7), "end") << stop;
    EXPECT_EQ(token_label(trace::Piece{stop, false}, 7), stop) << "text that only looks like one";
  }
  EXPECT_EQ(token_label(trace::Piece{"<|im_start|>", true}, 7), "<|im_start|>");
  EXPECT_EQ(token_label(trace::Piece{"<|end_header_id|>", true}, 7), "<|end_header_id|>");
  EXPECT_EQ(label(""), "#7");
}

// gui.md, criterion 9
TEST(TreeStates, PartitionTheNodesAndTheBonusIsTheEnginesOwn) {
  std::mt19937 random(9);
  for (int trial = 0; trial < 300; ++trial) {
    const uint32_t width = 1 + static_cast<uint32_t>(random() % 500);
    const RoundRecord record = random_round(random, width, 0.6);
    const TreeModel tree = app::tree_model(record);
    const uint32_t drafted =
        tree.counted(NodeFate::accepted) + tree.counted(NodeFate::rejected) + tree.counted(NodeFate::not_reached);
    ASSERT_EQ(drafted, width - 1);
    ASSERT_EQ(tree.counted(NodeFate::root), 1u);
    ASSERT_EQ(tree.counted(NodeFate::accepted), record.accepted);
    ASSERT_TRUE(tree.bonus);
    ASSERT_EQ(tree.nodes[*tree.bonus].token, record.emitted.back());
    // The path begins at the root, is connected, and has the tokens that were emitted.
    ASSERT_EQ(tree.path.front(), 0u);
    ASSERT_EQ(tree.path.size(), record.emitted.size() + 1);
    for (size_t i = 1; i < tree.path.size(); ++i) {
      ASSERT_EQ(tree.nodes[tree.path[i]].parent, tree.path[i - 1]);
      ASSERT_EQ(tree.nodes[tree.path[i]].token, record.emitted[i - 1]);
    }
    for (uint32_t i = 1; i < width; ++i)
      if (tree.nodes[i].fate == NodeFate::rejected) {
        ASSERT_TRUE(tree.on_path(tree.nodes[i].parent));
      }
  }
}

TEST(TreeStates, BehindTheEndOfAReplyNothingWasRefused) {
  RoundRecord record = small_round();
  record.emitted = {11};  // a stop token, drafted: the walk ended on it
  record.accepted = 1;
  const TreeModel tree = app::tree_model(record);
  EXPECT_FALSE(tree.bonus);
  EXPECT_EQ(tree.nodes[3].fate, NodeFate::accepted);
  EXPECT_EQ(tree.nodes[4].fate, NodeFate::not_reached);
  EXPECT_EQ(tree.nodes[6].fate, NodeFate::not_reached);
  EXPECT_EQ(tree.nodes[1].fate, NodeFate::rejected);
}

TEST(TreeStates, APlainRoundIsARootAndItsBonus) {
  RoundRecord record;
  record.emitted = {42};
  const TreeModel tree = app::tree_model(record, 17);
  ASSERT_EQ(tree.size(), 2u);
  EXPECT_EQ(tree.nodes[0].token, 17u);
  EXPECT_EQ(tree.nodes[1].fate, NodeFate::bonus);
  EXPECT_EQ(tree.nodes[1].token, 42u);
}

// A smaller model counts as the drafter, and is not said to guess all places at once.
TEST(TreeSources, OfASmallerModelAreTheDrafters) {
  RoundRecord record = found_round();
  for (RoundNode& row : record.nodes)
    if ((row.node.sources & kFromDflash) != 0) row.node.sources = (row.node.sources & kFromSuffix) | kFromDraft;
  const TreeModel tree = app::tree_model(record), usual = app::tree_model(found_round());
  EXPECT_EQ(tree.steps, kFromDraft);
  EXPECT_EQ(usual.steps, 0);
  for (uint32_t i = 0; i < tree.size(); ++i) EXPECT_EQ(tree.nodes[i].sources, usual.nodes[i].sources) << i;
  EXPECT_EQ(tree.sources, usual.sources);
  EXPECT_EQ(app::phase_sentence(app::Phase::fill, 3, tree).find("same moment"), std::string::npos);
  EXPECT_NE(app::phase_sentence(app::Phase::fill, 3, tree).find("one after another"), std::string::npos);
  EXPECT_EQ(app::phase_sentence(app::Phase::verify, 3, tree), app::phase_sentence(app::Phase::verify, 3, usual));
}

TEST(TreeSources, OfTheModelsOwnHeadAreTheDrafters) {
  RoundRecord record = found_round();
  for (RoundNode& row : record.nodes)
    if ((row.node.sources & kFromDflash) != 0) row.node.sources = (row.node.sources & kFromSuffix) | kFromMtp;
  const TreeModel tree = app::tree_model(record), usual = app::tree_model(found_round());
  EXPECT_EQ(tree.steps, kFromMtp);
  EXPECT_EQ(tree.sources, usual.sources);
  EXPECT_NE(app::phase_sentence(app::Phase::fill, 3, tree).find("head for further tokens"), std::string::npos);
}

TEST(TreeSources, OfAnEagleHeadAreTheDrafters) {
  RoundRecord record = found_round();
  for (RoundNode& row : record.nodes)
    if ((row.node.sources & kFromDflash) != 0) row.node.sources = (row.node.sources & kFromSuffix) | kFromEagle;
  const TreeModel tree = app::tree_model(record);
  EXPECT_EQ(tree.steps, kFromEagle);
  EXPECT_EQ(tree.sources, app::tree_model(found_round()).sources);
  EXPECT_NE(app::phase_sentence(app::Phase::fill, 3, tree).find("An EAGLE-3 head guesses them"), std::string::npos);
}

TEST(TreeSources, OfAnAssistantAreTheDrafters) {
  RoundRecord record = found_round();
  for (RoundNode& row : record.nodes)
    if ((row.node.sources & kFromDflash) != 0) row.node.sources = (row.node.sources & kFromSuffix) | kFromAssistant;
  const TreeModel tree = app::tree_model(record);
  EXPECT_EQ(tree.steps, kFromAssistant);
  EXPECT_EQ(tree.sources, app::tree_model(found_round()).sources);
  EXPECT_NE(app::phase_sentence(app::Phase::fill, 3, tree).find("An assistant guesses them"), std::string::npos);
}

TEST(TreeSources, AreThoseOfTheRecord) {
  const TreeModel tree = app::tree_model(found_round());
  EXPECT_EQ(tree.nodes[0].sources, 0);
  EXPECT_EQ(tree.nodes[1].sources, kFromDflash);
  EXPECT_EQ(tree.nodes[3].sources, kUsualSources);
  EXPECT_EQ(tree.nodes[4].sources, kFromSuffix);
  EXPECT_EQ(tree.nodes[*tree.bonus].sources, 0);
  EXPECT_EQ(tree.found, 3u);
  EXPECT_EQ(tree.sources, kUsualSources);
  EXPECT_TRUE(app::tree_model(text_round()).asked_text_alone());
}

TEST(TreeSources, OfOldRecordingsAreTheDrafter) {
  const TreeModel tree = app::tree_model(small_round());
  EXPECT_EQ(tree.nodes[1].sources, kFromDflash);
  EXPECT_EQ(tree.sources, kFromDflash);
  EXPECT_EQ(tree.found, 0u);
}

// ---- the chain ------------------------------------------------------------------------------------------------------

std::optional<app::ChainEstimate> chain_of(const RoundRecord& record) {
  return app::chain_estimate(record, app::tree_model(record));
}

TEST(ChainEstimate, EndsWhereTheTargetTookAnotherRank) {
  const auto chain = chain_of(small_round());
  ASSERT_TRUE(chain);
  EXPECT_EQ(chain->emitted, 1u);  // rank 1 was accepted at once, so a chain would have got only the target's own token
  EXPECT_FALSE(chain->at_least);
}

TEST(ChainEstimate, GoesOnAsLongAsTheLikeliestWereTaken) {
  const auto chain =
      chain_of(sample_round({{0, 10, 0, .6}, {1, 20, 0, .5}, {2, 31, 1, .2}, {2, 30, 0, .5}}, {10, 20, 31, 9}));
  ASSERT_TRUE(chain);
  EXPECT_EQ(chain->emitted, 3u);
  EXPECT_FALSE(chain->at_least);
}

TEST(ChainEstimate, SaysAtLeastWhereTheTreeDoesNotReach) {
  const auto chain = chain_of(sample_round({{0, 10, 0, .6}, {0, 11, 1, .3}}, {10, 9}));
  ASSERT_TRUE(chain);
  EXPECT_EQ(chain->emitted, 2u);
  EXPECT_TRUE(chain->at_least);
}

TEST(ChainEstimate, KnowsTheLikeliestFromAnyBranch) {
  // No node was drafted after 11, but the drafter's likeliest token at that depth was 20, and the bonus was 21.
  const auto other = chain_of(sample_round({{0, 10, 0, .6}, {0, 11, 1, .3}, {2, 20, 0, .5}}, {10, 21}));
  ASSERT_TRUE(other);
  EXPECT_EQ(other->emitted, 2u);
  EXPECT_FALSE(other->at_least);
  const auto same = chain_of(sample_round({{0, 10, 0, .6}, {0, 11, 1, .3}, {2, 20, 0, .5}}, {10, 20}));
  ASSERT_TRUE(same);
  EXPECT_EQ(same->emitted, 3u);
  EXPECT_TRUE(same->at_least);
}

TEST(ChainEstimate, OfTheTextFollowsItsOwnPath) {
  // The likeliest at a depth depends on the path: 20 stood behind 11, and says nothing of what would stand behind 10.
  RoundRecord record = sample_round({{0, 10, 0, .6}, {0, 11, 1, .3}, {2, 20, 0, .5}}, {10, 20});
  for (size_t i = 1; i < record.nodes.size(); ++i) record.nodes[i].node.sources = kFromSuffix;
  const auto chain = chain_of(record);
  ASSERT_TRUE(chain);
  EXPECT_EQ(chain->emitted, 2u);
  EXPECT_TRUE(chain->at_least);
}

TEST(ChainEstimate, IsNotMadeForPlainRoundsAndChains) {
  RoundRecord chain = sample_round({{0, 10, 0, .6}, {1, 20, 0, .5}}, {10, 9});
  chain.shape = DecodeMode::chain;
  EXPECT_FALSE(chain_of(chain));
  RoundRecord plain;
  plain.emitted = {4};
  EXPECT_FALSE(chain_of(plain));
}

// ---- the card -------------------------------------------------------------------------------------------------------

std::optional<trace::Piece> word(uint32_t token) {
  static const std::map<uint32_t, std::string> words = {{1, "def"},     {10, " merge"},  {11, " two"}, {12, " a"},
                                                        {20, " lists"}, {21, " sorted"}, {30, "\n"},   {99, " here"}};
  const auto found = words.find(token);
  if (found == words.end()) return std::nullopt;
  return trace::Piece{found->second, false};
}

app::TokenFacts facts_of(const RoundRecord& record, uint32_t node) {
  return app::token_facts(record, app::tree_model(record), node, word);
}

// gui.md, criterion 8: every field of the record, node by node
TEST(TokenFacts, MatchTheRecord) {
  std::mt19937 random(4);
  const RoundRecord record = random_round(random, 200, 0.5);
  const TreeModel tree = app::tree_model(record);
  const auto three = [](double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3f", value);
    return std::string(text);
  };
  for (uint32_t i = 1; i < 200; ++i) {
    const app::TokenFacts facts = app::token_facts(record, tree, i, word);
    const RoundNode& row = record.nodes[i];
    ASSERT_EQ(facts.id, std::to_string(row.node.token));
    ASSERT_EQ(facts.depth, std::to_string(row.node.depth));
    ASSERT_EQ(facts.rank, std::to_string(row.node.rank));
    ASSERT_EQ(facts.position, std::to_string(500 + row.node.depth));
    ASSERT_EQ(facts.row, std::to_string(i + 1) + " of 200");
    ASSERT_EQ(facts.p, app::probability_text(std::exp(double{row.log_p})));
    ASSERT_EQ(facts.log_p, three(double{row.log_p}));
    ASSERT_EQ(facts.q, app::probability_text(std::exp(row.node.log_q)));
    ASSERT_EQ(facts.log_q, three(row.node.log_q));
    ASSERT_EQ(facts.path, app::probability_text(std::exp(row.node.score)));
    ASSERT_EQ(facts.choice_id, std::to_string(row.target_token));
    ASSERT_EQ(facts.fate, tree.nodes[i].fate);
    ASSERT_FALSE(facts.sentence.empty());
  }
}

TEST(TokenFacts, SayWhatATokenIsMadeOf) {
  const app::TokenFacts facts = facts_of(small_round(), 4);
  EXPECT_EQ(facts.label, "lists");
  EXPECT_EQ(facts.bytes, "20 6C 69 73 74 73");
  EXPECT_EQ(facts.state, "Rejected at the frontier");
  EXPECT_EQ(facts.q, "0.500");
  EXPECT_EQ(facts.path, "0.150");
}

std::string sentence_of(const app::TokenFacts& facts) {
  std::string text;
  for (const app::FactWords& words : facts.sentence) text += words.text;
  return text;
}

TEST(TokenFacts, ExplainEachStateInOneSentence) {
  const RoundRecord record = small_round();
  EXPECT_EQ(sentence_of(facts_of(record, 1)),
            "The big model chose two, held here at rank 1. A chain would have ended after 0 accepted.");
  EXPECT_EQ(sentence_of(facts_of(record, 2)),
            "Checked with the others, but it stands below merge, which the big model did not choose.");
  EXPECT_EQ(
      sentence_of(facts_of(record, 3)),
      "The big model chose it; the drafter held it at rank 1. A chain, which guesses rank 0 only, would have stopped "
      "here.");
  EXPECT_EQ(sentence_of(facts_of(record, 8)), "Nothing was guessed behind this path. It comes free with the pass.");
  EXPECT_EQ(sentence_of(facts_of(record, 7)), "The big model chose two, held here at rank 1.");
}

TEST(TokenFacts, SayWhereAGuessComesFrom) {
  EXPECT_EQ(facts_of(found_round(), 1).source, "Guessed by the drafter.");
  EXPECT_EQ(facts_of(found_round(), 3).source,
            "Guessed by the drafter and found in the text: its last 14 tokens stood there and went on like this; "
            "expected with 30%.");
  EXPECT_EQ(facts_of(found_round(), 6).source,
            "Found in the text: its last 14 tokens and the guess before this one stood there and went on like this; "
            "expected with 20%.");
  RoundRecord counted = found_round();
  counted.nodes[3].node.went_on = {3, 4};
  counted.nodes[6].node.went_on = {1, 1};
  EXPECT_EQ(
      facts_of(counted, 3).source,
      "Guessed by the drafter and found in the text: its last 14 tokens stood there and 3 of 4 times went on like "
      "this; expected with 30%.");
  EXPECT_EQ(facts_of(counted, 6).source,
            "Found in the text: its last 14 tokens and the guess before this one stood there once and went on like "
            "this; expected with 20%.");
  RoundRecord earlier = found_round();
  earlier.nodes[6].node.sources = kFromEarlier;
  EXPECT_EQ(
      facts_of(earlier, 6).source,
      "Found in an earlier reply: the text\u2019s last 14 tokens and the guess before this one stood there and went "
      "on like this; expected with 20%.");
  EXPECT_EQ(facts_of(found_round(), 0).source, "");
  EXPECT_EQ(facts_of(small_round(), 1).source, "") << "it was not recorded";
}

TEST(TokenFacts, TellNoWordOfAnotherChat) {
  RoundRecord round = found_round();
  round.nodes[4].node.sources = kFromEarlier;
  const app::TokenFacts facts = facts_of(without_other_chats(round), 4);
  EXPECT_EQ(facts.id, "");
  EXPECT_EQ(facts.bytes, "");
  EXPECT_EQ(facts.choice, "");
  EXPECT_EQ(facts.note, "A wrong guess with words of another chat: they are not kept with this one.");
  EXPECT_NE(facts.source.find("an earlier reply"), std::string::npos) << "its source stays";
  EXPECT_EQ(facts.q, facts_of(round, 4).q) << "and its probability";
}

TEST(TokenFacts, NameNoDrafterWhereNoneWasAsked) {
  for (uint32_t node = 0; node < 9; ++node) {
    const app::TokenFacts facts = facts_of(text_round(), node);
    EXPECT_EQ((sentence_of(facts) + facts.source).find("drafter"), std::string::npos) << sentence_of(facts);
  }
}

TEST(TokenFacts, OfTheBonusTheRecordHasNoProbability) {
  const app::TokenFacts facts = facts_of(small_round(), 8);
  EXPECT_EQ(facts.fate, NodeFate::bonus);
  EXPECT_EQ(facts.label, "here");
  EXPECT_EQ(facts.position, "503");
  EXPECT_TRUE(facts.p.empty() && facts.q.empty() && facts.path.empty() && facts.row.empty());
}

TEST(TokenFacts, SayWhyTheTargetsPartIsMissing) {
  RoundRecord record = small_round();
  record.nodes[1].log_p = -0.5f;
  record.nodes[1].target_token = 20;
  EXPECT_EQ(facts_of(record, 1).note, "");
  EXPECT_EQ(facts_of(record, 1).choice, "lists");
  record.nodes[4].log_p = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(facts_of(record, 4).p.empty());
  EXPECT_NE(facts_of(record, 4).note.find("first guesses only"), std::string::npos) << facts_of(record, 4).note;
  record.nodes[4].target_token = RoundNode::unknown;
  EXPECT_NE(facts_of(record, 4).note.find("was not drawn"), std::string::npos) << facts_of(record, 4).note;
  for (RoundNode& node : record.nodes) node.log_p = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(facts_of(record, 1).note.find("not recorded"), std::string::npos) << facts_of(record, 1).note;
}

TEST(TokenFacts, WithoutTextsTheNumbersStay) {
  const RoundRecord record = small_round();
  const app::TokenFacts facts =
      app::token_facts(record, app::tree_model(record), 1, [](uint32_t) { return std::nullopt; });
  EXPECT_EQ(facts.label, "#10");
  EXPECT_TRUE(facts.bytes.empty());
  EXPECT_EQ(facts.q, "0.600");
}

}  // namespace
}  // namespace canopy::test
