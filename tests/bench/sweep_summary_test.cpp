#include "engine/bench/sweep_summary.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/bench/sweep_samples.h"

namespace canopy {
namespace {

const SweepCell& cell_of(const std::vector<SweepCell>& cells, uint32_t contestant, const std::string& category) {
  return *std::ranges::find_if(
      cells, [&](const SweepCell& cell) { return cell.contestant == contestant && cell.category == category; });
}

TEST(SweepSummary, HasACellForEachCategoryAndColumn) {
  const auto cells = summarize(test::measured_sweep(), 0);
  ASSERT_EQ(cells.size(), 9u);
  EXPECT_EQ(cells.front().category, "gsm");
  EXPECT_EQ(cells.back().category, kAllCategories);
  const SweepCell& tree = cell_of(cells, 2, kAllCategories);
  EXPECT_EQ(tree.replies, 4u);
  EXPECT_EQ(tree.rounds, 160u);
  EXPECT_EQ(tree.tokens, 400u);
  EXPECT_DOUBLE_EQ(tree.tau, 2.5);
  EXPECT_DOUBLE_EQ(tree.mean_rows, 3);
  EXPECT_NEAR(tree.tokens_per_second.mean, 303, 1e-9);
  EXPECT_NEAR(tree.tokens_per_second.sd, 6 / std::sqrt(2.0), 1e-9);
  EXPECT_NEAR(tree.times_baseline.value, 3, 1e-12);
  EXPECT_EQ(tree.times_baseline.pairs, 2u);
  EXPECT_NEAR(tree.times_baseline.error, 0, 1e-12) << "both of a pair change together";
  EXPECT_NEAR(tree.round_ms.verify / tree.round_ms.total(), 0.75, 1e-12);
}

TEST(SweepSummary, OneCategoryHasOneSetOfCells) {
  Sweep sweep = test::measured_sweep();
  for (SweepPrompt& prompt : sweep.prompts) prompt.category = "gsm";
  EXPECT_EQ(summarize(sweep, 0).size(), 3u);
}

TEST(SweepSummary, AnotherBaselineGivesOtherRatios) {
  const auto cells = summarize(test::measured_sweep(), 1);
  EXPECT_NEAR(cell_of(cells, 2, kAllCategories).times_baseline.value, 1.5, 1e-12);
  EXPECT_NEAR(cell_of(cells, 2, kAllCategories).times_plain.value, 3, 1e-12) << "S(N) stays";
}

TEST(SweepSummary, ARepeatThatIsNotWholeDoesNotCountBesideWholeOnes) {
  Sweep sweep = test::measured_sweep(3);
  std::erase_if(sweep.runs, [](const MeasuredRun& run) { return run.key == RunKey{1, 1, 2}; });
  const auto cells = summarize(sweep, 0);
  EXPECT_EQ(cell_of(cells, 2, kAllCategories).times_baseline.pairs, 2u);
  EXPECT_EQ(cell_of(cells, 2, "gsm").times_baseline.pairs, 3u) << "that category is whole";
}

TEST(SweepSummary, BeforeTheFirstWholeRepeatThePromptsThatAllHaveCount) {
  Sweep sweep = test::measured_sweep();
  std::erase_if(sweep.runs, [](const MeasuredRun& run) {
    return run.key.repeat > 0 || (run.key.prompt == 1 && run.key.contestant == 2);
  });
  const auto cells = summarize(sweep, 0);
  const SweepCell& all = cell_of(cells, 2, kAllCategories);
  EXPECT_EQ(all.replies, 1u);
  EXPECT_TRUE(all.times_baseline.known());
  EXPECT_FALSE(all.times_baseline.has_error());
  EXPECT_EQ(cell_of(cells, 0, "he").replies, 0u);
  EXPECT_FALSE(cell_of(cells, 0, "he").times_baseline.known());
}

TEST(SweepSummary, WithoutRunsNothingIsKnown) {
  for (const SweepCell& cell : summarize(test::some_sweep(), 0)) {
    EXPECT_EQ(cell.replies, 0u);
    EXPECT_FALSE(cell.times_baseline.known());
    EXPECT_EQ(cell.tokens_per_second.count, 0u);
  }
}

TEST(SweepSummary, EnergyIsThatOfRoundsAndNeedsAllReadings) {
  Sweep sweep = test::measured_sweep();
  for (MeasuredRun& run : sweep.runs)
    if (run.key.contestant != 1) run.energy_j = 50;
  sweep.runs.front().energy_j = 50;
  const auto cells = summarize(sweep, 0);
  EXPECT_DOUBLE_EQ(cell_of(cells, 2, kAllCategories).joules_per_token.mean, 0.5);
  EXPECT_EQ(cell_of(cells, 2, kAllCategories).joules_per_token.count, 2u);
  EXPECT_EQ(cell_of(cells, 1, kAllCategories).joules_per_token.count, 0u);
}

TEST(SweepSummary, DifferencesAreCountedAndTheEarliestTold) {
  Sweep sweep = test::measured_sweep();
  for (MeasuredRun& run : sweep.runs)
    if (run.key.contestant == 2) run.differs_at = 7 + run.key.repeat;
  const auto cells = summarize(sweep, 0);
  EXPECT_EQ(cell_of(cells, 2, kAllCategories).different, 4u);
  EXPECT_EQ(cell_of(cells, 2, kAllCategories).differs_at, 7u);
  EXPECT_EQ(cell_of(cells, 1, kAllCategories).different, 0u);
  const auto sentences = remarks(sweep);
  ASSERT_FALSE(sentences.empty());
  EXPECT_NE(sentences.front().find("tree 16 wrote another text than ar from token 8 on"), std::string::npos)
      << sentences.front();
}

TEST(SweepSummary, AnotherModelMayWriteAnotherText) {
  Sweep sweep = test::measured_sweep();
  sweep.subjects.push_back(sweep.subjects.front());
  sweep.subjects[1].target = 1;
  sweep.subjects[1].model = "another.gguf";
  sweep.contestants[2].subject = 1;
  for (MeasuredRun& run : sweep.runs)
    if (run.key.contestant == 2) run.differs_at = 7;
  EXPECT_FALSE(sweep.must_agree(2, 0));
  EXPECT_TRUE(sweep.must_agree(1, 0));
  for (const std::string& sentence : remarks(sweep)) EXPECT_EQ(sentence.find("another text"), std::string::npos);
  EXPECT_EQ(sweep.name_of(2), "tree 16, another.gguf");
  EXPECT_FALSE(sweep.plain_of(2)) << "the other model has no plain column";
  EXPECT_FALSE(summarize(sweep, 0).back().times_plain.known());
}

TEST(SweepSummary, ADriftIsTold) {
  Sweep sweep = test::measured_sweep(2);
  EXPECT_NEAR(*drift(sweep), 1.02, 1e-9);
  EXPECT_TRUE(remarks(sweep).empty());
  for (MeasuredRun& run : sweep.runs)
    if (run.key.repeat == 1) run.decode_ms *= 1.2;
  const auto sentences = remarks(sweep);
  ASSERT_EQ(sentences.size(), 1u);
  EXPECT_NE(sentences[0].find("ar became 15% slower"), std::string::npos) << sentences[0];
}

TEST(SweepSummary, WidePassesThatTakeLongAreToldByWhatTheyTook) {
  Sweep sweep = test::measured_sweep(2);
  const auto with_trees_times = [&](double ratio) {
    for (MeasuredRun& run : sweep.runs) {
      const bool tree = run.key.contestant == 2;
      run.rows = (tree ? 9 : 1) * run.rounds;
      run.ms.verify = (tree ? ratio : 1) * run.rounds;
    }
    return remarks(sweep);
  };
  EXPECT_TRUE(with_trees_times(4.4).empty());
  const auto sentences = with_trees_times(4.6);
  ASSERT_EQ(sentences.size(), 1u);
  EXPECT_NE(sentences[0].find("a pass of 9.0 rows (tree 16) took 4.6 times as long"), std::string::npos)
      << sentences[0];
  sweep.subjects[0].device_type = "software";
  sweep.subjects[0].is_software = true;
  EXPECT_TRUE(with_trees_times(1.5).empty()) << "what kind of device it is tells nothing";
}

TEST(SweepSummary, OneRepeatHasNoErrorAndSaysSo) {
  const auto sentences = remarks(test::measured_sweep(1));
  ASSERT_EQ(sentences.size(), 1u);
  EXPECT_NE(sentences[0].find("no error of the ratios is known"), std::string::npos);
}

}  // namespace
}  // namespace canopy
