// Where the nodes of a tree go.

#include "app/tree/tree_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <set>

#include "tests/app/tree/tree_samples.h"

namespace canopy::test {
namespace {

using app::place_rows;
using app::TreeModel;
using app::TreeRows;

void expect_no_overlap(const TreeModel& tree, const TreeRows& rows) {
  std::set<std::pair<uint32_t, int32_t>> taken;
  for (uint32_t i = 0; i < tree.size(); ++i) {
    ASSERT_GE(rows.row[i], 0);
    ASSERT_LT(rows.row[i], rows.count);
    ASSERT_TRUE(taken.insert({tree.nodes[i].depth, rows.row[i]}).second) << "node " << i;
  }
}

/// Checks that each parent is within the span of its children, that siblings are in order of rank, and that the column
/// after a leaf is free.
void expect_family_order(const TreeModel& tree, const TreeRows& rows) {
  std::set<std::pair<uint32_t, int32_t>> taken;
  for (uint32_t i = 0; i < tree.size(); ++i) taken.insert({tree.nodes[i].depth, rows.row[i]});
  for (uint32_t i = 0; i < tree.size(); ++i) {
    const auto children = tree.children(i);
    if (children.empty()) {
      ASSERT_FALSE(taken.contains({tree.nodes[i].depth + 1, rows.row[i]})) << "behind leaf " << i;
      continue;
    }
    ASSERT_GE(rows.row[i], rows.row[children.front()]);
    ASSERT_LE(rows.row[i], rows.row[children.back()]);
    for (size_t c = 1; c < children.size(); ++c) {
      ASSERT_LT(tree.nodes[children[c - 1]].rank, tree.nodes[children[c]].rank);
      ASSERT_LT(rows.row[children[c - 1]], rows.row[children[c]]);
    }
  }
}

// gui.md, criterion 6
TEST(TreeLayout, AThousandRandomTreesKeepTheirPromises) {
  std::mt19937 random(20260102);
  double slowest = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    const uint32_t width = 1 + static_cast<uint32_t>(random() % 1024);
    const double deep = static_cast<double>(random() % 100) / 100;
    const TreeModel tree = app::tree_model(random_round(random, width, deep));
    for (const bool pinned : {true, false}) {
      const auto start = std::chrono::steady_clock::now();
      const TreeRows rows = place_rows(tree, pinned);
      const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
      slowest = std::max(slowest, took.count());
      ASSERT_EQ(rows.row.size(), tree.size());
      expect_no_overlap(tree, rows);
      expect_family_order(tree, rows);
      ASSERT_EQ(rows.row, place_rows(tree, pinned).row) << "not the same twice";
      ASSERT_LE(rows.steps, 2 * tree.size()) << "more than linear";
      if (!pinned) continue;
      for (const uint32_t node : tree.path) ASSERT_EQ(rows.row[node], rows.row[0]) << "the path is not straight";
    }
  }
  std::printf("slowest layout of 2,000: %.3f ms\n", slowest);
}

// gui.md, criterion 6: the work grows with the number of nodes, also for a single chain and a single wide fan.
TEST(TreeLayout, TheWorkIsLinear) {
  std::mt19937 random(7);
  for (const double deep : {0.0, 0.5, 0.97, 1.0}) {
    for (const uint32_t width : {64u, 256u, 1024u}) {
      const TreeModel tree = app::tree_model(random_round(random, width, deep));
      EXPECT_LE(place_rows(tree, true).steps, 2 * tree.size()) << "deep " << deep << " width " << width;
    }
  }
}

TEST(TreeLayout, AChainIsOneLine) {
  std::mt19937 random(7);
  const TreeModel tree = app::tree_model(random_round(random, 40, 1.0));
  EXPECT_EQ(place_rows(tree, true).count, tree.bonus && tree.path.size() < 40 ? 2 : 1);
}

TEST(TreeLayout, AParentIsLevelWithItsFirstChildOffThePath) {
  const TreeModel tree = app::tree_model(small_round());
  const TreeRows free = place_rows(tree, false);
  for (uint32_t i = 0; i < tree.size(); ++i)
    if (!tree.children(i).empty()) {
      EXPECT_EQ(free.row[i], free.row[tree.children(i).front()]) << i;
    }
}

// ---- columns --------------------------------------------------------------------------------------------------------

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
