#include "engine/base/figures.h"

#include <gtest/gtest.h>

namespace canopy::test {
namespace {

TEST(Figures, CountBytesAsFileManagersDo) {
  EXPECT_EQ(byte_figures(0), "0.0 kB");
  EXPECT_EQ(byte_figures(999'949), "999.9 kB");
  EXPECT_EQ(byte_figures(98'362'432), "98.4 MB");
  EXPECT_EQ(byte_figures(16'060'522'496), "16.06 GB");
}

TEST(Figures, RoundTimesUp) {
  EXPECT_EQ(duration_figures(0), "1 s");
  EXPECT_EQ(duration_figures(1.2), "2 s");
  EXPECT_EQ(duration_figures(59.5), "1 min 0 s");
  EXPECT_EQ(duration_figures(200), "3 min 20 s");
  EXPECT_EQ(duration_figures(3900), "1 h 5 min");
  EXPECT_EQ(duration_figures(1e300), "99 h 0 min");
}

TEST(Figures, ProgressIsInTheUnitOfTheWhole) {
  EXPECT_EQ(progress_figures(62'000'000, 98'362'432, true, 1.5), "62 / 98 MB, 2 s left");
  EXPECT_EQ(progress_figures(900'000, 98'362'432, true, -1), "1 / 98 MB");
  EXPECT_EQ(progress_figures(1'200'000'000, 8'500'000'000, true, 71), "1.2 / 8.5 GB, 1 min 11 s left");
  EXPECT_EQ(progress_figures(98'362'432, 98'362'432, true, 0.0), "98 / 98 MB");
  EXPECT_EQ(progress_figures(3, 9, false, -1), "3 of 9");
  EXPECT_EQ(progress_figures(3, 0, true, 5), "");
}

}  // namespace
}  // namespace canopy::test
