// A model that drafts token by token: every mode writes the text of plain decoding, and what is drafted depends on
// neither the paths of a pass nor the texts beside.

#include <algorithm>
#include <cmath>

#include "tests/session/modes_rig.h"

namespace canopy::test {
namespace {

/// The model in another quantization drafts for it, token by token.
class DraftModelTest : public ModesTest {
 protected:
  void SetUp() override {
    drafter_ = "tiny-qwen3-q8_0.gguf";
    open();
    ASSERT_NE(loaded_->draft_model, nullptr);
  }

  /// Drafts cost little, so that the mode adaptive asks for some.
  void make_drafts_cheap() {
    const CostTable costs = cheap_drafts();
    times_ = costs;
    times_.set_drafts_by_token(true);
    loaded_->speculation->replace(costs);
    loaded_->speculation->run_on(&times_);
  }

  CostTable times_;
};

TEST_F(DraftModelTest, TextAndCacheAreThoseOfPlainDecoding) {
  for (const bool cheap : {false, true}) {
    SCOPED_TRACE(cheap);
    if (cheap) make_drafts_cheap();
    expect_same(encode(kCode), tokens(48));
    expect_same(encode("a = [1, 2, 3]\nb = [1, 2, 3]\nc = [1, 2, 3]\nd = [1, 2,"), tokens(40));
    ReplySettings drawn = tokens(32);
    drawn.sampling.temperature = 0.9f;
    drawn.sampling.seed = 7;
    drawn.sampling.repetition_penalty = 1.2f;
    expect_same(encode(kCode), drawn);
  }
}

TEST_F(DraftModelTest, NearlyAllThatItIsSureOfIsAccepted) {
  const auto prompt = encode(kCode);
  for (const Way& way : {Way{"chain", DecodeMode::chain, 1, CostPolicy::measured, kFromDraft},
                         Way{"tree", DecodeMode::tree, 16, CostPolicy::measured, kFromDraft}}) {
    SCOPED_TRACE(way.name);
    const Reply reply = fresh(way, prompt, tokens(100));
    uint32_t longest = 0, accepted = 0, behind_others = 0;
    for (const RoundRecord& round : reply.rounds) {
      uint32_t end = 0, depth = 0;  // of the path of likeliest tokens
      for (uint32_t i = 1; i < round.nodes.size(); ++i) {
        const TreeNode& node = round.nodes[i].node;
        EXPECT_EQ(node.sources, kFromDraft);
        if (node.depth > 1 && round.nodes[node.parent].node.rank > 0) ++behind_others;
        if (node.parent == end && node.rank == 0) end = i, depth = node.depth;
      }
      longest += depth, accepted += round.accepted;
    }
    EXPECT_GT(accepted, 50u);
    EXPECT_GT(accepted, 0.9 * longest);
    // A tree goes on behind other tokens, too.
    EXPECT_EQ(behind_others > 0, way.mode == DecodeMode::tree) << behind_others;
  }
}

/// What it says behind a path, its passes having other paths beside it, has the bits of what it says behind that text
/// alone, whether the path's keys and values are moved behind the text or computed again.
TEST_F(DraftModelTest, EveryPathGetsWhatItsTextAloneWould) {
  DraftModel& drafts = *loaded_->draft_model;
  ASSERT_EQ(drafts.most_beams(), kMostBeams);
  const auto prompt = encode(kCode);
  const std::vector<double> free(5, 0.0);
  const DraftWish wish{4, free};
  ASSERT_TRUE(drafts.begin(prompt, {}));
  const BlockDraft* const first = drafts.draft(prompt, wish, {});
  ASSERT_NE(first, nullptr);
  const BlockDraft draft = *first;
  ASSERT_EQ(draft.beams(), (std::vector<uint32_t>{5, 5, 5}));
  for (uint32_t list = 1; list < draft.lists(); ++list) {
    auto text = prompt;
    for (uint32_t at = list; at != 0; at = draft.behind[at] / draft.candidates) {
      text.insert(text.begin() + static_cast<std::ptrdiff_t>(prompt.size()), draft.tokens[draft.behind[at]]);
    }
    for (const bool moved : {true, false}) {
      SCOPED_TRACE("list " + std::to_string(list) + (moved ? ", moved" : ""));
      ASSERT_TRUE(drafts.begin(prompt, {}));
      while (drafts.prompt_left(prompt) > 0) ASSERT_TRUE(drafts.read_prompt(prompt, {}));
      if (moved) {
        ASSERT_NE(drafts.draft(prompt, wish, {}), nullptr);
      }
      EXPECT_EQ(drafts.unread(text), moved ? 1 : text.size() - prompt.size());
      const BlockDraft* const alone = drafts.draft(text, {1}, {});
      ASSERT_NE(alone, nullptr);
      const DepthCandidates expected = draft.list(list), got = alone->list(0);
      EXPECT_TRUE(std::ranges::equal(got.tokens, expected.tokens));
      EXPECT_TRUE(std::ranges::equal(got.logits, expected.logits));
      EXPECT_EQ(got.log_sum_exp, expected.log_sum_exp);
    }
  }
}

/// Nor does the draft depend on how many paths a pass goes on with.
TEST_F(DraftModelTest, TheLikeliestPathIsTheSameWithAndWithoutOthers) {
  DraftModel& drafts = *loaded_->draft_model;
  const auto prompt = encode(kCode);
  ASSERT_TRUE(drafts.begin(prompt, {}));
  const BlockDraft alone = *drafts.draft(prompt, {6}, {});
  const std::vector<double> free(kMostBeams, 0.0);
  const BlockDraft among = *drafts.draft(prompt, {6, free}, {});
  ASSERT_EQ(alone.depths, 6u);
  for (uint32_t i = 0, list = 0; i < alone.depths && list != BlockDraft::none; ++i) {
    EXPECT_TRUE(std::ranges::equal(among.list(list).tokens, alone.list(i).tokens)) << i;
    EXPECT_TRUE(std::ranges::equal(among.list(list).logits, alone.list(i).logits)) << i;
    list = among.list_behind(list, alone.list(i).tokens[0]);
  }
}

TEST_F(DraftModelTest, ADraftGrowsWhileItsTokensAreWorthTheirTime) {
  make_drafts_cheap();
  const Way way{"adaptive", DecodeMode::adaptive, 1, CostPolicy::measured, kFromDraft};
  const auto depths = [&] {
    uint32_t drafts = 0, tokens_drafted = 0, most = 0;
    for (const RoundRecord& round : fresh(way, encode(kCode), tokens(150)).rounds) {
      if (round.ms.draft == 0) continue;
      // As long as it was, by the costs of the device; a pass over several paths takes a little longer.
      const double tokens_of_it = 1 + std::floor((round.ms.draft - times_.draft_ms(round.backlog, round.context)) /
                                                     times_.draft_ms(1, round.context) +
                                                 1e-6);
      ++drafts, tokens_drafted += static_cast<uint32_t>(tokens_of_it);
      most = std::max(most, static_cast<uint32_t>(tokens_of_it));
    }
    EXPECT_GT(drafts, 5u);
    EXPECT_LE(most, DraftModel::kDeepest);
    return drafts == 0 ? 0.0 : double{static_cast<double>(tokens_drafted)} / drafts;
  };
  const double cheap = depths();
  CostTable dearer;
  for (const uint32_t width : {1u, 2u, 16u, 64u}) dearer.set_verify(width, 16, 10 + 0.05 * width);
  for (const uint32_t unread : {1u, 16u}) dearer.set_draft(unread, 16, 4 + 0.01 * unread);
  times_ = dearer;
  times_.set_drafts_by_token(true);
  loaded_->speculation->replace(dearer);
  EXPECT_LT(depths(), cheap - 0.5);
}

TEST_F(DraftModelTest, TextsAndBranchesTakeTurns) {
  const Way way{"tree of 16", DecodeMode::tree, 16, CostPolicy::measured, kFromDraft};
  const auto one = encode(kCode), other = encode("x = 1\ny = 1\nz = 1\n");
  const Reply first = fresh(way, one, tokens(20)), second = fresh(way, other, tokens(20));
  auto longer = one;
  longer.insert(longer.end(), first.ids.begin(), first.ids.end());
  const Reply branch = fresh(way, longer, tokens(20));
  loaded_->resident->clear();
  for (const auto& [prompt, expected] :
       {std::pair{&one, &first}, {&other, &second}, {&longer, &branch}, {&one, &first}}) {
    const Reply again = loaded_->reply(*prompt, in(way, tokens(20)));
    EXPECT_EQ(again.ids, expected->ids);
    ASSERT_EQ(again.rounds.size(), expected->rounds.size());
    for (size_t i = 0; i < again.rounds.size(); ++i) EXPECT_EQ(again.rounds[i].width, expected->rounds[i].width) << i;
  }
}

/// While another text was current it may have taken the page behind this one, with nodes of its draft on it, or the one
/// that its end was on. Nothing of the draft is gone on from then, and what comes next is drafted as if alone.
TEST_F(DraftModelTest, NodesWhosePageAnotherTextTookAreReadAgain) {
  const uint32_t whole = 2 * kPagePositions;
  const std::vector<double> free(kMostBeams, 0.0);
  const DraftWish wish{4, free};
  const std::vector<uint32_t> other(whole, 9);
  for (const uint32_t length : {whole, whole + 1}) {
    SCOPED_TRACE(length);
    open(4 * kPagePositions);  // all pages that there are
    DraftModel& drafts = *loaded_->draft_model;
    std::vector<uint32_t> text;
    for (uint32_t i = 0; i < length; ++i) text.push_back(3 + i % 50);
    HeldText theirs = drafts.begin(other, 2), ours = drafts.begin(text, 1);
    const BlockDraft* const first = drafts.draft(text, wish, {});
    ASSERT_NE(first, nullptr);
    std::vector<uint32_t> longer = text;
    longer.insert(longer.end(), {first->list(0).tokens[0], text[0]});
    EXPECT_EQ(drafts.unread(longer), 1u);
    theirs.resume();
    while (drafts.prompt_left(other) > 0) ASSERT_TRUE(drafts.read_prompt(other, {}));
    ours.resume();
    EXPECT_EQ(drafts.unread(longer), longer.size() - whole);
    const BlockDraft* const again = drafts.draft(longer, wish, {});
    ASSERT_NE(again, nullptr);
    const BlockDraft made = *again;
    const HeldText fresh_text = drafts.begin(longer, 3);
    const BlockDraft* const alone = drafts.draft(longer, wish, {});
    ASSERT_NE(alone, nullptr);
    EXPECT_EQ(made.tokens, alone->tokens);
    EXPECT_EQ(made.logits, alone->logits);
    EXPECT_EQ(made.log_sum_exp, alone->log_sum_exp);
  }
}

TEST_F(DraftModelTest, AFullContextAndACancelledReplyLeaveWhatPlainDecodingLeaves) {
  const auto prompt = encode(kCode);
  for (const uint32_t room : {1u, 6u}) {
    open(static_cast<uint32_t>(prompt.size()) + room);
    expect_same(prompt, tokens(200));
  }
  StopAtOp stop(stepping_);
  open(stepping_);
  const Way way{"tree of 16", DecodeMode::tree, 16, CostPolicy::measured, kFromDraft};
  const Reply whole = fresh(kPlain, prompt, tokens(24));
  bool was_cancelled = true;
  for (uint64_t stop_at = 1; was_cancelled; stop_at += 1 + stop_at / 3) {
    SCOPED_TRACE(stop_at);
    ReplyCallbacks callbacks;
    loaded_->resident->clear();
    callbacks.stop = stop.arm(stop_at);
    const Reply cut = loaded_->reply(prompt, in(way, tokens(24)), callbacks);
    was_cancelled = cut.reason == FinishReason::cancelled;
    ASSERT_LE(cut.ids.size(), whole.ids.size());
    EXPECT_TRUE(std::equal(cut.ids.begin(), cut.ids.end(), whole.ids.begin()));
    EXPECT_EQ(loaded_->reply(prompt, in(way, tokens(24))).ids, whole.ids);
  }
}

}  // namespace
}  // namespace canopy::test
