// Re-runs against the simulator: with its own costs a recording gives its own decisions, with those of another device
// what that device would have recorded.

#include <gtest/gtest.h>

#include <cstdio>

#include "tests/speculation/simulator_table.h"
#include "tests/whatif/simulated_recording.h"

namespace canopy::test {
namespace {

constexpr uint32_t budget = 63;
constexpr uint32_t tokens = 500;
const Replies replies{.tokens = 200, .prompt = 30};

/// Texts whose drafts do not depend on what was verified before.
std::vector<TraceSpec> honest_texts() {
  return texts_named({"easy", "usual", "hard", "easy, too sure", "usual, unsure", "switching"});
}

void expect_same_rounds(const WhatIf& run, const SimulatedRecording& recorded) {
  size_t next = 0;
  for (size_t reply = 0; reply < recorded.rounds.size(); ++reply) {
    for (size_t i = 0; i < recorded.rounds[reply].size(); ++i, ++next) {
      ASSERT_LT(next, run.rounds.size());
      const RoundRecord& a = run.rounds[next].record;
      const RoundRecord& b = recorded.rounds[reply][i];
      ASSERT_EQ(run.rounds[next].reply, reply);
      ASSERT_EQ(a.context, b.context);
      ASSERT_EQ(a.shape, b.shape) << "at " << a.context;
      ASSERT_EQ(a.width, b.width) << "at " << a.context;
      ASSERT_EQ(a.emitted, b.emitted) << "at " << a.context;
      ASSERT_EQ(a.nodes.size(), b.nodes.size());
      for (size_t node = 0; node < a.nodes.size(); ++node) {
        ASSERT_EQ(a.nodes[node].node.token, b.nodes[node].node.token);
        ASSERT_EQ(a.nodes[node].node.parent, b.nodes[node].node.parent);
        // The simulator's chains have calibrated scores, which nothing depends on.
        if (b.shape == DecodeMode::tree) {
          ASSERT_EQ(a.nodes[node].node.score, b.nodes[node].node.score);
        }
      }
      if (b.ms.draft > 0) {
        ASSERT_EQ(a.predicted, b.predicted) << "at " << a.context;
      }
      ASSERT_EQ(a.ms, b.ms);
    }
  }
  EXPECT_EQ(next, run.rounds.size());
}

/// Devices whose times depend on the width alone, as a table can hold them.
std::vector<DeviceSpec> steady_devices() {
  std::vector<DeviceSpec> steady;
  for (const DeviceSpec& spec : simulated_devices()) {
    if (spec.noise == 0 && spec.drift == 0 && spec.stalls == 0) steady.push_back(spec);
  }
  return steady;
}

TEST(WhatIfSimulator, WithItsOwnCostsARecordingGivesItsOwnDecisions) {
  uint64_t rounds = 0, trees = 0, plain = 0, chains = 0;
  for (const TraceSpec& text : honest_texts()) {
    const Trace trace(text, tokens, 3);
    for (const DeviceSpec& spec : simulated_devices()) {
      SCOPED_TRACE(text.name + " on " + spec.name);
      const VirtualDevice device(spec, tokens, 3);
      Controller controller({}, spec.block_size);
      SimulatedRecording recording;
      record_run(controller, trace, device, budget, replies, recording);
      const WhatIf run = what_if(recording.replies, {});
      EXPECT_TRUE(run.exact) << run.why_not;
      expect_same_rounds(run, recording);
      if (HasFatalFailure()) return;
      EXPECT_EQ(run.as_recorded, run.chosen);
      EXPECT_EQ(run.as_recorded, run.rounds.size());
      rounds += run.rounds.size();
      for (const WhatIfRound& round : run.rounds) {
        plain += round.record.shape == DecodeMode::ar;
        trees += round.record.shape == DecodeMode::tree;
        chains += round.record.shape == DecodeMode::chain;
      }
    }
  }
  std::printf("%llu rounds: %llu plain, %llu trees, %llu chains\n", static_cast<unsigned long long>(rounds),
              static_cast<unsigned long long>(plain), static_cast<unsigned long long>(trees),
              static_cast<unsigned long long>(chains));
  EXPECT_GT(trees, 1000u);
  EXPECT_GT(plain, 1000u);
}

TEST(WhatIfSimulator, ADenseRecordingUnderOtherCostsEqualsOneMadeUnderThem) {
  uint64_t other_rounds = 0;
  for (const TraceSpec& text : honest_texts()) {
    const Trace trace(text, tokens, 5);
    for (const DeviceSpec& from : steady_devices()) {
      const VirtualDevice a(from, tokens, 5);
      Controller controller({}, from.block_size);
      SimulatedRecording recorded;
      record_run(controller, trace, a, budget, replies, recorded);
      for (const DeviceSpec& to : steady_devices()) {
        if (to.block_size != from.block_size) continue;  // another drafter
        SCOPED_TRACE(text.name + " from " + from.name + " to " + to.name);
        const VirtualDevice b(to, tokens, 5);
        Controller there({}, to.block_size);
        SimulatedRecording made;
        record_run(there, trace, b, budget, replies, made);
        WhatIfWish wish;
        wish.costs = WhatIfCosts{b.calibrate(), std::make_shared<DeviceTimes>(b)};
        const WhatIf run = what_if(recorded.replies, wish);
        EXPECT_TRUE(run.exact) << run.why_not;
        expect_same_rounds(run, made);
        if (HasFatalFailure()) return;
        EXPECT_NEAR(run.ms, made.result.ms, 1e-9 * made.result.ms);
        EXPECT_NEAR(run.ar_ms, run_ar(trace, b), 1e-9 * run.ar_ms);
        other_rounds += run.rounds.size() - run.as_recorded;
      }
    }
  }
  EXPECT_GT(other_rounds, 5000u);  // it was not the same thing all along
}

TEST(WhatIfSimulator, WhatTheFirstReplyKnewOfTheDrafterIsKeptUnderOtherCosts) {
  const Trace trace(texts_named({"easy, too sure"})[0], 2 * tokens, 7);
  const DeviceSpec spec = steady_devices()[0];
  const VirtualDevice device(spec, 2 * tokens, 7);
  Controller controller({}, spec.block_size);
  SimulatedRecording recorded;
  record_run(controller, trace, device, budget, {.tokens = tokens, .prompt = 30}, recorded);
  ASSERT_EQ(recorded.replies.size(), 2u);
  WhatIfWish wish;
  wish.costs = WhatIfCosts{device.calibrate(), std::make_shared<DeviceTimes>(device)};
  const WhatIf both = what_if(recorded.replies, wish);
  const WhatIf second = what_if(std::span(recorded.replies).subspan(1), wish);
  RecordedReply fresh = recorded.replies[1];
  fresh.drafting.state = recorded.replies[0].drafting.state;
  const WhatIf unknowing = what_if(std::span(&fresh, 1), wish);
  const WhatIfRound& known = second.rounds.front();
  const WhatIfRound& unknown = unknowing.rounds.front();
  ASSERT_FALSE(known.record.nodes.empty());
  ASSERT_FALSE(unknown.record.nodes.empty());
  EXPECT_NE(known.record.nodes[1].node.score, unknown.record.nodes[1].node.score);  // calibrated, and not
  EXPECT_GT(both.rounds.size(), second.rounds.size());
}

}  // namespace
}  // namespace canopy::test
