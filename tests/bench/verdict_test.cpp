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
  Sweep sweep = test::measured_sweep(3);
  for (MeasuredRun& run : sweep.runs)
    if (run.key.contestant > 0) run.decode_ms *= 10;
  slow_down(sweep, 2, 0, 1.1);
  const Verdict verdict = verdict_of(sweep);
  EXPECT_EQ(verdict.sentence, "ar is the fastest here: tree 16 is 0.291 \u00b1 0.009 \u00d7 ar; same text");
  EXPECT_EQ(verdict.fastest, 0u);
}

TEST(Verdict, DoesNotClaimWhatRepeatsCannotShow) {
  Sweep sweep = test::measured_sweep(3);
  for (MeasuredRun& run : sweep.runs) run.decode_ms = 1000.0 - (run.key.contestant == 2 ? 10 : 0);
  slow_down(sweep, 2, 1, 1.015);
  const Verdict verdict = verdict_of(sweep);
  EXPECT_TRUE(verdict.sentence.starts_with("no winner here: tree 16 is 1.0")) << verdict.sentence;
  EXPECT_NE(verdict.sentence.find(", which 3 repeats cannot tell from no difference"), std::string::npos)
      << verdict.sentence;
  EXPECT_FALSE(verdict.fastest);
}

TEST(Verdict, HasNoWinnerBelowThreeRepeats) {
  const Verdict once = verdict_of(test::measured_sweep(1)), twice = verdict_of(test::measured_sweep(2));
  EXPECT_EQ(once.sentence,
            "no winner here: tree 16 is 3.00 \u00d7 ar, measured once (three repeats show more); same text");
  EXPECT_NE(twice.sentence.find("measured twice"), std::string::npos) << twice.sentence;
  EXPECT_FALSE(once.fastest);
  EXPECT_FALSE(twice.fastest);
  EXPECT_EQ(verdict_of(test::measured_sweep(3)).fastest, 2u);
}

// Two ways beat plain decoding, but not each other.
TEST(Verdict, TheFastestIsFasterThanEveryOther) {
  Sweep sweep = test::measured_sweep(3);
  for (MeasuredRun& run : sweep.runs)
    if (run.key.contestant == 1) run.decode_ms *= 0.67;
  slow_down(sweep, 1, 0, 1.02);
  slow_down(sweep, 1, 1, 0.98);
  const Verdict verdict = verdict_of(sweep);
  EXPECT_FALSE(verdict.fastest) << verdict.sentence;
  EXPECT_NE(verdict.sentence.find("\u00d7 ar here; same text"), std::string::npos) << verdict.sentence;
}

// Without a guess it is plain decoding by another name, however much faster its repeats were.
TEST(Verdict, AWayThatMadeNoGuessesIsNoWinner) {
  Sweep sweep = test::measured_sweep(3);
  for (MeasuredRun& run : sweep.runs)
    if (run.key.contestant == 2) run.rows = run.rounds;
  const Verdict verdict = verdict_of(sweep);
  EXPECT_TRUE(verdict.sentence.starts_with("no winner here: tree 16 is 3.00")) << verdict.sentence;
  EXPECT_NE(verdict.sentence.find("and made no guesses"), std::string::npos) << verdict.sentence;
  EXPECT_FALSE(verdict.fastest);
}

TEST(Verdict, DoesNotClaimThatPlainDecodingIsFasterEither) {
  Sweep sweep = test::measured_sweep(3);
  for (MeasuredRun& run : sweep.runs) run.decode_ms = 1000.0 + (run.key.contestant > 0 ? 5 : 0);
  slow_down(sweep, 2, 1, 0.994);
  const std::string sentence = verdict_of(sweep).sentence;
  EXPECT_TRUE(sentence.starts_with("no winner here: ")) << sentence;
  EXPECT_NE(sentence.find(", which 3 repeats cannot tell from no difference"), std::string::npos) << sentence;
  EXPECT_FALSE(verdict_of(sweep).fastest);
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
