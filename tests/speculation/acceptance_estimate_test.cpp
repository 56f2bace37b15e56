#include "engine/speculation/acceptance.h"

#include <gtest/gtest.h>

#include <random>

namespace canopy {
namespace {

void learn(PromiseLines& lines, double promised, double accepted) {
  const double promises[] = {promised};
  lines.learn(promises, [&](size_t) { return accepted; });
}

TEST(PromiseLines, BelieveThePromiseBeforeTheFirstDraft) {
  PromiseLines lines;
  EXPECT_DOUBLE_EQ(lines.expected(3, 2.5), 2.5);
  EXPECT_EQ(lines.mean(0), 0);
  EXPECT_EQ(lines.drafts(0), 0);
}

TEST(PromiseLines, FewDraftsChangeLittleManyDecide) {
  PromiseLines lines;
  learn(lines, 2, 0);
  EXPECT_GT(lines.expected(0, 2), 1.4);
  for (int i = 0; i < 200; ++i) learn(lines, 2, 0);
  EXPECT_LT(lines.expected(0, 2), 0.1);
  EXPECT_NEAR(lines.mean(0), 0, 1e-9);
}

TEST(PromiseLines, FollowAPromiseThatSaysSomethingAndNotOneThatDoesNot) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> uniform(0, 4);
  PromiseLines half, nothing;
  for (int i = 0; i < 2000; ++i) {
    const double promised = uniform(random);
    learn(half, promised, promised / 2 + uniform(random) - 2);
    learn(nothing, promised, uniform(random) / 2);
  }
  EXPECT_NEAR(half.expected(0, 3), 1.5, 0.15);
  EXPECT_NEAR(half.expected(0, 1), 0.5, 0.15);
  EXPECT_NEAR(nothing.expected(0, 3.5), 1, 0.15);
  EXPECT_NEAR(nothing.expected(0, 0.5), 1, 0.15);
}

TEST(PromiseLines, ForgetWhatFaded) {
  PromiseLines lines;
  for (int i = 0; i < 100; ++i) learn(lines, 2, 0);
  EXPECT_NEAR(lines.drafts(0), 100, 1e-9);
  lines.fade(0.001);
  for (int i = 0; i < 20; ++i) learn(lines, 2, 2);
  EXPECT_GT(lines.expected(0, 2), 1.95);
  // Nothing overflows after many updates.
  for (int i = 0; i < 20000; ++i) {
    lines.fade(0.9);
    learn(lines, 2, 1);
  }
  EXPECT_NEAR(lines.drafts(0), 10, 0.01);
  EXPECT_NEAR(lines.mean(0), 1, 1e-6);
}

TEST(PromiseLines, WidthsThatWereSeldomBuiltTakeTheLineOfTheNextNarrower) {
  PromiseLines lines;
  const double narrow[] = {1.0, 2.0};
  const double wide[] = {1.0, 2.0, 3.0};
  for (int i = 0; i < 50; ++i) lines.learn(narrow, [](size_t) { return 0.5; });
  lines.learn(wide, [](size_t) { return 3.0; });
  EXPECT_LT(lines.expected(2, 3.0), 2.0) << "one draft of that width, which kept its promise, against fifty";
  EXPECT_DOUBLE_EQ(lines.expected(7, 3.0), lines.expected(2, 3.0));
}

DraftOutcome outcome_of(std::vector<uint32_t> reach, uint32_t chain, uint32_t built) {
  DraftOutcome outcome;
  outcome.predicted.assign(built, 0);
  outcome.chain_predicted.assign(3, 0);
  outcome.reach = std::move(reach);
  outcome.chain = chain;
  return outcome;
}

TEST(HindsightCurve, IsTheMeanOfWhatEveryWidthWouldHaveEmitted) {
  HindsightCurve curve;
  curve.learn(outcome_of({2, 4}, 2, 4));
  curve.learn(outcome_of({3}, 0, 3));
  const auto tree = curve.tree();
  ASSERT_EQ(tree.size(), 4u);
  EXPECT_DOUBLE_EQ(tree[0].emitted, 1);
  EXPECT_DOUBLE_EQ(tree[1].emitted, 1.5);
  EXPECT_DOUBLE_EQ(tree[2].emitted, 2);
  EXPECT_DOUBLE_EQ(tree[3].emitted, 3) << "of the one draft that was built so wide";
  EXPECT_EQ(tree[3].drafts, 1u);
  EXPECT_EQ(tree[3].width, 4u);
  const auto chain = curve.chain();
  ASSERT_EQ(chain.size(), 4u);
  EXPECT_DOUBLE_EQ(chain[1].emitted, 1.5);
  EXPECT_DOUBLE_EQ(chain[3].emitted, 2);
  curve.clear();
  EXPECT_TRUE(curve.tree().empty());
}

TEST(PromiseRecord, MeasuresErrorsAndCorrelation) {
  PromiseRecord record;
  EXPECT_EQ(record.correlation(), 0);
  for (const double accepted : {0.0, 1.0, 2.0, 3.0}) record.learn(accepted + 2, accepted * 1.5, accepted);
  EXPECT_EQ(record.drafts(), 4u);
  EXPECT_DOUBLE_EQ(record.raw_error(), 2);
  EXPECT_DOUBLE_EQ(record.raw_bias(), 2);
  EXPECT_NEAR(record.calibrated_error(), std::sqrt((0.25 + 1 + 2.25) / 4), 1e-12);
  EXPECT_NEAR(record.correlation(), 1, 1e-12);
  record.learn(0, 0, 100);
  EXPECT_LT(record.correlation(), 0);
}

}  // namespace
}  // namespace canopy
