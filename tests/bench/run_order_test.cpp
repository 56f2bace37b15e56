#include "engine/bench/sweep.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace canopy {
namespace {

TEST(RunOrder, HasEveryRunOnceRepeatByRepeat) {
  const RunCounts counts{4, 3, 5};
  const std::vector<RunKey> order = run_order(counts, 1);
  ASSERT_EQ(order.size(), counts.total());
  EXPECT_EQ(std::set<RunKey>(order.begin(), order.end()).size(), order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    EXPECT_EQ(order[i].repeat, i / 12);
    EXPECT_EQ(order[i].prompt, i / 4 % 3);
  }
}

TEST(RunOrder, TheSameSeedDrawsTheSameOrderAndAnotherAnother) {
  const RunCounts counts{4, 10, 3};
  EXPECT_EQ(run_order(counts, 5), run_order(counts, 5));
  EXPECT_NE(run_order(counts, 5), run_order(counts, 6));
}

/// Over many draws each column is as often at each place, and as often behind each other one.
TEST(RunOrder, IsDrawnAnewEachTime) {
  constexpr uint32_t columns = 4, blocks = 4000;
  const std::vector<RunKey> order = run_order({columns, 1, blocks}, 3);
  std::map<std::pair<uint32_t, uint32_t>, int> at_place, behind;
  for (size_t i = 0; i < order.size(); ++i) {
    ++at_place[{order[i].contestant, i % columns}];
    if (i % columns > 0) ++behind[{order[i].contestant, order[i - 1].contestant}];
  }
  for (const auto& [what, count] : at_place) EXPECT_NEAR(count, blocks / 4.0, 150) << what.first << " " << what.second;
  for (const auto& [what, count] : behind) EXPECT_NEAR(count, blocks / 4.0, 150) << what.first << " " << what.second;
  EXPECT_EQ(behind.size(), 12u);
}

TEST(RunOrder, WhatIsLeftKeepsItsOrder) {
  const std::vector<RunKey> order = run_order({3, 2, 2}, 9);
  const std::vector<RunKey> done = {order[0], order[5], order[2]};
  const std::vector<RunKey> left = runs_left(order, done);
  ASSERT_EQ(left.size(), 9u);
  EXPECT_EQ(left[0], order[1]);
  EXPECT_EQ(left[1], order[3]);
  EXPECT_EQ(left[3], order[6]);
}

TEST(TimeLeft, TakesEachColumnsOwnMean) {
  TimeLeft time(3);
  const std::vector<RunKey> left = {{0, 0, 1}, {1, 0, 1}, {2, 0, 1}};
  EXPECT_FALSE(time.estimate(left));
  time.add(0, 4);
  time.add(0, 6);
  time.add(1, 2);
  EXPECT_DOUBLE_EQ(*time.estimate(left), 5 + 2 + 4) << "the third as all on average";
  EXPECT_DOUBLE_EQ(*time.estimate({}), 0);
}

}  // namespace
}  // namespace canopy
