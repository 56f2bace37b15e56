#include "engine/bench/sweep_summary.h"

#include <gtest/gtest.h>

#include "tests/bench/sweep_samples.h"

namespace canopy {
namespace {

void slow_down(Sweep& sweep, uint32_t contestant, uint32_t repeat, double factor) {
  for (MeasuredRun& run : sweep.runs)
    if (run.key.contestant == contestant && run.key.repeat == repeat) run.decode_ms *= factor;
}

TEST(Verdict, NamesTheFastestWithItsError) {
  Sweep sweep = test::measured_sweep(3);
  slow_down(sweep, 2, 0, 1.05);
  slow_down(sweep, 2, 2, 0.95);
  const Verdict verdict = verdict_of(sweep);
  EXPECT_EQ(verdict.sentence, "tree 16 is 3.00 \u00b1 0.09 \u00d7 ar here; same text");
  EXPECT_EQ(verdict.fastest, 2u);
  EXPECT_EQ(verdict.agreement, Agreement::same);
}

TEST(Verdict, SaysWherePlainDecodingIsFaster) {
  Sweep sweep = test::measured_sweep(2);
  for (MeasuredRun& run : sweep.runs)
    if (run.key.contestant > 0) run.decode_ms *= 10;
  slow_down(sweep, 2, 0, 1.1);
  const Verdict verdict = verdict_of(sweep);
  EXPECT_EQ(verdict.sentence, "ar is the fastest here: tree 16 is 0.286 \u00b1 0.014 \u00d7 ar; same text");
  EXPECT_EQ(verdict.fastest, 0u);
}

TEST(Verdict, DoesNotClaimWhatRepeatsCannotShow) {
  Sweep sweep = test::measured_sweep(2);
  for (MeasuredRun& run : sweep.runs) run.decode_ms = 1000.0 - (run.key.contestant == 2 ? 10 : 0);
  slow_down(sweep, 2, 1, 1.015);
  EXPECT_NE(verdict_of(sweep).sentence.find(", which 2 repeats cannot tell from no difference"), std::string::npos)
      << verdict_of(sweep).sentence;
}

TEST(Verdict, DoesNotClaimThatPlainDecodingIsFasterEither) {
  Sweep sweep = test::measured_sweep(2);
  for (MeasuredRun& run : sweep.runs) run.decode_ms = 1000.0 + (run.key.contestant == 2 ? 10 : 0);
  slow_down(sweep, 2, 1, 1.015);
  const std::string sentence = verdict_of(sweep).sentence;
  EXPECT_TRUE(sentence.starts_with("ar is the fastest here")) << sentence;
  EXPECT_NE(sentence.find(", which 2 repeats cannot tell from no difference"), std::string::npos) << sentence;
}

TEST(Verdict, WaitsForEveryColumn) {
  Sweep sweep = test::measured_sweep(2);
  std::erase_if(sweep.runs, [](const MeasuredRun& run) { return run.key.contestant == 1; });
  EXPECT_TRUE(verdict_of(sweep).sentence.empty());
  EXPECT_TRUE(verdict_of(test::some_sweep()).sentence.empty());
  EXPECT_EQ(verdict_of(test::some_sweep()).agreement, Agreement::unknown);
}

TEST(Verdict, TellsTextsThatMayDifferFromTextsThatMustNot) {
  Sweep sweep = test::measured_sweep(2);
  for (MeasuredRun& run : sweep.runs)
    if (run.key.contestant == 2) run.differs_at = 3;
  EXPECT_EQ(verdict_of(sweep).agreement, Agreement::must_not);
  EXPECT_NE(verdict_of(sweep).sentence.find("but another text"), std::string::npos);
  sweep.subjects.push_back(sweep.subjects.front());
  sweep.subjects[1].target = 1;
  sweep.contestants[2].subject = 1;
  EXPECT_EQ(verdict_of(sweep).agreement, Agreement::may);
  EXPECT_NE(verdict_of(sweep).sentence.find("another text, as it may be"), std::string::npos);
}

TEST(Verdict, FiguresHaveTheDigitsThatTheErrorLeaves) {
  EXPECT_EQ(ratio_figures({1.4213, 0.031, 5}), "1.42 \u00b1 0.03");
  EXPECT_EQ(ratio_figures({1.4213, 0.0124, 5}), "1.421 \u00b1 0.012");
  EXPECT_EQ(ratio_figures({1.4213, 0.31, 5}), "1.4 \u00b1 0.3");
  EXPECT_EQ(ratio_figures({1.4213, 2.3, 5}), "1.4 \u00b1 2.3");
  EXPECT_EQ(ratio_figures({1.4213, 0.00001, 5}), "1.4213 \u00b1 0.0000");
  EXPECT_EQ(ratio_figures({1.4213, 0, 1}), "1.42");
}

}  // namespace
}  // namespace canopy
