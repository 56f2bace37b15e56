// Drafts from the text alone: what is found behind its end, and replies in virtual time that verify it, where texts
// repeat and where what repeats misleads.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <set>
#include <string>

#include "engine/speculation/round_planner.h"
#include "engine/speculation/suffix_trie.h"
#include "tests/base/expect_error.h"
#include "tests/speculation/simulator_run.h"

namespace canopy::test {
namespace {

using Ids = std::vector<uint32_t>;

TEST(DraftSources, AreNamedAndRead) {
  EXPECT_EQ(list_of(kAllSources), "dflash,suffix,recycling,earlier,draft,mtp,eagle3,assistant");
  EXPECT_EQ(list_of(kUsualSources), "dflash,suffix");
  EXPECT_EQ(list_of(0), "none");
  for (const DraftSources sources : {DraftSources{0}, kFromDflash, kFromSuffix, kUsualSources, kAllSources}) {
    EXPECT_EQ(parse_sources(list_of(sources)), sources);
  }
  EXPECT_EQ(parse_sources("draft,earlier,mtp,assistant,suffix,eagle3,recycling,dflash"), kAllSources);
  for (const char* list : {"", "suffix,", "eagle", "none,suffix", "suffix dflash"}) {
    expect_error("allowed: dflash, suffix, recycling, earlier, draft, mtp, eagle3 and assistant",
                 [&] { parse_sources(list); });
  }
}

/// The table of docs/using.md, whose rows begin with "| `name` |".
TEST(DraftSources, AreThoseOfTheManual) {
  std::ifstream manual(std::string(CANOPY_SOURCE_DIR) + "/docs/using.md");
  ASSERT_TRUE(manual) << "docs/using.md is missing";
  std::set<std::string> listed, named;
  bool in_table = false;
  for (std::string line; std::getline(manual, line);) {
    in_table = line.starts_with("| source |") || (in_table && line.starts_with("|"));
    if (!in_table || !line.starts_with("| `")) continue;
    listed.insert(line.substr(3, line.find('`', 3) - 3));
  }
  for (const std::string_view name : source_names(kAllSources)) named.emplace(name);
  EXPECT_EQ(listed, named);
}

TEST(TextDrafter, FindsWhatStoodBehindTheSameWords) {
  TextDrafter drafter;
  drafter.read(Ids{1, 2, 3, 4, 5, 6, 1, 2, 3});
  const FreeDraft& draft = drafter.draft(10);
  EXPECT_EQ(draft.match, 3u);
  ASSERT_EQ(draft.nodes.size(), 6u) << "two for each token of the match";
  EXPECT_EQ(draft.depth, 6u);
  for (uint32_t i = 0; i < 6; ++i) {
    EXPECT_EQ(draft.nodes[i].token, (Ids{4, 5, 6, 1, 2, 3})[i]);
    EXPECT_EQ(draft.nodes[i].parent, i == 0 ? CandidateNode::root : i - 1);
    EXPECT_DOUBLE_EQ(draft.nodes[i].p, 1) << "the end of the text is no place that goes on otherwise";
  }
}

TEST(TextDrafter, BranchesWhereTheTextWentOnInSeveralWays) {
  TextDrafter drafter;
  drafter.read(Ids{7, 8, 9, 1, 7, 8, 9, 1, 7, 8, 9, 2, 7, 8, 9});
  const FreeDraft& draft = drafter.draft(1);
  EXPECT_EQ(draft.depth, 1u);
  ASSERT_EQ(draft.nodes.size(), 2u);
  EXPECT_EQ(draft.nodes[0].token, 1u);
  EXPECT_DOUBLE_EQ(draft.nodes[0].p, 2.0 / 3);
  EXPECT_EQ(draft.nodes[1].token, 2u);
  EXPECT_DOUBLE_EQ(draft.nodes[1].p, 1.0 / 3);
}

/// The text's own end is none of the places: nothing stands behind it yet.
TEST(TextDrafter, CountsHowOftenTheTextWentOnLikeThis) {
  TextDrafter drafter;
  drafter.read(Ids{1, 2, 3, 4, 1, 2, 3, 5, 1, 2, 3, 4, 9, 1, 2, 3});
  const FreeDraft& draft = drafter.draft(10);
  EXPECT_EQ(draft.match, 3u);
  const auto went_on = [&](uint32_t parent, uint32_t token) {
    for (const CandidateNode& node : draft.nodes)
      if (node.parent == parent && node.token == token) return node.went_on;
    return WentOn{};
  };
  EXPECT_EQ(went_on(CandidateNode::root, 4), (WentOn{2, 3}));
  EXPECT_EQ(went_on(CandidateNode::root, 5), (WentOn{1, 3}));
  ASSERT_EQ(draft.nodes[0].token, 4u);
  EXPECT_EQ(went_on(0, 1), (WentOn{1, 2}));
  EXPECT_EQ(went_on(0, 9), (WentOn{1, 2}));
  TextDrafter same;
  same.read(Ids{7, 7, 7, 7});
  const FreeDraft& again = same.draft(10);
  ASSERT_EQ(again.nodes.size(), 2u);
  EXPECT_EQ(again.nodes[0].went_on, (WentOn{3, 3}));
  EXPECT_EQ(again.nodes[1].went_on, (WentOn{2, 2})) << "two sevens stand at the end, too";
}

TEST(TextDrafter, GoesNoDeeperThanAskedAndReadsATextThatIsAnotherAnew) {
  TextDrafter drafter;
  Ids text;
  for (uint32_t i = 0; i < 120; ++i) text.push_back(i % 40);
  drafter.read(text);
  EXPECT_EQ(drafter.draft(100).nodes.size(), TextDrafter::kMostNodes);
  for (const uint32_t depths : {1u, 3u, 20u}) {
    const FreeDraft& draft = drafter.draft(depths);
    EXPECT_EQ(draft.depth, depths);
    for (const CandidateNode& node : draft.nodes)
      EXPECT_TRUE(node.parent == CandidateNode::root || node.parent < depths);
  }
  EXPECT_TRUE(drafter.draft(0).empty());
  drafter.read(Ids{1, 2, 3});
  EXPECT_TRUE(drafter.draft(5).empty());
  EXPECT_EQ(drafter.draft(5).match, 0u);
}

/// A text that is known, as a source that a reply is written by.
class KnownText final : public DraftSource {
 public:
  /// depths: of a drafter that nobody asks, as it costs too much; 0: there is none.
  explicit KnownText(const Ids& text, uint32_t depths = 0) : text_(text), depths_(depths) {}
  void move_to(size_t root) { root_ = root; }

  uint32_t max_depth() const override { return depths_; }
  uint32_t backlog() const override { return 0; }
  uint32_t most_waiting() const override { return 1; }
  uint32_t drafted_tokens() const override { return 0; }
  const FreeDraft& from_text(uint32_t depths) override {
    found_.read(std::span(text_).first(root_ + 1));
    return found_.draft(depths);
  }
  const FreeDraft& recycled(uint32_t, uint32_t) override { return nothing_; }
  const BlockDraft* draft(uint32_t, const DraftWish&, const std::stop_token&) override {
    ADD_FAILURE() << "nobody drafts here";
    return nullptr;
  }
  bool more(uint32_t, uint32_t, uint32_t, Ids&, std::vector<float>&) override { return false; }

 private:
  const Ids& text_;
  uint32_t depths_;
  TextDrafter found_;
  FreeDraft nothing_;
  size_t root_ = 0;
};

/// Passes of some rows cost as many milliseconds.
CostTable costs(double fixed, double each_row) {
  CostTable table;
  for (uint32_t width = 1; width <= 64; ++width) {
    table.set_verify(width, 16, fixed + each_row * width);
    table.set_verify(width, 4000, fixed + each_row * width);
  }
  table.set_other(1, 0.01);
  return table;
}

struct Written {
  double ms = 0, plain_ms = 0;
  double worst_ms = 0;  // that it was ever behind 1.02 times plain decoding
  double longest_ms = 0;
  uint32_t rounds = 0, verified = 0;
  uint32_t longest_plain = 0;  // passes in a row without a guess, behind the first `learning` tokens
};

/// Writes text[prompt ...) by adaptive rounds whose passes take what the table says.
Written write(const Ids& text, size_t prompt, const CostTable& table, size_t learning = 0) {
  PairFacts facts;
  facts.roofline = [] { return any_roofline(); };
  const bool has_drafter = !table.draft_points().empty();
  if (has_drafter) facts.block_size = 8;
  SpeculationState state(facts, table);
  KnownText source(text, has_drafter ? 7 : 0);
  AdaptivePlanner planner(source, state);
  CostTable times = table;
  times.set_roofline(any_roofline());
  Written written;
  uint32_t plain_in_a_row = 0;
  AcceptedPath path;
  for (size_t root = prompt; root + 1 < text.size();) {
    source.move_to(root);
    RoundRecord record;
    record.context = static_cast<uint32_t>(root);
    RoundStart start;
    start.root = text[root];
    start.context = record.context;
    start.remaining = static_cast<uint32_t>(text.size() - 1 - root);
    start.context_left = 100'000;
    start.rows = 64;
    const DraftTree* const tree = planner.plan(start, record, {});
    record.width = tree->width();
    accept(
        *tree, [&](uint32_t node) { return WalkedToken(text[root + 1 + (*tree)[node].depth]); }, path);
    for (const uint32_t node : path.nodes) {
      if (node > 0) record.emitted.push_back((*tree)[node].token);
    }
    record.emitted.push_back(path.bonus);
    for (uint32_t node = 1; node < tree->width(); ++node) EXPECT_EQ((*tree)[node].sources, kFromSuffix);
    take_times(times, 0, record);
    planner.observe(record);
    written.ms += record.ms.total();
    for (size_t i = 0; i < record.emitted.size(); ++i) written.plain_ms += times.ar_ms(record.context);
    written.worst_ms = std::max(written.worst_ms, written.ms - 1.02 * written.plain_ms);
    written.longest_ms = std::max(written.longest_ms, record.ms.total());
    ++written.rounds;
    written.verified += record.width > 1 ? 1 : 0;
    plain_in_a_row = record.width > 1 || root < prompt + learning ? 0 : plain_in_a_row + 1;
    written.longest_plain = std::max(written.longest_plain, plain_in_a_row);
    root += record.emitted.size();
  }
  return written;
}

Ids random_text(uint32_t tokens, uint32_t vocabulary, uint32_t seed) {
  std::mt19937 random(seed);
  Ids text;
  for (uint32_t i = 0; i < tokens; ++i) text.push_back(random() % vocabulary);
  return text;
}

/// A prompt and the same once more, with a token changed now and then.
Ids edited_copy(uint32_t tokens, uint32_t each) {
  Ids text = random_text(tokens, 5000, 7);
  for (uint32_t i = 0; i < tokens; ++i) text.push_back(i % each == each - 1 ? 6000 + i : text[i]);
  return text;
}

TEST(TextRounds, TextsThatRepeatAreWrittenMuchFaster) {
  const CostTable memory_bound = costs(10, 0.1), processor = costs(2, 0.5);
  for (const uint32_t each : {8u, 40u}) {
    const Ids text = edited_copy(400, each);
    const Written fast = write(text, 400, memory_bound), slow = write(text, 400, processor);
    const double ratio = fast.plain_ms / fast.ms, narrow = slow.plain_ms / slow.ms;
    std::printf("a change in %u tokens: %.2f times plain decoding where rows are cheap, %.2f where they are not\n",
                each, ratio, narrow);
    EXPECT_GT(ratio, each == 8 ? 2.3 : 7.0);
    EXPECT_GT(narrow, each == 8 ? 1.7 : 2.4);
    EXPECT_GT(fast.verified, 10u);
  }
}

/// Few different tokens: something is found nearly always, and says nothing.
TEST(TextRounds, WhatMisleadsCostsNoMoreThanTheBound) {
  for (const CostTable& table : {costs(10, 0.1), costs(2, 0.5), costs(0.1, 1)}) {
    for (const uint32_t vocabulary : {20u, 200u, 3000u}) {
      for (const uint32_t seed : {1u, 2u, 3u}) {
        const Written written = write(random_text(1500, vocabulary, seed), 500, table);
        EXPECT_LE(written.worst_ms, 2 * std::max(written.longest_ms, written.plain_ms / 1000)) << vocabulary;
        EXPECT_LE(written.ms, 1.02 * written.plain_ms + 2 * written.longest_ms) << vocabulary;
      }
    }
  }
}

/// A text that repeats until it does not any more.
TEST(TextRounds, ALoopThatEndsIsLeft) {
  Ids text;
  for (uint32_t i = 0; i < 600; ++i) text.push_back(i % 12);
  const Ids rest = random_text(600, 300, 5);
  text.insert(text.end(), rest.begin(), rest.end());
  const CostTable table = costs(2, 0.5);
  const Written all = write(text, 30, table);
  EXPECT_GT(all.plain_ms / all.ms, 1.3);
  EXPECT_LE(all.worst_ms, 2 * all.longest_ms);
}

/// The easiest text there is, "a guide, a guide, a guide", behind an answer that taught the opposite. Guesses from the
/// text cost no pass to find and are scored in every round, verified or not: so the loop is seen by itself, and no
/// reply can go on for long without a guess, whatever the drafter was worth.
TEST(TextRounds, ALoopIsNeverWrittenWithoutGuesses) {
  for (const uint32_t period : {1u, 2u, 3u, 5u, 9u}) {
    Ids text = random_text(300, 40, 11);  // what is found here misleads
    for (uint32_t i = 0; i < 400; ++i) text.push_back(1000 + i % period);
    for (const bool has_drafter : {false, true}) {
      for (CostTable table : {costs(10, 0.1), costs(2, 0.5), costs(8, 2), costs(1, 1)}) {
        // One that can never pay, so that nobody asks it.
        if (has_drafter) table.set_draft(1, 16, 500);
        const Written written = write(text, 20, table, 280 + 2 * period);
        EXPECT_LE(written.longest_plain, 32u) << "a loop of " << period;
        EXPECT_LE(written.worst_ms, 2 * std::max(written.longest_ms, written.plain_ms / 1000)) << period;
      }
    }
  }
}

TEST(TextRounds, NothingIsVerifiedWhereEveryRowCostsMoreThanAPass) {
  const Written written = write(edited_copy(200, 20), 200, costs(-0.5, 1));
  EXPECT_EQ(written.verified, 0u);
}

}  // namespace
}  // namespace canopy::test
