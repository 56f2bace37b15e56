// The contents of the budget panel, computed from records.

#include "app/charts/budget_panel.h"

#include <gtest/gtest.h>

#include <random>

#include "app/charts/chart_frame.h"
#include "app/charts/cost_panels.h"
#include "engine/trace/round_statistics.h"
#include "tests/app/charts/chart_samples.h"

namespace canopy::app {
namespace {

using test::decided;
using test::steep_cost;
using test::tiled_cost;
using test::timed;
using test::TraceBuilder;

/// gui.md, criterion 12: over random trees, costs and plain speeds.
TEST(BudgetView, ChosenWidthIsTheArgmaxOfTheDisplayedSpeedsPlainDecodingIncluded) {
  std::mt19937 random(7);
  TraceBuilder builder(7);
  builder.begin();
  size_t plain = 0, drafted = 0;
  for (int i = 0; i < 300; ++i) {
    const double base = 1 + static_cast<double>(random() % 400) / 10, slope = static_cast<double>(random() % 100) / 50;
    const double tile = 1 + static_cast<double>(random() % 16);
    const auto cost = [&](uint32_t width) {
      return width == 1 ? 8.0 : base + slope * std::ceil(width / tile) + 0.001 * width;
    };
    const uint32_t built = 2 + static_cast<uint32_t>(random() % 200);
    const RoundRecord record = decided(builder.tree(built), cost, WidthObjective::per_round);
    const BudgetView view = budget_view(record, nullptr);
    ASSERT_TRUE(view.recorded);
    EXPECT_TRUE(view.is_argmax) << "width " << record.width << " of " << built << ": " << view.not_argmax;
    EXPECT_TRUE(view.not_argmax.empty());
    // The best speed computed here, from the values that are displayed.
    double best = view.ar_tokens_per_second;
    for (const WidthSpeed& each : view.predicted)
      if (each.width > 1 && may_occur(each.width, view.predicted.back().width))
        best = std::max(best, each.tokens_per_second());
    ASSERT_TRUE(view.own.has_value());
    EXPECT_NEAR(view.own->tokens_per_second(), best, 1e-9 * best);
    EXPECT_EQ(view.loses, record.width == 1);
    (record.width == 1 ? plain : drafted) += 1;
  }
  EXPECT_GT(plain, 20u);
  EXPECT_GT(drafted, 20u);
}

/// gui.md, criterion 12: where the width is not the argmax, the panel says why.
TEST(BudgetView, ALongRunChoiceThatIsNotTheArgmaxSaysSo) {
  TraceBuilder builder(3);
  builder.begin();
  size_t differed = 0;
  for (int i = 0; i < 60; ++i) {
    const double speed = 0.02 + 0.01 * i;
    const RoundRecord record = decided(builder.tree(96), tiled_cost, WidthObjective::long_run, speed);
    const BudgetView view = budget_view(record, nullptr);
    EXPECT_NE(view.is_argmax, !view.not_argmax.empty());
    if (view.is_argmax || record.width == 1) continue;
    ++differed;
    EXPECT_NE(view.not_argmax.find("long-run"), std::string::npos) << view.not_argmax;
  }
  EXPECT_GT(differed, 0u);
}

TEST(BudgetView, WhatCannotBeAJudgementOfSpeedIsNamed) {
  TraceBuilder builder(5);
  builder.begin(DecodeMode::tree);
  RoundRecord record = decided(builder.tree(64), tiled_cost, WidthObjective::per_round);
  record.mode = DecodeMode::tree;
  // Take another width than the best one, as a fixed budget would.
  ASSERT_GT(record.width, 4u);
  record.width = 3;
  record.nodes.resize(3);
  const BudgetView fixed = budget_view(record, nullptr);
  EXPECT_NE(fixed.not_argmax.find("Expected best was "), std::string::npos) << fixed.not_argmax;
  EXPECT_FALSE(fixed.was_chosen);
  EXPECT_EQ(fixed.title, "A tree of 2");
  EXPECT_EQ(fixed.reason.find("asked for"), std::string::npos) << "nobody need have asked: " << fixed.reason;
  record.mode = DecodeMode::adaptive;
  record.shape = DecodeMode::chain;
  EXPECT_NE(budget_view(record, nullptr).not_argmax.find("chain"), std::string::npos);
}

/// gui.md, criterion 12: the fixture with S < 1.
TEST(BudgetView, WhereSpeculationIsNotExpectedToPayItSaysSo) {
  TraceBuilder builder(11);
  builder.begin();
  const RoundRecord record = decided(builder.tree(40), steep_cost, WidthObjective::per_round);
  const BudgetView view = budget_view(record, nullptr);
  EXPECT_EQ(record.shape, DecodeMode::ar);
  EXPECT_TRUE(view.loses);
  EXPECT_EQ(verdict(view), "Guessing was not expected to pay");
  EXPECT_EQ(view.title, "Why plain");
  // A trial round on the same device loses as well; it must not be called the best choice.
  RoundRecord trial = builder.tree(8);
  trial.mode = DecodeMode::adaptive;
  trial.choice.limits = {};
  trial.choice.ar_tokens_per_second = 50;
  trial.choice.candidates.clear();
  for (uint32_t width = 1; width <= 8; ++width)
    trial.choice.candidates.push_back({width, 1 + 0.3 * width, steep_cost(width)});
  const BudgetView tried = budget_view(trial, nullptr);
  EXPECT_TRUE(tried.loses);
  EXPECT_FALSE(tried.is_argmax);
  EXPECT_FALSE(tried.not_argmax.empty());
  EXPECT_EQ(verdict(tried), "Guessing was not expected to pay");
}

TEST(BudgetView, WherePlainDecodingIsSlowerSpeculationPays) {
  TraceBuilder builder(2);
  builder.begin();
  const BudgetView view = budget_view(decided(builder.tree(64), tiled_cost, WidthObjective::per_round), nullptr);
  EXPECT_EQ(verdict(view), view.loses ? "Guessing was not expected to pay" : "Guessing was expected to pay");
  EXPECT_EQ(verdict(BudgetView{}), "");
}

/// The measured curve is what a tree cut at N would have accepted: compare with walks of the cut tree.
TEST(BudgetView, MeasuredCurveIsTheTreeCutAtEachWidth) {
  TraceBuilder builder(13);
  builder.begin();
  for (int i = 0; i < 100; ++i) {
    RoundRecord record = builder.tree(48);
    const BudgetView view = budget_view(record, nullptr);
    ASSERT_EQ(view.measured.size(), record.width);
    for (uint32_t width = 1; width <= record.width; ++width) {
      RoundRecord cut = record;
      cut.nodes.resize(width);
      cut.width = width;
      const uint32_t accepted = drafted_part(cut).tokens;
      EXPECT_EQ(view.measured[width - 1].expected, std::min<double>(record.emitted.size(), accepted + 1.0));
    }
    EXPECT_NEAR(view.measured.back().tokens_per_second(), view.realised.tokens_per_second(), 1e-9);
    ASSERT_TRUE(view.hindsight.has_value());
    for (const WidthSpeed& each : view.measured)
      EXPECT_LE(each.tokens_per_second(), view.hindsight->tokens_per_second());
  }
}

TEST(BudgetView, RowsHoldTheChosenOneThePlainOneAndNoWidthTwice) {
  TraceBuilder builder(17);
  builder.begin();
  std::mt19937 random(1);
  for (int i = 0; i < 100; ++i) {
    const uint32_t built = 2 + static_cast<uint32_t>(random() % 120);
    const RoundRecord record = decided(builder.tree(built), tiled_cost, WidthObjective::per_round);
    const BudgetView view = budget_view(record, nullptr);
    EXPECT_LE(view.rows.size(), 5u);
    ASSERT_FALSE(view.rows.empty());
    EXPECT_TRUE(view.rows.back().plain);
    EXPECT_EQ(std::ranges::count_if(view.rows, &BudgetRow::ran), 1);
    for (size_t row = 0; row + 2 < view.rows.size(); ++row)
      EXPECT_LT(view.rows[row].speed.width, view.rows[row + 1].speed.width);
    for (const BudgetRow& row : view.rows)
      if (row.ran && !row.plain) {
        EXPECT_EQ(row.speed.width, record.width);
      }
  }
}

TEST(BudgetView, TimeErrorIsMeasuredOverPredicted) {
  TraceBuilder builder(19);
  builder.begin();
  const RoundRecord record = timed(decided(builder.tree(64), tiled_cost, WidthObjective::per_round), 0.25);
  const BudgetView view = budget_view(record, nullptr);
  ASSERT_TRUE(view.time_error.has_value());
  EXPECT_NEAR(*view.time_error, 0.25, 1e-9);
  EXPECT_NEAR(view.realised.ms, record.ms.total(), 1e-12);
}

TEST(BudgetView, AFixedTreeIsWorkedOutFromTheCostTable) {
  TraceBuilder builder(23);
  builder.begin(DecodeMode::tree);
  RoundRecord record = builder.tree(32);
  record.choice = {};
  EXPECT_TRUE(budget_view(record, nullptr).predicted.empty());
  const auto costs = test::costs_of(tiled_cost);
  const BudgetView view = budget_view(record, costs.get());
  ASSERT_EQ(view.predicted.size(), 32u);
  EXPECT_FALSE(view.recorded);
  EXPECT_EQ(view.predicted.front().expected, 1);
  EXPECT_NEAR(view.predicted[31].ms,
              costs->table.draft_ms(static_cast<uint32_t>(record.emitted.size()), record.context) +
                  costs->table.verify_ms(32, record.context) + costs->table.other_ms(32),
              1e-9);
  EXPECT_NEAR(view.ar_tokens_per_second, 1000 / costs->table.ar_ms(record.context), 1e-9);
}

/// One speed of plain decoding on the screen: the measured one. A choice that was right by another forecast says so.
TEST(BudgetView, TheSpeedOfPlainDecodingIsTheOneGiven) {
  TraceBuilder builder(41);
  builder.begin();
  RoundRecord record = decided(builder.tree(64), tiled_cost, WidthObjective::per_round);
  ASSERT_EQ(record.shape, DecodeMode::tree);
  ArReference plain;
  plain.tokens_per_second = 20 * record.choice.ar_tokens_per_second;
  plain.source = ArSource::plain_rounds;
  const BudgetView view = budget_view(record, nullptr, plain);
  EXPECT_EQ(view.ar_tokens_per_second, plain.tokens_per_second);
  EXPECT_NEAR(view.rows.back().speed.tokens_per_second(), plain.tokens_per_second, 1e-9);
  EXPECT_TRUE(view.loses);
  EXPECT_TRUE(view.slower);
  EXPECT_FALSE(view.is_argmax);
  EXPECT_EQ(view.best_budget, 0u);
  EXPECT_NE(view.not_argmax.find("the forecast for this pass"), std::string::npos) << view.not_argmax;
}

/// The words say what the table has, and that it was measured; without a measurement both have what was expected.
TEST(BudgetView, TheReasonHasThePlainSpeedOfTheTable) {
  TraceBuilder builder(41);
  builder.begin();
  RoundRecord record = decided(builder.tree(64), tiled_cost, WidthObjective::per_round);
  ASSERT_EQ(record.shape, DecodeMode::tree);
  ArReference plain;
  plain.tokens_per_second = 0.5 * record.choice.ar_tokens_per_second;
  plain.source = ArSource::beside;
  for (const auto& [reason, shown] :
       {std::pair("Tree of 17 rows: 3.20 tokens expected in 40.0 ms, 80.0 tok/s against 55.2 plain.",
                  "Tree of 17 rows: 3.20 tokens expected in 40.0 ms, 80.0 tok/s against " +
                      app::speed(plain.tokens_per_second) + " plain, as measured."),
        std::pair(
            "Plain: even a draft accepted in full would run at 0.90\u00d7 plain decoding (draft 9.0 ms, plain round "
            "18.1 ms).",
            "Plain: even a guess accepted in full would run at 0.90\u00d7 plain decoding (guess 9.0 ms, plain pass "
            "18.1 ms). Measured, a plain pass takes " +
                app::milliseconds(plain.ms()) + "."),
        std::pair("Drafting: nothing is known about this drafter yet.",
                  std::string("Guessing: nothing is known about this drafter yet."))}) {
    record.choice.reason = reason;
    const BudgetView view = budget_view(record, nullptr, plain);
    EXPECT_EQ(view.reason, shown);
    EXPECT_EQ(app::speed(view.rows.back().speed.tokens_per_second()), app::speed(plain.tokens_per_second));
    EXPECT_EQ(view.plain_forecast, record.choice.ar_tokens_per_second);
  }
  record.choice.reason = "Tree of 17 rows: 3.20 tokens expected in 40.0 ms, 80.0 tok/s against 55.2 plain.";
  const BudgetView expected = budget_view(record, nullptr);
  EXPECT_EQ(expected.reason, record.choice.reason);
  EXPECT_EQ(expected.plain_forecast, 0);
}

/// "Why 128" must not look like praise where the round was far slower than plain decoding.
TEST(BudgetView, ARoundThatWasSlowerThanPlainDecodingIsMarked) {
  TraceBuilder builder(43);
  builder.begin(DecodeMode::tree);
  RoundRecord record = builder.tree(129);
  record.choice = {};
  ArReference plain;
  plain.tokens_per_second = 10 * 1000.0 * static_cast<double>(record.emitted.size()) / record.ms.total();
  EXPECT_TRUE(budget_view(record, nullptr, plain).slower);
  EXPECT_EQ(budget_view(record, nullptr, plain).title, "A tree of 128");
  plain.tokens_per_second *= 0.01;
  EXPECT_FALSE(budget_view(record, nullptr, plain).slower);
}

TEST(BudgetView, APlainRoundNeedsNoTree) {
  TraceBuilder builder(29);
  builder.begin(DecodeMode::ar);
  RoundRecord record = builder.plain();
  record.choice = {};
  const BudgetView view = budget_view(record, nullptr);
  EXPECT_EQ(view.title, "Why plain");
  EXPECT_TRUE(view.predicted.empty());
  EXPECT_TRUE(view.measured.empty());
  EXPECT_EQ(view.axis_end, 16u);
}

TEST(BudgetView, TheAxisFitsWhatIsMarkedOnIt) {
  TraceBuilder builder(31);
  builder.begin();
  for (const uint32_t width : {2u, 4u, 9u, 25u, 65u, 129u, 200u}) {
    for (int i = 0; i < 5; ++i) {
      const BudgetView view = budget_view(builder.tree(width), nullptr);
      const uint32_t marked =
          std::max({view.realised.budget(), view.best_budget.value_or(0), view.own ? view.own->budget() : 0,
                    view.hindsight ? view.hindsight->budget() : 0});
      EXPECT_GE(view.axis_end, 2 * marked) << width;
      EXPECT_LE(view.axis_end, std::max(16u, 4 * marked)) << width;
      EXPECT_EQ(budget_ticks(view.axis_end).at.back(), view.axis_end) << "the axis ends at a label";
      EXPECT_GE(budget_ticks(view.axis_end).at.size(), 5u) << "more than its ends have labels";
    }
  }
}

TEST(CostView, HoldsEveryMeasuredPassAndTheFittedCurveOverItsSpan) {
  const auto costs = test::costs_of(tiled_cost);
  const CostView view = cost_view(*costs);
  ASSERT_EQ(view.contexts.size(), 2u);
  size_t passes = 0;
  for (const ContextCosts& each : view.contexts) {
    passes += each.width.size();
    ASSERT_FALSE(each.curve_width.empty());
    EXPECT_EQ(each.curve_width.front(), each.width.front());
    EXPECT_EQ(each.curve_width.back(), each.width.back());
    for (size_t i = 1; i < each.curve_ms.size(); ++i) EXPECT_GE(each.curve_ms[i], each.curve_ms[i - 1] * (1 - 1e-12));
  }
  EXPECT_EQ(passes, costs->passes.size());
  EXPECT_EQ(view.fit_error, costs->fit_error);
  EXPECT_GE(view.worst_error, view.fit_error);
}

TEST(Ticks, AreRoundAndHoldTheHighestValue) {
  for (const double highest : {0.03, 0.7, 1.0, 3.0, 9.97, 14.0, 73.0, 556.0, 1103.0, 98765.0}) {
    const Ticks ticks = ticks_to(highest, 3, highest >= 1);
    EXPECT_GE(ticks.top, highest);
    EXPECT_GE(ticks.at.size(), 2u);
    EXPECT_LE(ticks.at.size(), 5u);
    EXPECT_EQ(ticks.at.front(), 0);
    EXPECT_LE(ticks.at.back(), ticks.top);
    EXPECT_EQ(ticks.at.size(), ticks.labels.size());
  }
  EXPECT_EQ(ticks_to(1178).labels[1], "400");
  EXPECT_EQ(ticks_to(9000).labels[1], "4,000");
  EXPECT_EQ(ticks_to(-1).at.front(), 0);
  EXPECT_EQ(width_ticks(128).at, (std::vector<double>{1, 16, 32, 48, 64, 80, 96, 112, 128}));
  EXPECT_EQ(budget_ticks(16).at, (std::vector<double>{0, 2, 4, 6, 8, 10, 12, 14, 16}));
  EXPECT_LE(width_ticks(1024).at.size(), 9u);
  EXPECT_EQ(budget_ticks(64).labels.front(), "0");
}

TEST(Ticks, LabelsThatWouldTouchAreLeftOutEvenly) {
  const std::vector<float> places = {0, 20, 40, 60, 80}, lengths(5, 15);
  EXPECT_EQ(labels_that_fit(places, lengths, 5), std::vector<bool>(5, true));
  EXPECT_EQ(labels_that_fit(places, lengths, 6), (std::vector<bool>{true, false, true, false, true}));
  EXPECT_EQ(labels_that_fit(places, lengths, 60), (std::vector<bool>{true, false, false, false, true}));
  EXPECT_EQ(labels_that_fit(places, lengths, 500), (std::vector<bool>{true, false, false, false, false}));
  EXPECT_TRUE(labels_that_fit({}, {}, 1).empty());
}

}  // namespace
}  // namespace canopy::app
