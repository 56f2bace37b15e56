// What columns of a comparison and rows of a sweep say.

#include "app/compare/compare_figures.h"

#include <gtest/gtest.h>

#include "tests/bench/sweep_samples.h"

namespace canopy::app {
namespace {

ComparisonState measured_state(uint32_t repeats = 2) {
  ComparisonState state;
  MeasuredPlan plan;
  plan.sweep = test::measured_sweep(repeats);
  plan.changes = 1;
  state.compare_setup.columns = {{{DecodeMode::ar, 0}, "", "", "", ""},
                                 {{DecodeMode::chain, 0}, "", "", "", ""},
                                 {{DecodeMode::tree, 16}, "", "", "", ""}};
  state.comparison = plan;
  return state;
}

TEST(CompareFigures, SayNothingBeforeAnythingWasMeasured) {
  const CompareFigures figures = compare_figures(ComparisonState{});
  ASSERT_EQ(figures.columns.size(), 4u);
  for (const ColumnFigures& column : figures.columns) {
    EXPECT_FALSE(column.measured);
    EXPECT_EQ(column.text, ColumnText::unknown);
  }
  EXPECT_EQ(figures.verdict, "");
  EXPECT_EQ(figures.agreement_words, "");
}

TEST(CompareFigures, GiveSpeedRatioAndTheirErrors) {
  const CompareFigures figures = compare_figures(measured_state(3));
  ASSERT_EQ(figures.columns.size(), 3u);
  EXPECT_EQ(figures.columns[0].speed, "102");
  EXPECT_EQ(figures.columns[0].text, ColumnText::reference);
  EXPECT_EQ(figures.columns[2].name, "Tree 16");
  EXPECT_EQ(figures.columns[2].ratio, "\u00d73.00");
  EXPECT_EQ(figures.columns[2].ratio_error, "\u00b10.000");
  EXPECT_EQ(figures.columns[2].text, ColumnText::same);
  EXPECT_TRUE(figures.columns[2].fastest);
  EXPECT_FALSE(figures.columns[0].fastest);
  EXPECT_EQ(figures.agreement_words, "All three texts are the same");
  EXPECT_NE(figures.verdict.find("tree 16 is 3.00"), std::string::npos) << figures.verdict;
  EXPECT_EQ(figures.columns[2].ratio_doubt, "");
  EXPECT_EQ(figures.columns[2].about, "mean width 3.0");
  ASSERT_FALSE(figures.about.empty());
  EXPECT_NE(figures.about[0].find("A very good GPU"), std::string::npos) << "who measured: " << figures.about[0];
}

// As Sweep says it: one or two repeats have no winner, however far apart they are.
TEST(CompareFigures, HaveNoWinnerBelowThreeRepeats) {
  const CompareFigures once = compare_figures(measured_state(1));
  EXPECT_EQ(once.columns[2].ratio_error, "") << "one repeat has no error";
  EXPECT_EQ(once.columns[2].ratio_doubt, "Tree 16, measured once (three repeats show more).");
  EXPECT_EQ(once.columns[0].ratio_doubt, "") << "the reference is compared with nothing";
  EXPECT_TRUE(once.verdict.starts_with("no winner here")) << once.verdict;
  bool told = false;
  for (const std::string& each : once.about) told = told || each.starts_with("Nothing was measured twice");
  EXPECT_TRUE(told) << "Sweep's own sentence";
  for (const uint32_t repeats : {1u, 2u})
    for (const ColumnFigures& column : compare_figures(measured_state(repeats)).columns)
      EXPECT_FALSE(column.fastest) << column.name << ", " << repeats;
}

TEST(CompareFigures, SayThatAWayDecodedPlainly) {
  ComparisonState state = measured_state(3);
  state.compare_setup.columns[2].way = state.comparison->sweep.contestants[2].way = {DecodeMode::adaptive, 0};
  for (MeasuredRun& run : state.comparison->sweep.runs) {
    run.rows = run.rounds;
    run.widest = 1;
  }
  const CompareFigures figures = compare_figures(state);
  EXPECT_EQ(figures.columns[2].about, "decoded plainly");
  EXPECT_EQ(figures.columns[0].about, "one token per pass");
  EXPECT_FALSE(figures.columns[2].fastest);
}

TEST(CompareFigures, TellAnErrorFromAnotherModelsText) {
  ComparisonState state = measured_state();
  for (MeasuredRun& run : state.comparison->sweep.runs)
    if (run.key == RunKey{1, 0, 0}) run.differs_at = 6;
  CompareFigures figures = compare_figures(state);
  EXPECT_EQ(figures.columns[1].text, ColumnText::wrong);
  EXPECT_EQ(figures.columns[1].differs_at, 6u);
  EXPECT_EQ(figures.agreement_words, "Texts differ that must not");
  Sweep& sweep = state.comparison->sweep;
  sweep.subjects.push_back(sweep.subjects[0]);
  sweep.subjects[1].device = "Another GPU";
  sweep.contestants[1].subject = 1;
  figures = compare_figures(state);
  EXPECT_EQ(figures.columns[1].text, ColumnText::differs);
  EXPECT_NE(figures.columns[1].place.find("Another GPU"), std::string::npos) << figures.columns[1].place;
  EXPECT_EQ(figures.agreement_words, "Texts differ, as they may");
}

TEST(WayNames, SayWhereGuessesComeFromUnlessAllAreAsked) {
  EXPECT_EQ(way_title({DecodeMode::tree, 16}), "Tree 16");
  EXPECT_EQ(way_title({DecodeMode::tree, 16, kFromDflash}), "Tree 16 (drafter)");
  EXPECT_EQ(way_title({DecodeMode::tree, 16, kFromMtp}), "Tree 16 (MTP head)");
  EXPECT_EQ(way_title({DecodeMode::tree, 16, kFromEagle}), "Tree 16 (EAGLE-3 head)");
  EXPECT_EQ(way_title({DecodeMode::tree, 16, kFromAssistant}), "Tree 16 (assistant)");
  EXPECT_EQ(way_title({DecodeMode::chain, 0, kFromSuffix}), "Chain (text)");
  EXPECT_EQ(way_title({DecodeMode::adaptive, 0, 0}), "Adaptive (no guesses)");
  EXPECT_EQ(way_title({DecodeMode::adaptive, 0, kUsualSources | kFromRecycling}), "Adaptive (drafter, text, recycled)");
  EXPECT_EQ(way_title({DecodeMode::chain, 0, kFromSuffix | kFromRecycling}), "Chain (text, recycled)");
  EXPECT_EQ(way_title({DecodeMode::ar, 0}), "Plain");
  EXPECT_EQ(way_subtitle({DecodeMode::chain, 0}), "one path");
  EXPECT_EQ(way_subtitle({DecodeMode::chain, 0, kFromDflash}), "DFlash, one path");
  EXPECT_EQ(way_subtitle({DecodeMode::tree, 16, kFromSuffix}), "fixed size");
  EXPECT_EQ(way_subtitle({DecodeMode::tree, 16, kFromDflash}), "DDTree, fixed size");
}

TEST(LaneBars, JoinRoundsThatAreTooNarrow) {
  std::vector<RaceRound> rounds;
  for (uint32_t i = 0; i < 1000; ++i) rounds.push_back({i * 10.0, i * 10.0 + 10, 1 + i % 3, i % 3, 1, 0});
  EXPECT_EQ(lane_bars(rounds, 1, 2).size(), 1000u) << "10 pixels each";
  const std::vector<LaneBar> narrow = lane_bars(rounds, 0.01, 2);
  EXPECT_LE(narrow.size(), 51u);
  EXPECT_EQ(narrow.front().begin_ms, 0);
  EXPECT_EQ(narrow.back().end_ms, 10'000);
  for (size_t i = 1; i < narrow.size(); ++i) EXPECT_EQ(narrow[i].begin_ms, narrow[i - 1].end_ms);
  EXPECT_NEAR(narrow.front().emitted, 2, 0.1);
  EXPECT_NEAR(narrow.front().own, 1, 1e-9);
}

TEST(SweepViews, HaveARowForEachColumnAndCurvesOverTrees) {
  const Sweep sweep = test::measured_sweep();
  const SweepView view = sweep_view(sweep, 0, {});
  ASSERT_EQ(view.table.rows.size(), 3u);
  for (const auto& row : view.table.rows) EXPECT_EQ(row.size(), view.table.columns.size());
  EXPECT_EQ(view.table.rows[2][2].substr(0, 4), "3.00");
  ASSERT_EQ(view.speed.size(), 1u);
  EXPECT_EQ(view.speed[0].budget, std::vector<double>{16});
  EXPECT_EQ(view.speed[0].levels.size(), 2u);
  EXPECT_NEAR(view.ratio[0].value[0], 3, 1e-9);
  const SweepView other = sweep_view(sweep, 2, {});
  EXPECT_EQ(other.table.rows[2][2].substr(0, 4), "1.00") << "the baseline is " << other.table.columns[2];
}

// Two trees of one size would stand above each other.
TEST(SweepViews, ACurveHasTheTreesOfOneSetOfSources) {
  Sweep sweep = test::measured_sweep();
  sweep.contestants[1].way = {DecodeMode::tree, 16, kFromSuffix};
  const SweepView view = sweep_view(sweep, 0, {});
  EXPECT_EQ(view.table.rows.size(), 3u);
  EXPECT_EQ(view.ratio[0].budget, std::vector<double>{16});
  EXPECT_NEAR(view.ratio[0].value[0], 2, 1e-9);
  EXPECT_EQ(view.ratio[0].levels.size(), 1u);
}

TEST(SweepViews, LayOthersBeside) {
  const Sweep sweep = test::measured_sweep();
  auto theirs = std::make_shared<Sweep>(sweep);
  theirs->subjects[0].device = "Another GPU";
  for (MeasuredRun& run : theirs->runs) run.decode_ms *= 2;
  const SweepView view = sweep_view(sweep, 0, {{"theirs.json", theirs}});
  ASSERT_EQ(view.overlays.size(), 1u);
  EXPECT_EQ(view.overlays[0].name, "Another GPU");
  ASSERT_EQ(view.overlays[0].table.rows.size(), 3u);
  EXPECT_EQ(view.overlays[0].table.rows[0][3].substr(0, 3), "2.0") << view.overlays[0].table.rows[0][3];
  EXPECT_EQ(view.speed.size(), 2u);
  EXPECT_NEAR(view.speed[1].value[0], view.speed[0].value[0] / 2, 1e-9);
  EXPECT_NEAR(view.ratio[1].value[0], view.ratio[0].value[0], 1e-9) << "a ratio has no unit";
}

}  // namespace
}  // namespace canopy::app
