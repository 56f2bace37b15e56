// Geometry of a tree: words and tufts that never overlap, limbs whose cross sections add up, pointing and zooming.

#include "app/tree/tree_geometry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>

#include "tests/app/tree/tree_samples.h"

namespace canopy::test {
namespace {

using app::TreeGeometry;
using app::TreeModel;
using app::TreePoint;
using app::TreeRect;

/// A tree with labels of a given width, on a canvas.
struct Sample {
  explicit Sample(RoundRecord record, float width = 980, float height = 480, float label = 34)
      : tree(app::tree_model(record)), labels(tree.size(), label), canvas{width, height, 1} {}
  app::TreeScene scene() const { return {tree, labels, canvas, true}; }
  TreeGeometry fit() const { return app::arrange(scene(), {}); }

  TreeModel tree;
  std::vector<float> labels;
  app::CanvasSize canvas;
};

Sample wide_tree(uint32_t width, float height = 480, float canvas = 980, double deep = 0.35) {
  std::mt19937 random(11);
  return Sample(random_round(random, width, deep), canvas, height);
}

TreeRect pill(const TreeGeometry& g, uint32_t node) {
  const app::NodeBox& box = g.nodes[node];
  return {box.x, box.y - g.pill_height / 2, box.x + box.width, box.y + g.pill_height / 2};
}

uint32_t named(const TreeGeometry& g) {
  return static_cast<uint32_t>(std::count(g.words.named.begin(), g.words.named.end(), 1));
}

TEST(TreeGeometry, FitShowsAllOfATree) {
  for (const uint32_t width : {1u, 2u, 16u, 64u, 256u, 1024u}) {
    const Sample sample = wide_tree(width);
    const TreeGeometry g = sample.fit();
    EXPECT_GE(g.bounds.x0, 0) << width;
    if (g.pitch <= app::tree_design::due_pitch) continue;  // more words that are never left out than rows
    EXPECT_GE(g.bounds.y0, 0) << width;
    EXPECT_LE(g.bounds.y1, sample.canvas.height) << width;
  }
}

// gui.md, criterion 7
TEST(TreeGeometry, NothingOverlapsInTheFitViewAtAnyWidth) {
  for (const uint32_t width : {1u, 2u, 9u, 64u, 128u, 256u, 512u, 1024u}) {
    for (const auto& [w, h] : {std::pair(590.0f, 250.0f), std::pair(980.0f, 480.0f), std::pair(2100.0f, 1100.0f)}) {
      const Sample sample = wide_tree(width, h, w);
      const TreeGeometry g = sample.fit();
      std::vector<TreeRect> taken;
      for (uint32_t i = 0; i < g.nodes.size(); ++i)
        if (g.nodes[i].named) taken.push_back(pill(g, i));
      for (const app::TuftBox& tuft : g.tufts)
        taken.push_back({tuft.x, tuft.y - tuft.reach, tuft.x + tuft.length, tuft.y + tuft.reach});
      if (g.chain_note) taken.push_back(*g.chain_note);
      for (size_t a = 0; a < taken.size(); ++a)
        for (size_t b = a + 1; b < taken.size(); ++b)
          ASSERT_FALSE(taken[a].overlaps(taken[b]))
              << width << " nodes on " << w << " x " << h << ": " << a << ", " << b;
    }
  }
}

// Behind an accepted end of the text nothing was taken in place of the guesses there, so no favourite was passed over.
TEST(TreeGeometry, NothingIsNotedBehindAnAcceptedEnd) {
  std::mt19937 random(5);
  size_t notes = 0, ended_with_guesses = 0;
  for (int i = 0; i < 300; ++i) {
    RoundRecord record = random_round(random, 8, 0.6);
    if (record.accepted == 0) continue;
    record.emitted.pop_back();  // the last accepted guess was the end
    const Sample ended(record, 980, 480);
    ASSERT_FALSE(ended.tree.bonus);
    const TreeGeometry g = ended.fit();
    ended_with_guesses += ended.tree.children(ended.tree.path.back()).empty() ? 0 : 1;
    if (!g.chain_note) continue;
    ++notes;
    EXPECT_NE(ended.tree.next_on_path(ended.tree.nodes[g.chain_end].parent), TreeNode::none);
  }
  EXPECT_GT(notes, 0u) << "where the text took another guess";
  EXPECT_GT(ended_with_guesses, 20u);
}

TEST(TreeGeometry, ANoteIsInsideTheCanvas) {
  for (float width = 160; width < 700; width += 20) {
    const Sample sample(small_round(), width, 480, 60);
    const TreeGeometry g = sample.fit();
    EXPECT_LT(g.chain_note.value_or(TreeRect{}).x1, width);
  }
}

TEST(TreeGeometry, WordsAreReadableAtEveryWidth) {
  for (const uint32_t width : {2u, 64u, 128u, 512u}) {
    const TreeGeometry g = wide_tree(width).fit();
    EXPECT_GE(g.text, 11.5f) << width;
    EXPECT_GE(g.pill_height, 13) << width;
    EXPECT_LE(g.pitch, app::tree_design::tallest_pitch) << width;
  }
}

TEST(TreeGeometry, TheCrossSectionsOfLimbsAddUp) {
  for (const uint32_t width : {9u, 64u, 512u}) {
    const Sample sample = wide_tree(width);
    const TreeGeometry g = sample.fit();
    std::map<uint32_t, float> begin, squares;
    for (const app::Limb& limb : g.limbs) {
      if (!limb.to_tuft && limb.child == sample.tree.bonus) continue;
      begin[limb.parent] += limb.begin;
      EXPECT_LE(limb.begin, limb.end + 1e-3f);
      EXPECT_GE(limb.end, 1);
    }
    const float whole = std::min(22.0f, g.pill_height);
    for (const auto& [parent, sum] : begin) {
      const float thick = std::max(1.0f, app::limb_thickness(sample.tree.nodes[parent].path, whole));
      EXPECT_LE(sum, thick + 0.01f) << "the children of " << parent << " share the end of its limb";
    }
  }
  // A quarter of the probability is half of the thickness, so areas add up.
  EXPECT_FLOAT_EQ(app::limb_thickness(0.25, 22), 11);
}

TEST(TreeGeometry, ChildrenLeaveTheirParentInTheOrderOfTheirHeight) {
  const Sample sample = wide_tree(64);
  const TreeGeometry g = sample.fit();
  std::map<uint32_t, std::vector<std::pair<float, float>>> leaving;  // offset, height of the child
  for (const app::Limb& limb : g.limbs) {
    if (!limb.to_tuft && limb.child == sample.tree.bonus) continue;
    leaving[limb.parent].push_back({limb.offset, limb.to_tuft ? g.tufts[limb.child].y : g.nodes[limb.child].y});
  }
  for (auto& [parent, limbs] : leaving) {
    std::sort(limbs.begin(), limbs.end());
    for (size_t i = 1; i < limbs.size(); ++i) EXPECT_GE(limbs[i].second, limbs[i - 1].second) << parent;
  }
}

TEST(TreeGeometry, LayoutOfAThousandNodes) {
  const Sample sample = wide_tree(1024);
  double best = 1e9;
  for (int i = 0; i < 20; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const TreeGeometry g = sample.fit();
    best = std::min(best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    ASSERT_EQ(g.nodes.size(), sample.tree.size());
  }
  std::printf("layout of 1,024 nodes: %.3f ms\n", best);
}

TEST(TreeGeometry, LongLabelsAreCutUntilTheTreeFits) {
  std::mt19937 random(5);
  Sample sample(random_round(random, 14, 1.0), 868, 420, 160);
  const TreeGeometry fit = sample.fit();
  EXPECT_TRUE(fit.columns.tight);
  for (uint32_t i = 0; i < fit.nodes.size(); ++i)
    EXPECT_GE(fit.nodes[i].label_room, app::tree_design::shortest_word - 0.5f);
  const app::TreeZoom zoom = app::zoomed_at(sample.scene(), fit, {400, 200}, 10);
  const TreeGeometry close = app::arrange(sample.scene(), zoom);
  for (const app::NodeBox& box : close.nodes) EXPECT_GE(box.label_room, 160);
}

TEST(TreeGeometry, PointingAtTheMiddleOfAWordFindsIt) {
  for (const uint32_t width : {7u, 40u, 64u, 150u}) {
    for (const float height : {420.0f, 1400.0f}) {
      const Sample sample = wide_tree(width, height);
      const TreeGeometry g = sample.fit();
      for (uint32_t i = 0; i < sample.tree.size(); ++i)
        if (g.nodes[i].named) {
          ASSERT_EQ(app::node_at(g, app::centre_of(g, i), 1), i) << width << " " << height;
        }
      for (uint32_t i = 0; i < g.tufts.size(); ++i)
        ASSERT_EQ(app::tuft_at(g, {g.tufts[i].x + g.tufts[i].length * 0.5f, g.tufts[i].y}), i);
    }
  }
}

TEST(TreeGeometry, TheAreaThatCanBeHitIsTwentyPixelsHigh) {
  const Sample sample = wide_tree(200);
  const TreeGeometry g = sample.fit();
  const TreePoint root = app::centre_of(g, 0);
  EXPECT_TRUE(app::node_at(g, {root.x, root.y + 9.5f}, 1).has_value());
  EXPECT_FALSE(app::node_at(g, {root.x, root.y + 14}, 1).has_value());
}

TEST(TreeGeometry, TheWordUnderThePointerStaysThereWhenZooming) {
  const Sample sample = wide_tree(64);
  TreeGeometry g = sample.fit();
  const uint32_t node = sample.tree.path.back();
  for (int turn = 0; turn < 6; ++turn) {
    const TreePoint at = app::centre_of(g, node), left = {g.nodes[node].x, g.nodes[node].y};
    g = app::arrange(sample.scene(), app::zoomed_at(sample.scene(), g, at, 1.15f));
    EXPECT_NEAR(g.nodes[node].y, left.y, 0.6f);
    EXPECT_NEAR(g.nodes[node].x, left.x, 0.6f);
  }
}

TEST(TreeGeometry, CloserTreesHaveMoreWordsThenLargerOnes) {
  const Sample sample = wide_tree(300);
  TreeGeometry g = sample.fit();
  uint32_t words = named(g);
  const uint32_t before = words;
  float text = g.text_scale;
  for (int turn = 0; turn < 30; ++turn) {
    g = app::arrange(sample.scene(), app::zoomed_at(sample.scene(), g, {400, 200}, 1.2f));
    EXPECT_GE(named(g), words);
    EXPECT_GE(g.text_scale, text - 1e-3f);
    words = named(g);
    text = g.text_scale;
  }
  EXPECT_GT(words, before);
  EXPECT_EQ(words, sample.tree.size());
  EXPECT_GT(text, 1);
}

TEST(TreeGeometry, ZoomingOutOfTheWholeTreeIsFitAgain) {
  const Sample sample = wide_tree(64);
  TreeGeometry g = sample.fit();
  const app::TreeZoom zoom = app::zoomed_at(sample.scene(), g, {100, 100}, 1.3f);
  EXPECT_FALSE(zoom.fit);
  g = app::arrange(sample.scene(), zoom);
  EXPECT_TRUE(app::zoomed_at(sample.scene(), g, {100, 100}, 0.7f).fit);
}

TEST(TreeGeometry, DraggingNeverLosesTheTree) {
  const Sample sample = wide_tree(64);
  const TreeGeometry g = sample.fit();
  for (const TreePoint by : {TreePoint{9000, 0}, TreePoint{-9000, 0}, TreePoint{0, 9000}, TreePoint{0, -9000}}) {
    const TreeGeometry moved = app::arrange(sample.scene(), app::panned(sample.scene(), g, by));
    const TreeRect view = {0, 0, sample.canvas.width, sample.canvas.height};
    EXPECT_TRUE(moved.bounds.overlaps(view)) << by.x << " " << by.y;
    EXPECT_FALSE(moved.inside(sample.canvas));
  }
}

TEST(TreeGeometry, ATreeTooWideForItsCanvasShowsTheEndOfItsPath) {
  std::mt19937 random(3);
  bool was_too_wide = false;
  for (int i = 0; i < 30; ++i) {
    const Sample sample(random_round(random, 60, 0.8), 240, 300);
    const TreeGeometry g = sample.fit();
    const app::NodeBox& end = g.nodes[sample.tree.path.back()];
    EXPECT_LE(end.x + end.width - end.figure, sample.canvas.width + 1) << i;
    EXPECT_GE(end.x, 0) << i;
    was_too_wide |= g.left < 0;
  }
  EXPECT_TRUE(was_too_wide);
}

TEST(TreeGeometry, SurvivesACanvasWithoutRoom) {
  for (const uint32_t width : {1u, 64u, 1024u}) {
    Sample sample = wide_tree(width);
    sample.canvas = {1, 1, 1};
    const TreeGeometry g = sample.fit();
    for (const app::NodeBox& box : g.nodes) ASSERT_TRUE(std::isfinite(box.x) && std::isfinite(box.y));
    for (const app::Limb& limb : g.limbs) ASSERT_TRUE(std::isfinite(limb.offset) && std::isfinite(limb.end));
  }
}

TEST(TreeGeometry, PercentagesAreShort) {
  EXPECT_EQ(app::percentage(1), "100%");
  EXPECT_EQ(app::percentage(0.314), "31%");
  EXPECT_EQ(app::percentage(0.0096), "1%");
  EXPECT_EQ(app::percentage(0.004), "0.4%");
  EXPECT_EQ(app::percentage(0.00004), "<0.1%");
}

}  // namespace
}  // namespace canopy::test
