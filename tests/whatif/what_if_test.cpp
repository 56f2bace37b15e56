#include "engine/whatif/what_if.h"

#include <gtest/gtest.h>

#include "tests/base/expect_error.h"
#include "tests/speculation/simulator_table.h"
#include "tests/whatif/simulated_recording.h"

namespace canopy::test {
namespace {

/// One recorded text on one device.
class WhatIfTest : public testing::Test {
 protected:
  static constexpr uint32_t tokens = 400;

  WhatIfTest() {
    Controller controller({}, spec_.block_size);
    record_run(controller, trace_, device_, 63, {.tokens = 200, .prompt = 30}, recording_);
  }

  WhatIfCosts costs() const { return {device_.calibrate(), std::make_shared<DeviceTimes>(device_)}; }
  std::vector<RecordedReply>& replies() { return recording_.replies; }

  DeviceSpec spec_ = devices_named({"roofline"})[0];
  Trace trace_ = Trace(texts_named({"usual"})[0], tokens, 11);
  VirtualDevice device_ = VirtualDevice(spec_, tokens, 11);
  SimulatedRecording recording_;
};

TEST_F(WhatIfTest, TextAndTotalsAreTheSameInAllModes) {
  for (const DecodeMode mode : {DecodeMode::ar, DecodeMode::chain, DecodeMode::tree, DecodeMode::adaptive}) {
    SCOPED_TRACE(to_string(mode));
    WhatIfWish wish;
    wish.costs = costs();
    wish.mode = mode;
    wish.budget = 12;
    const WhatIf run = what_if(replies(), wish);
    EXPECT_TRUE(run.exact);
    EXPECT_EQ(run.tokens, tokens);
    std::vector<std::vector<uint32_t>> text(2);
    double ms = 0;
    for (const WhatIfRound& round : run.rounds) {
      validate(round.record);
      text[round.reply].insert(text[round.reply].end(), round.record.emitted.begin(), round.record.emitted.end());
      ms += round.record.ms.total();
      EXPECT_EQ(round.chosen, mode == DecodeMode::adaptive);
      if (mode == DecodeMode::tree) {
        EXPECT_LE(round.record.width, 13u);
      }
    }
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_TRUE(std::equal(text[i].begin(), text[i].end(), replies()[i].text.begin() + 1, replies()[i].text.end()));
    }
    EXPECT_DOUBLE_EQ(ms, run.ms);
    if (mode == DecodeMode::ar) {
      EXPECT_NEAR(run.ms, run.ar_ms, 1e-9 * run.ms);
      EXPECT_EQ(run.rounds.size(), tokens);
    }
  }
}

/// It knew of no drafts that cost no pass.
TEST_F(WhatIfTest, ARecordingOfTheRulesBeforeGivesItsOwnDecisions) {
  Controller controller({}, spec_.block_size);
  SimulatedRecording before;
  record_run(controller, trace_, device_, 63, {.tokens = 200, .prompt = 30}, before, 1);
  EXPECT_LT(before.replies[0].drafting.state.size(), replies()[0].drafting.state.size());
  const WhatIf run = what_if(before.replies, {}), now = what_if(replies(), {});
  EXPECT_TRUE(run.exact);
  ASSERT_EQ(run.rounds.size(), now.rounds.size());
  EXPECT_EQ(run.as_recorded, run.rounds.size());
  for (size_t i = 0; i < run.rounds.size(); ++i) {
    EXPECT_EQ(run.rounds[i].record.width, now.rounds[i].record.width) << i;
  }
}

/// A fixed tree takes what the simulator's hindsight says of it.
TEST_F(WhatIfTest, FixedWidthsTakeWhatHindsightSays) {
  const Hindsight hindsight(trace_, spec_.block_size - 1, 64);
  for (const uint32_t width : {2u, 5u, 16u, 64u}) {
    WhatIfWish wish;
    wish.costs = costs();
    wish.mode = DecodeMode::tree;
    wish.budget = width - 1;
    const double expected = hindsight.tree_ms(device_, width, {.tokens = 200, .prompt = 30});
    EXPECT_NEAR(what_if(replies(), wish).ms, expected, 0.02 * expected)
        << width;  // the last tree of a reply is narrower
  }
}

TEST_F(WhatIfTest, WidthAndDepthAreLimited) {
  WhatIfWish wish;
  wish.costs = costs();
  wish.widest = 7;
  wish.deepest = 3;
  const WhatIf run = what_if(replies(), wish);
  uint32_t widest = 0, deepest = 0;
  for (const WhatIfRound& round : run.rounds) {
    widest = std::max(widest, round.record.width);
    for (const RoundNode& node : round.record.nodes) deepest = std::max(deepest, node.node.depth);
  }
  EXPECT_LE(widest, 7u);
  EXPECT_LE(deepest, 3u);
  EXPECT_GT(widest, 1u);
}

/// Drafts behind the recorded roots alone.
void make_sparse(std::vector<RecordedReply>& replies, const std::vector<std::vector<RoundRecord>>& rounds) {
  for (size_t i = 0; i < replies.size(); ++i) {
    replies[i].dense = false;
    replies[i].draft = [draft = replies[i].draft, &recorded = rounds[i]](uint32_t committed) {
      for (const RoundRecord& round : recorded) {
        if (round.context == committed && round.ms.draft > 0) return draft(committed);
      }
      return std::shared_ptr<const KeptDraft>();
    };
  }
}

TEST_F(WhatIfTest, WithoutDraftsInBetweenTotalsAreMeansAndSaySo) {
  make_sparse(replies(), recording_.rounds);
  EXPECT_TRUE(what_if(replies(), {}).exact);
  WhatIfWish wish;
  wish.costs = costs();
  wish.mode = DecodeMode::tree;
  wish.budget = 3;
  const WhatIf means = what_if(replies(), wish);
  EXPECT_FALSE(means.exact);
  EXPECT_NE(means.why_not.find("means over the recorded passes"), std::string::npos) << means.why_not;
  EXPECT_GT(means.rounds.size(), 20u);
  EXPECT_EQ(means.rounds.size() + means.left_out, replies()[0].rounds + replies()[1].rounds);
  WhatIfWish dense_wish = wish;
  SimulatedRecording dense;
  Controller controller({}, spec_.block_size);
  record_run(controller, trace_, device_, 63, {.tokens = 200, .prompt = 30}, dense);
  const WhatIf exact = what_if(dense.replies, dense_wish);
  EXPECT_TRUE(exact.exact);
  // Each pass is exact, so the mean is near.
  EXPECT_NEAR(means.tokens_per_second(), exact.tokens_per_second(), 0.15 * exact.tokens_per_second());
}

TEST_F(WhatIfTest, TreesAloneGiveEachPassCutNarrower) {
  WhatIfWish wish;
  wish.costs = costs();
  wish.mode = DecodeMode::tree;
  wish.budget = 30;
  const WhatIf wide = what_if(replies(), wish);
  // A recording of these rounds, without a single draft, as older versions made them.
  std::vector<RecordedReply> old = replies();
  for (size_t i = 0; i < old.size(); ++i) {
    std::vector<RoundRecord> rounds;
    for (const WhatIfRound& round : wide.rounds) {
      if (round.reply == i) rounds.push_back(round.record);
    }
    old[i].mode = DecodeMode::tree;
    old[i].budget = 30;
    old[i].knows_drafting = old[i].dense = false;
    old[i].draft = [](uint32_t) { return std::shared_ptr<const KeptDraft>(); };
    old[i].rounds = rounds.size();
    old[i].round = [rounds](size_t round) { return rounds[round]; };
    guess_drafting(old[i], 30);
    EXPECT_EQ(old[i].drafting.block, spec_.block_size);
  }
  const WhatIf self = what_if(old, {});
  EXPECT_TRUE(self.exact) << self.why_not;
  EXPECT_EQ(self.as_recorded, self.rounds.size());
  EXPECT_EQ(self.rounds.size(), wide.rounds.size());
  wish.budget = 6;
  const WhatIf narrow = what_if(old, wish);
  EXPECT_FALSE(narrow.exact);
  EXPECT_EQ(narrow.rounds.size(), wide.rounds.size());
  for (size_t i = 0; i < narrow.rounds.size(); ++i) {
    const RoundRecord& cut = narrow.rounds[i].record;
    const RoundRecord& whole = wide.rounds[i].record;
    ASSERT_EQ(cut.context, whole.context);
    ASSERT_EQ(cut.width, std::min(7u, whole.width));
    for (size_t n = 0; n < cut.nodes.size(); ++n) EXPECT_EQ(cut.nodes[n].node.token, whole.nodes[n].node.token);
    ASSERT_LE(cut.emitted.size(), whole.emitted.size());
  }
  expect_error("What passes cost was not recorded", [&] {
    WhatIfWish adaptive;
    adaptive.mode = DecodeMode::adaptive;
    what_if(old, adaptive);
  });
}

TEST_F(WhatIfTest, AnInterruptedTextEndsBeforeTheRoundThatWouldGoOn) {
  RecordedReply& reply = replies()[0];
  reply.text.resize(120);
  reply.ended = false;
  WhatIfWish wish;
  wish.costs = costs();
  wish.mode = DecodeMode::tree;
  wish.budget = 63;
  const WhatIf run = what_if(std::span(&reply, 1), wish);
  EXPECT_TRUE(run.exact);
  EXPECT_LE(run.tokens, 119u);
  EXPECT_GT(run.tokens, 100u);
}

TEST_F(WhatIfTest, TellsHowFarItIsAndStops) {
  std::stop_source stop;
  uint64_t last = 0;
  WhatIfCallbacks callbacks;
  callbacks.stop = stop.get_token();
  callbacks.progress = [&](uint64_t done, uint64_t total) {
    EXPECT_EQ(total, tokens);
    EXPECT_GT(done, last);
    last = done;
    if (done > 100) stop.request_stop();
  };
  try {
    what_if(replies(), {}, callbacks);
    FAIL() << "went on";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::cancelled);
  }
  EXPECT_LT(last, 120u);
}

TEST_F(WhatIfTest, ASummarySaysWhatWasChosenAndWhetherItPays) {
  WhatIfWish wish;
  wish.costs = costs();
  const WhatIf run = what_if(replies(), wish);
  const WhatIfSummary summary = summarize(run);
  uint64_t rounds = 0;
  for (const auto& [width, count] : summary.widths) rounds += count;
  EXPECT_EQ(rounds, run.rounds.size());
  EXPECT_EQ(summary.narrowest, summary.widths.begin()->first);
  EXPECT_EQ(summary.widest, summary.widths.rbegin()->first);
  EXPECT_DOUBLE_EQ(summary.ratio, run.ar_ms / run.ms);
  wish.mode = DecodeMode::ar;
  const WhatIfSummary plain = summarize(what_if(replies(), wish));
  EXPECT_EQ(plain.payoff, Payoff::even);
  EXPECT_EQ(plain.widest, 1u);
  EXPECT_NE(plain.verdict.find("no guesses"), std::string::npos) << plain.verdict;
  EXPECT_EQ(summarize({}).payoff, Payoff::unknown);
}

/// A pass of so many rows that emits two tokens in 10 ms.
WhatIfRound round_of(uint32_t width, double ar_ms) {
  WhatIfRound round;
  round.record.width = width;
  round.record.emitted = {1, 2};
  round.record.ms.verify = 10;
  round.ar_ms = ar_ms;
  return round;
}

WhatIf run_of(std::initializer_list<WhatIfRound> rounds) {
  WhatIf run;
  for (const WhatIfRound& round : rounds) run.add(round);
  return run;
}

TEST(WhatIfSummaryTest, TheVerdictFollowsTheRatio) {
  const auto of = [](double ar_ms) { return summarize(run_of({round_of(5, ar_ms), round_of(17, ar_ms)})); };
  const WhatIfSummary pays = of(20), even = of(10), costs = of(5);
  EXPECT_EQ(pays.payoff, Payoff::pays);
  EXPECT_EQ(pays.ratio, 2);
  EXPECT_EQ(pays.verdict.rfind("Guessing pays: ", 0), 0u) << pays.verdict;
  EXPECT_NE(pays.verdict.find("2.00 times as fast as plain decoding."), std::string::npos) << pays.verdict;
  EXPECT_EQ(even.payoff, Payoff::even);
  EXPECT_EQ(even.verdict.rfind("Hardly worth guessing: ", 0), 0u) << even.verdict;
  EXPECT_EQ(costs.payoff, Payoff::costs);
  EXPECT_EQ(costs.verdict.rfind("Guessing does not pay: ", 0), 0u) << costs.verdict;
  EXPECT_NE(costs.verdict.find("0.50 times the speed of plain decoding."), std::string::npos) << costs.verdict;
}

TEST(WhatIfSummaryTest, ARatioNeedsEveryRoundsPlainTime) {
  // Of trees whose costs were not recorded only the last round, which is plain, says what a token takes.
  for (const WhatIf& run : {run_of({round_of(5, 0), round_of(5, 0), round_of(1, 10)}),
                            run_of({round_of(1, 10), round_of(5, 0), round_of(1, 10)})}) {
    EXPECT_EQ(run.ar_ms, 0);
    EXPECT_EQ(run.ar_tokens_per_second(), 0);
    EXPECT_EQ(summarize(run).payoff, Payoff::unknown);
  }
}

TEST_F(WhatIfTest, AHostileCountOfTokensToReadTakesNoTime) {
  for (RecordedReply& reply : replies()) {
    reply.drafting.prompt_read = UINT32_MAX;
    reply.drafting.most_waiting = 1;
  }
  EXPECT_EQ(what_if(replies(), {}).tokens, tokens);
}

TEST_F(WhatIfTest, RatiosByWidthAreThoseOfFixedTrees) {
  WhatIfWish wish;
  wish.costs = costs();
  constexpr uint32_t widths[] = {1, 2, 8, 32, 64, 4096};
  const std::vector<WidthRatio> ratios = ratios_by_width(replies(), wish, widths);
  ASSERT_EQ(ratios.size(), 5u);  // no pass can be so wide
  EXPECT_NEAR(ratios[0].ratio, 1, 1e-9);
  for (const WidthRatio& each : ratios) {
    EXPECT_TRUE(each.exact);
    if (each.width == 1) continue;
    wish.mode = DecodeMode::tree;
    wish.budget = each.width - 1;
    const WhatIf run = what_if(replies(), wish);
    EXPECT_DOUBLE_EQ(each.ratio, run.ar_ms / run.ms) << each.width;
  }
}

TEST_F(WhatIfTest, RefusesWhatCannotBe) {
  expect_error("Nothing can be re-run", [&] { what_if({}, {}); });
  RecordedReply plain = replies()[0];
  plain.mode = DecodeMode::ar;
  plain.drafting.block = 0;
  WhatIfWish wish;
  wish.costs = costs();
  wish.mode = DecodeMode::tree;
  expect_error("needs a drafter", [&] { what_if(std::span(&plain, 1), wish); });
  replies()[0].drafting.rules = controller_rules + 1;
  expect_error("rules number", [&] { what_if(replies(), {}); });
  replies()[0].drafting.rules = controller_rules;
  replies()[0].drafting.state.resize(40);
  expect_error("ends inside", [&] { what_if(replies(), {}); });
}

}  // namespace
}  // namespace canopy::test
