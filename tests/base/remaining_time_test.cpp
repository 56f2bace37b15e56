#include "engine/base/figures.h"

#include <gtest/gtest.h>

namespace canopy::test {
namespace {

TEST(RemainingTime, KnowsNothingAtFirst) {
  RemainingTime remaining;
  EXPECT_FALSE(remaining.update(100.0, 0, 1000));
  EXPECT_FALSE(remaining.update(100.3, 30, 1000));
  ASSERT_TRUE(remaining.update(100.6, 60, 1000));
  EXPECT_NEAR(*remaining.update(101.0, 100, 1000), 9.0, 1e-9);
}

TEST(RemainingTime, FollowsAChangeOfPace) {
  RemainingTime remaining;
  // Ten seconds of reading from the file cache, then from a disk a tenth as fast.
  double seconds = 0;
  uint64_t done = 0;
  for (; seconds < 10; seconds += 0.125, done += 125) remaining.update(seconds, done, 100'000);
  EXPECT_NEAR(*remaining.update(seconds, done, 100'000), 90, 1);
  for (; seconds < 16; seconds += 0.125, done += 12) remaining.update(seconds, done, 100'000);
  EXPECT_NEAR(*remaining.update(seconds, done, 100'000), 930, 30);
}

TEST(RemainingTime, SaysNothingWhileNothingMovesAndZeroAtTheEnd) {
  RemainingTime remaining;
  remaining.update(0, 5, 100);
  EXPECT_FALSE(remaining.update(3, 5, 100));
  EXPECT_EQ(remaining.update(4, 100, 100), 0.0);
  EXPECT_FALSE(remaining.update(5, 101, 100));
}

}  // namespace
}  // namespace canopy::test
