// The columns of a tree.

#include "app/tree/tree_words.h"

#include <gtest/gtest.h>

#include <vector>

namespace canopy::test {
namespace {

app::ColumnNeed need(float most, float less, float least, float around = 20) {
  return {{most, less, least}, around};
}

TEST(TreeColumns, WhatIsSpareIsSpreadEvenly) {
  const std::vector<app::ColumnNeed> needs = {need(30, 0, 0), need(10, 50, 0), need(20, 0, 40)};
  const app::TreeColumns columns = app::place_columns(needs, {.width = 400, .gap = 14, .tight_gap = 8, .shortest = 15});
  EXPECT_FALSE(columns.tight);
  EXPECT_FLOAT_EQ(columns.total, 400);
  const float first = columns.x[1] - columns.x[0] - columns.width[0];
  EXPECT_GT(first, 14);
  EXPECT_FLOAT_EQ(columns.x[2] - columns.x[1] - columns.width[1], first);
  EXPECT_FLOAT_EQ(columns.width[1], 70);
}

TEST(TreeColumns, TheLeastClaimIsCutFirstAndOnlyAsFarAsNeeded) {
  const std::vector<app::ColumnNeed> needs = {need(60, 0, 0), need(30, 40, 120), need(30, 20, 90)};
  const app::TreeColumns columns = app::place_columns(needs, {.width = 260, .gap = 14, .tight_gap = 8, .shortest = 15});
  EXPECT_TRUE(columns.tight);
  EXPECT_LE(columns.total, 260.01f);
  EXPECT_GT(columns.total, 255);
  EXPECT_GE(columns.label_room[0], 60);
  EXPECT_GE(columns.label_room[1], 40);
  EXPECT_LT(columns.label_room[2], 90);
  EXPECT_GT(columns.label_room[2], 15);
}

TEST(TreeColumns, NoLabelIsCutBelowTheShortest) {
  const std::vector<app::ColumnNeed> needs(40, need(100, 100, 100));
  const app::TreeColumns columns = app::place_columns(needs, {.width = 300, .gap = 14, .tight_gap = 8, .shortest = 15});
  for (const float room : columns.label_room) EXPECT_FLOAT_EQ(room, 15);
  EXPECT_GT(columns.total, 300);
}

}  // namespace
}  // namespace canopy::test
