// Places of rounds on the timeline (look.md, section 7), without drawing.

#include <gtest/gtest.h>

#include "app/charts/timeline_panel.h"

namespace canopy::app {
namespace {

class CountedLog final : public RoundLog {
 public:
  explicit CountedLog(size_t rounds) {
    replies_.emplace_back();
    for (size_t i = 0; i < rounds; ++i) {
      RoundSummary round;
      round.emitted = 1 + static_cast<uint32_t>(i % 7);
      round.accepted = round.emitted - 1;
      round.width = 1 + static_cast<uint32_t>(i % 31);
      round.sources = i % 3 == 0 ? kFromSuffix : kFromDflash;
      summaries_.push_back(round);
    }
  }
  std::shared_ptr<const RoundRecord> round(size_t) const override { return nullptr; }
  std::optional<trace::Piece> piece(uint32_t) const override { return std::nullopt; }
  bool is_live() const override { return false; }
  std::string origin() const override { return ""; }
};

constexpr double kWidth = 1000;

TEST(Timeline, BarsAreTenOnAPitchOfFifteenAndShrinkToTwo) {
  for (const auto& [rounds, pitch, bar] : {std::tuple(10u, 15.0, 10.0), {66u, 15.0, 10.0}, {333u, 1000 / 333.0, 2.0}}) {
    const CountedLog log(rounds);
    const TimelineView view = timeline_view({}, rounds, 0, kWidth);
    EXPECT_NEAR(view.pitch, pitch, 1e-9);
    const auto columns = timeline_columns(log, view, kWidth);
    ASSERT_EQ(columns.size(), rounds);
    EXPECT_NEAR(columns[0].width, bar, 0.01);
    EXPECT_EQ(columns[5].most_emitted, 6u);
    EXPECT_EQ(columns[5].most_accepted, 5u);
  }
}

TEST(Timeline, BeyondThatColumnsHoldMaximumAndMean) {
  const CountedLog log(7000);
  const TimelineView view = timeline_view({}, log.rounds(), 6999, kWidth);
  const auto columns = timeline_columns(log, view, kWidth);
  EXPECT_LE(columns.size(), 334u);
  EXPECT_GE(columns.size(), 300u);
  size_t next = 0;
  for (const TimelineColumn& column : columns) {
    ASSERT_EQ(column.first, next) << "no round is left out";
    next += column.rounds;
    uint32_t most = 0;
    double sum = 0, accepted = 0;
    for (size_t i = column.first; i < next; ++i) {
      accepted += log.summary(i).accepted;
      most = std::max(most, log.summary(i).emitted);
      sum += log.summary(i).emitted;
    }
    EXPECT_EQ(column.most_emitted, most);
    EXPECT_DOUBLE_EQ(column.mean_emitted, sum / static_cast<double>(column.rounds));
    // What was accepted is drawn apart from the target's own tokens: plain rounds accept nothing.
    EXPECT_DOUBLE_EQ(column.mean_accepted, accepted / static_cast<double>(column.rounds));
    EXPECT_NEAR(column.mean_emitted - column.mean_accepted, 1, 1e-9);
    EXPECT_GE(column.width, 2);
  }
  EXPECT_EQ(next, 7000u);
}

TEST(Timeline, MarksRoundsWhoseGuessesAreFromTheTextAlone) {
  const CountedLog log(60);
  const auto bars = timeline_columns(log, timeline_view({}, 60, 0, kWidth), kWidth);
  ASSERT_EQ(bars.size(), 60u);
  for (const TimelineColumn& bar : bars) EXPECT_EQ(bar.is_from_text(), bar.first % 3 == 0) << bar.first;
  const CountedLog many(7000);  // of each column a third: not the most of them
  for (const TimelineColumn& column : timeline_columns(many, timeline_view({}, 7000, 0, kWidth), kWidth)) {
    EXPECT_NEAR(static_cast<double>(column.from_text), static_cast<double>(column.rounds) / 3, 1);
    EXPECT_EQ(column.is_from_text(), column.from_text * 2 > column.rounds);
  }
}

TEST(Timeline, ColumnsHoldTheSameRoundsWhileScrolling) {
  const CountedLog log(100'000);
  for (double first = 0; first < 50'000; first += 777) {
    const auto columns = timeline_columns(log, {0.5, first}, kWidth);
    for (const TimelineColumn& column : columns) EXPECT_EQ(column.first % 6, 0u);
    EXPECT_LE(columns.size(), 336u) << "only what is seen";
  }
}

TEST(Timeline, AClickHitsTheRoundThatIsDrawnThere) {
  const CountedLog log(500);
  for (const double pitch : {3.0, 7.5, 15.0, 40.0}) {
    const TimelineView view = timeline_view({pitch, 100}, log.rounds(), 110, kWidth);
    for (const TimelineColumn& column : timeline_columns(log, view, kWidth)) {
      EXPECT_EQ(round_at(view, column.x + column.width / 2, log.rounds()), column.first);
    }
  }
  EXPECT_EQ(round_at({15, 0}, -50, 500), 0u);
  EXPECT_EQ(round_at({15, 0}, 1e9, 500), 499u);
}

TEST(Timeline, ZoomKeepsTheRoundUnderThePointer) {
  TimelineView view = timeline_view({}, 400, 399, kWidth);
  const size_t under = round_at(view, 420, 400);
  TimelineZoom zoom;
  for (int i = 0; i < 5; ++i) {
    zoom = zoomed(view, 1.3, 420, 400, kWidth);
    view = {*zoom.pitch, zoom.first};
    EXPECT_EQ(round_at(view, 420, 400), under);
  }
  for (int i = 0; i < 20; ++i) {
    zoom = zoomed(view, 0.7, 420, 400, kWidth);
    view = timeline_view(zoom, 400, under, kWidth);
  }
  EXPECT_FALSE(zoom.pitch.has_value()) << "all of it again";
}

// gui.md, criterion 13: the zoom stays when new rounds come.
TEST(Timeline, ZoomOutlivesNewRoundsAndTheShownOneStaysInView) {
  const TimelineZoom zoom{8.0, 20};
  for (size_t rounds = 200; rounds < 400; ++rounds) {
    const TimelineView view = timeline_view(zoom, rounds, rounds - 1, kWidth);
    EXPECT_EQ(view.pitch, 8.0);
    EXPECT_GE(view.x_of(rounds - 1), 0);
    EXPECT_LE(view.x_of(rounds), kWidth + 1e-6);
  }
  const TimelineView back = timeline_view(zoom, 400, 3, kWidth);
  EXPECT_EQ(back.x_of(3), 0);
}

TEST(Timeline, AnEmptyLogHasNoBars) {
  EXPECT_TRUE(timeline_columns(CountedLog(0), timeline_view({}, 0, 0, kWidth), kWidth).empty());
}

}  // namespace
}  // namespace canopy::app
