// Geometry of a tree: levels of detail, folding, labels that never overlap, pointing and zooming.

#include "app/tree/tree_geometry.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/app/tree/tree_samples.h"

namespace canopy::test {
namespace {

using app::Detail;
using app::TreeGeometry;
using app::TreeModel;
using app::TreePoint;

/// A tree with labels of a given width, on a canvas.
struct Sample {
  explicit Sample(RoundRecord record, float width = 868, float height = 420, float label = 34)
      : tree(app::tree_model(record)),
        rows(app::place_rows(tree, true)),
        labels(tree.size(), label),
        canvas{width, height, 1} {}
  app::TreeScene scene() const { return {tree, rows, true, labels, canvas}; }
  TreeGeometry fit() const { return app::arrange(scene(), {}); }

  TreeModel tree;
  app::TreeRows rows;
  std::vector<float> labels;
  app::CanvasSize canvas;
};

Sample wide_tree(uint32_t width, float height = 420) {
  std::mt19937 random(11);
  return Sample(random_round(random, width, 0.55), 868, height);
}

TEST(Detail, FollowsTheHeightOfARow) {
  const std::pair<float, Detail> table[] = {{1.9f, Detail::folded}, {2, Detail::dots},       {4.9f, Detail::dots},
                                            {5, Detail::badges},    {13.9f, Detail::badges}, {14, Detail::pills},
                                            {33.9f, Detail::pills}, {34, Detail::figures},   {40, Detail::full}};
  for (const auto& [height, detail] : table) EXPECT_EQ(app::detail_for(height), detail) << height;
}

TEST(Detail, StaysNearABorderWhatItWas) {
  EXPECT_EQ(app::detail_for(14.5f, Detail::badges), Detail::badges);
  EXPECT_EQ(app::detail_for(14.5f, Detail::pills), Detail::pills);
  EXPECT_EQ(app::detail_for(13.5f, Detail::pills), Detail::pills);
  EXPECT_EQ(app::detail_for(13.5f, Detail::badges), Detail::badges);
  EXPECT_EQ(app::detail_for(14.8f, Detail::badges), Detail::pills);
  EXPECT_EQ(app::detail_for(13.2f, Detail::pills), Detail::badges);
}

TEST(TreeFold, WedgesHoldWhatWasNotTakenAndItsProbability) {
  const TreeModel tree = app::tree_model(small_round());
  const std::vector<app::TreeWedge> wedges = app::fold_rejected(tree);
  ASSERT_EQ(wedges.size(), 3u);
  EXPECT_TRUE(wedges[0].likelier);
  EXPECT_EQ(wedges[0].nodes, 2u);
  EXPECT_NEAR(wedges[0].q, 0.6, 1e-9);
  EXPECT_FALSE(wedges[1].likelier);
  EXPECT_EQ(wedges[1].nodes, 1u);
  EXPECT_NEAR(wedges[1].q, 0.05, 1e-9);
  EXPECT_EQ(wedges[2].parent, 3u);
  EXPECT_EQ(wedges[2].nodes, 2u);
  EXPECT_NEAR(wedges[2].q, 0.5, 1e-9);
}

TEST(TreeFold, SumsAreRightForAnyTree) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 100; ++trial) {
    const TreeModel tree = app::tree_model(random_round(random, 1 + static_cast<uint32_t>(random() % 1024), 0.5));
    uint32_t nodes = 0;
    double q = 0, expected = 0;
    for (const app::TreeWedge& wedge : app::fold_rejected(tree)) {
      nodes += wedge.nodes;
      q += wedge.q;
    }
    for (uint32_t i = 1; i < tree.size(); ++i)
      if (!tree.on_path(i) && tree.on_path(tree.nodes[i].parent)) expected += tree.nodes[i].q;
    EXPECT_EQ(nodes, tree.counted(app::NodeFate::rejected) + tree.counted(app::NodeFate::not_reached));
    EXPECT_NEAR(q, expected, 1e-9);
  }
}

TEST(TreeGeometry, FitShowsAllOfATree) {
  for (const uint32_t width : {1u, 2u, 16u, 64u, 256u, 1024u}) {
    const Sample sample = wide_tree(width);
    const TreeGeometry g = sample.fit();
    EXPECT_GE(g.bounds.y0, 0) << width;
    EXPECT_LE(g.bounds.y1, sample.canvas.height) << width;
    EXPECT_GE(g.bounds.x0, 0) << width;
  }
}

// gui.md, criterion 7
TEST(TreeGeometry, NoLabelsOverlapInTheFitViewAtAnyWidth) {
  for (const uint32_t width : {2u, 64u, 128u, 192u, 300u, 1024u}) {
    for (const float height : {200.0f, 420.0f, 980.0f, 2400.0f}) {
      const Sample sample = wide_tree(width, height);
      const TreeGeometry g = sample.fit();
      std::vector<app::TreeRect> labels;
      for (const app::LabelBox& label : g.labels) labels.push_back(label.rect);
      for (const app::WedgeBox& wedge : g.wedge_boxes)
        if (wedge.labelled) labels.push_back(wedge.label);
      if (app::has_pills(g.detail))
        for (const app::NodeBox& box : g.nodes)
          labels.push_back({box.x, box.y - g.pill_height / 2, box.x + box.width, box.y + g.pill_height / 2});
      for (size_t a = 0; a < labels.size(); ++a)
        for (size_t b = a + 1; b < labels.size(); ++b)
          ASSERT_FALSE(labels[a].overlaps(labels[b])) << width << " nodes, " << height << " px: " << a << ", " << b;
    }
  }
}

TEST(TreeGeometry, AThousandNodesFoldInAPanelAndShowInAWholeWindow) {
  EXPECT_EQ(wide_tree(1024, 420).fit().detail, Detail::folded);
  EXPECT_GE(wide_tree(1024, 2400).fit().detail, Detail::dots);
}

TEST(TreeGeometry, LongLabelsAreCutUntilTheTreeFitsAndWholeWhenZoomedIn) {
  std::mt19937 random(5);
  Sample sample(random_round(random, 14, 1.0), 868, 420, 160);
  const TreeGeometry fit = sample.fit();
  EXPECT_TRUE(fit.columns.tight);
  EXPECT_LE(fit.bounds.x1, 868.5f);
  app::TreeZoom zoom;
  const TreePoint middle = {400, 200};
  zoom = app::zoomed_at(sample.scene(), fit, middle, 1.6f);
  const TreeGeometry close = app::arrange(sample.scene(), zoom);
  for (const app::NodeBox& box : close.nodes) EXPECT_GE(box.label_room, 160 * close.node_scale - 0.5f);
}

TEST(TreeGeometry, PointingAtTheMiddleOfANodeFindsIt) {
  for (const uint32_t width : {7u, 40u, 64u, 150u}) {
    for (const float height : {420.0f, 1400.0f}) {
      const Sample sample = wide_tree(width, height);
      const TreeGeometry g = sample.fit();
      for (uint32_t i = 0; i < sample.tree.size(); ++i)
        if (!g.nodes[i].folded) {
          ASSERT_EQ(app::node_at(g, app::centre_of(g, i), 1), i) << width << " " << height;
        }
    }
  }
}

TEST(TreeGeometry, TheAreaThatCanBeHitIsTwentyPixelsHigh) {
  const Sample sample = wide_tree(200, 420);
  const TreeGeometry g = sample.fit();
  ASSERT_LT(g.row_height, 14);
  const TreePoint root = app::centre_of(g, 0);
  EXPECT_TRUE(app::node_at(g, {root.x, root.y + 9}, 1).has_value());
  EXPECT_FALSE(app::node_at(g, {root.x - 9, root.y + 14}, 1).has_value());
}

TEST(TreeGeometry, WhatIsUnderThePointerStaysThereWhenZooming) {
  const Sample sample = wide_tree(64);
  TreeGeometry g = sample.fit();
  const uint32_t node = 20;
  for (int turn = 0; turn < 6; ++turn) {
    const TreePoint at = {g.nodes[node].x, g.nodes[node].y};
    const app::TreeZoom zoom = app::zoomed_at(sample.scene(), g, at, 1.15f);
    g = app::arrange(sample.scene(), zoom, g.detail);
    EXPECT_NEAR(g.nodes[node].y, at.y, 0.6f);
    EXPECT_NEAR(g.nodes[node].x, at.x, 0.6f);
  }
}

TEST(TreeGeometry, ZoomingOutOfTheWholeTreeIsFitAgain) {
  const Sample sample = wide_tree(64);
  TreeGeometry g = sample.fit();
  app::TreeZoom zoom = app::zoomed_at(sample.scene(), g, {100, 100}, 1.3f);
  EXPECT_FALSE(zoom.fit);
  g = app::arrange(sample.scene(), zoom);
  EXPECT_TRUE(app::zoomed_at(sample.scene(), g, {100, 100}, 0.7f).fit);
}

TEST(TreeGeometry, DraggingNeverLosesTheTree) {
  const Sample sample = wide_tree(64);
  const TreeGeometry g = sample.fit();
  for (const TreePoint by : {TreePoint{9000, 0}, TreePoint{-9000, 0}, TreePoint{0, 9000}, TreePoint{0, -9000}}) {
    const TreeGeometry moved = app::arrange(sample.scene(), app::panned(sample.scene(), g, by));
    const app::TreeRect view = {0, 0, sample.canvas.width, sample.canvas.height};
    EXPECT_TRUE(moved.bounds.overlaps(view)) << by.x << " " << by.y;
    EXPECT_FALSE(moved.inside(sample.canvas));
  }
}

TEST(TreeGeometry, SurvivesACanvasWithoutRoom) {
  for (const uint32_t width : {1u, 64u, 1024u}) {
    Sample sample = wide_tree(width);
    sample.canvas = {1, 1, 1};
    const TreeGeometry g = sample.fit();
    for (const app::NodeBox& box : g.nodes) ASSERT_TRUE(std::isfinite(box.x) && std::isfinite(box.y));
  }
}

}  // namespace
}  // namespace canopy::test
