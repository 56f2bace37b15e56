#include "engine/speculation/controller.h"
#include "engine/speculation/tree_builder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/base/expect_error.h"
#include "tests/speculation/draft_candidates.h"

namespace canopy {
namespace {

using test::expect_error;

/// Costs of 10 ms for each pass, whatever its width, unless told otherwise.
struct FlatCost : PassCost {
  double verify = 10, per_row = 0, draft = 2;
  double verify_ms(uint32_t width, uint32_t) const override { return verify + per_row * (width - 1); }
  double draft_ms(uint32_t, uint32_t) const override { return draft; }
  double other_ms(uint32_t) const override { return 0.1; }
};

constexpr uint32_t vocab = 100;
constexpr uint32_t block = 8;

/// A controller and a draft whose first `right` tokens are those of the text.
struct Rig {
  Controller controller{ControllerOptions{}, block};
  FlatCost cost;
  test::Candidates candidates{test::random_rows(size_t{vocab} * (block - 1), 1, 3.0f), vocab, 32};
  TreeBuilder builder;
  WidthLimits limits{.budget = 63};

  DraftPlan plan() { return controller.plan(100, 1, limits, cost); }

  WidthChoice choose(const DraftPlan& plan) {
    auto depths = candidates.all();
    depths.resize(plan.depth);
    builder.begin(1, depths, 32, controller.calibration(plan.depth));
    while (controller.wants_more(builder.tree()) && builder.next() == TreeStep::added) {
    }
    return controller.choose(builder.tree(), depths);
  }

  /// Runs a round; its draft, if it has one, is right for `right` tokens.
  DraftPlan round(uint32_t right) {
    const DraftPlan planned = plan();
    std::vector<uint32_t> emitted;
    uint32_t width = 1;
    if (planned.draft) width = choose(planned).best.width;
    for (uint32_t d = 1; planned.draft && width > 1 && d <= std::min(right, planned.depth); ++d) {
      emitted.push_back(candidates.at(d).tokens[0]);
    }
    emitted.push_back(vocab);
    controller.observe({emitted, planned.draft ? cost.draft : 0, cost.verify_ms(width, 100), 0.1});
    return planned;
  }
};

TEST(Controller, DraftsAtFirstAndAsLongAsItPays) {
  Rig rig;
  rig.controller.begin_reply();
  for (int i = 0; i < 40; ++i) {
    const DraftPlan plan = rig.round(4);
    ASSERT_TRUE(plan.draft) << plan.reason;
    EXPECT_FALSE(plan.trial);
    EXPECT_EQ(plan.depth, block - 1);
    EXPECT_DOUBLE_EQ(plan.ar_ms, 10.1);
    EXPECT_DOUBLE_EQ(plan.draft_ms, 2);
  }
  EXPECT_GT(rig.controller.speed().mean(), 3.0);
}

TEST(Controller, StopsWhereItDoesNotPayAndTriesAgain) {
  Rig rig;
  uint32_t drafts = 0, trials = 0, late = 0;
  for (int i = 0; i < 3000; ++i) {
    const DraftPlan plan = rig.round(0);
    drafts += plan.draft ? 1 : 0;
    trials += plan.trial ? 1 : 0;
    late += plan.trial && i > 2000 ? 1 : 0;
    EXPECT_FALSE(plan.reason.empty());
  }
  EXPECT_LT(drafts, 100u);
  EXPECT_GT(trials, 5u);
  EXPECT_GE(late, 3u) << "the interval is capped";
  // It drafts again once that pays.
  for (int i = 0; i < 400; ++i) rig.round(6);
  EXPECT_TRUE(rig.round(6).draft);
  EXPECT_FALSE(rig.plan().trial);
}

TEST(Controller, NeverDraftsWhereEvenAFullyAcceptedDraftWouldLose) {
  Rig rig;
  rig.cost.draft = 80;
  for (int i = 0; i < 50; ++i) {
    const DraftPlan plan = rig.round(6);
    EXPECT_FALSE(plan.draft);
    EXPECT_NE(plan.reason.find("accepted in full"), std::string::npos) << plan.reason;
    EXPECT_NE(plan.reason.find("80.0 ms"), std::string::npos) << plan.reason;
  }
}

// A draft costs as much as two AR rounds, and each row nearly as much as one: even a good drafter does not bring
// enough.
TEST(Controller, WaitsForTheTimeOfATrialWhereEvenAGoodDrafterWouldLose) {
  Rig rig;
  rig.cost.draft = 20;
  rig.cost.per_row = 6;
  uint32_t drafts = 0;
  for (int i = 1; i <= 4000; ++i) {
    const DraftPlan plan = rig.round(0);
    EXPECT_LT(plan.believed, 1);
    if (plan.draft) {
      EXPECT_TRUE(plan.trial) << plan.reason;
      ++drafts;
    }
    if (i < 300) {
      ASSERT_FALSE(plan.draft) << "token " << i << ": " << plan.reason;
    }
    if (i == 100) {
      EXPECT_NE(plan.reason.find("even a good drafter"), std::string::npos) << plan.reason;
    }
  }
  EXPECT_GE(drafts, 3u) << "it is looked at all the same";
  EXPECT_GE(rig.controller.bound().trials_left_ms(), 0) << "within 1% of the time";
}

TEST(Controller, DraftsAtOnceWhereAGoodDrafterPays) {
  Rig rig;
  rig.cost.per_row = 3;
  const DraftPlan plan = rig.plan();
  EXPECT_GT(plan.believed, 1);
  EXPECT_TRUE(plan.draft) << plan.reason;
  EXPECT_FALSE(plan.trial);
}

TEST(Controller, AStallIsNotHeldAgainstDrafting) {
  Rig rig;
  rig.cost.per_row = 1;
  for (int i = 0; i < 20; ++i) {
    const DraftPlan plan = rig.plan();
    ASSERT_TRUE(plan.draft) << "round " << i << ": " << plan.reason;
    const WidthChoice choice = rig.choose(plan);
    std::vector<uint32_t> emitted;
    for (uint32_t d = 1; choice.best.width > 1 && d <= 3; ++d) emitted.push_back(rig.candidates.at(d).tokens[0]);
    emitted.push_back(vocab);
    const double stalled = i == 0 ? 300 : 0;
    rig.controller.observe({emitted, 2, rig.cost.verify_ms(choice.best.width, 100) + stalled, 0.1});
  }
}

// The bound's "two rounds" are rounds of the present speed, not of the time before the device became faster.
TEST(Controller, TheBoundFollowsTheRoundsOfLate) {
  Rig rig;
  rig.cost = {};
  rig.cost.verify = 200;
  rig.cost.draft = 40;
  for (int i = 0; i < 60; ++i) rig.round(6);
  rig.cost.verify = 10;
  rig.cost.draft = 2;
  for (int i = 0; i < 300; ++i) rig.round(6);
  rig.controller.begin_reply();
  double behind = 0;
  for (int i = 0; i < 60; ++i) {
    const DraftPlan plan = rig.round(0);
    behind += (plan.draft ? 12.1 : 10.1) - 1.02 * 10.1;
    ASSERT_LE(behind, 2 * 12.1 + 1e-6) << plan.reason;
  }
}

TEST(Controller, KeepsTheLimits) {
  Rig rig;
  rig.limits = {.budget = 5};
  EXPECT_EQ(rig.plan().width, 6u);
  rig.limits = {.rows = 4};
  EXPECT_EQ(rig.plan().width, 4u);
  EXPECT_EQ(rig.choose(rig.plan()).best.width, 4u) << "wider rounds cost nothing here";
  rig.limits = {.depth = 3};
  EXPECT_EQ(rig.plan().depth, 3u);
  rig.limits = {.tokens_left = 3};
  EXPECT_EQ(rig.plan().depth, 2u);
  rig.limits = {.context_left = 2};
  EXPECT_EQ(rig.plan().depth, 1u);
  for (const WidthLimits none :
       {WidthLimits{.budget = 0}, WidthLimits{.tokens_left = 1}, WidthLimits{.context_left = 1}, WidthLimits{.rows = 1},
        WidthLimits{.depth = 0}, WidthLimits{.rows = 0}}) {
    rig.limits = none;
    const DraftPlan plan = rig.plan();
    EXPECT_FALSE(plan.draft);
    EXPECT_EQ(plan.width, 1u);
    EXPECT_NE(plan.reason.find("no room"), std::string::npos) << plan.reason;
  }
}

TEST(Controller, SaysWhatItChoseAndWhy) {
  Rig rig;
  rig.cost.per_row = 0.2;
  const WidthChoice choice = rig.choose(rig.plan());
  EXPECT_EQ(choice.shape, DecodeMode::tree);
  EXPECT_GT(choice.best.width, 1u);
  EXPECT_DOUBLE_EQ(choice.verify_ms, rig.cost.verify_ms(choice.best.width, 100));
  EXPECT_DOUBLE_EQ(choice.draft_ms, 2);
  EXPECT_NEAR(choice.ar_tokens_per_second, 1000 / 10.1, 1e-9);
  ASSERT_GE(choice.candidates.size(), 40u);
  EXPECT_NE(choice.reason.find("Tree of " + std::to_string(choice.best.width) + " rows"), std::string::npos)
      << choice.reason;
  for (const WidthForecast& each : choice.candidates) {
    EXPECT_NEAR(each.ms, 2 + 0.1 + rig.cost.verify_ms(each.width, 100), 1e-9);
    if (each.width == choice.best.width) {
      EXPECT_DOUBLE_EQ(each.expected, choice.best.expected);
    }
  }
}

TEST(Controller, GrowsTreesNoFurtherThanTheyCanWin) {
  Rig rig;
  rig.limits.budget = 512;
  rig.cost.per_row = 1;
  rig.choose(rig.plan());
  EXPECT_EQ(rig.controller.hindsight().tree().size(), 0u);
  EXPECT_EQ(rig.builder.tree().width(), 64u) << "to learn from, though far fewer were worth their time";
  rig.cost.per_row = 0;
  rig.choose(rig.plan());
  EXPECT_EQ(rig.builder.tree().width(), 513u) << "every node is free";
}

TEST(Controller, LearnsFromFixedModesToo) {
  Rig rig;
  rig.builder.begin(1, rig.candidates.all(), 32);
  rig.builder.build(15);
  rig.controller.watch(rig.builder.tree(), rig.candidates.all());
  std::vector<uint32_t> text;
  for (uint32_t d = 1; d < block; ++d) text.push_back(rig.candidates.at(d).tokens[0]);
  rig.controller.observe({text, 2, 10, 0.1});
  EXPECT_EQ(rig.controller.calibrator().drafts(), 1u);
  ASSERT_EQ(rig.controller.hindsight().tree().size(), 16u);
  EXPECT_EQ(rig.controller.hindsight().chain().back().emitted, block);
  EXPECT_EQ(rig.controller.promises().drafts(), 1u);
  rig.controller.begin_reply();
  EXPECT_TRUE(rig.controller.hindsight().tree().empty());
  EXPECT_EQ(rig.controller.calibrator().drafts(), 1u);
}

TEST(Controller, TakesThePredictionWhereAClockWentBackwards) {
  Rig rig;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<uint32_t> token = {1};
  for (const double bad : {-5.0, nan, std::numeric_limits<double>::infinity()}) {
    const DraftPlan plan = rig.plan();
    if (plan.draft) rig.choose(plan);
    rig.controller.observe({token, bad, bad, bad});
    EXPECT_TRUE(std::isfinite(rig.controller.bound().balance_ms()));
    EXPECT_TRUE(std::isfinite(rig.controller.speed().mean()));
  }
}

TEST(Controller, DoesTheSameWhenToldTheSame) {
  Rig a, b;
  for (uint32_t i = 0; i < 500; ++i) {
    const DraftPlan plan_a = a.round(i / 100 % 2 == 0 ? 3 : 0);
    const DraftPlan plan_b = b.round(i / 100 % 2 == 0 ? 3 : 0);
    ASSERT_EQ(plan_a.reason, plan_b.reason);
    ASSERT_EQ(a.builder.tree().width(), b.builder.tree().width());
  }
}

TEST(Controller, RefusesWhatItCannotWorkWith) {
  expect_error("block size", [&] { Controller(ControllerOptions{}, 1); });
  Rig rig;
  rig.cost.draft = std::numeric_limits<double>::quiet_NaN();
  expect_error("predicted time of the draft", [&] { rig.plan(); });
  rig.cost.draft = 2;
  rig.cost.verify = -1;
  expect_error("predicted time of the target's pass", [&] { rig.plan(); });
  expect_error("without a draft", [&] { rig.controller.choose(DraftTree(1), {}); });
}

}  // namespace
}  // namespace canopy
