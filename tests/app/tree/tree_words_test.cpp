// Which nodes have words, and the rows of words and tufts.

#include "app/tree/tree_words.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "tests/app/tree/tree_samples.h"

namespace canopy::test {
namespace {

using app::choose_words;
using app::NodeFate;
using app::place_words;
using app::TreeModel;
using app::TreeWords;
using app::WordRows;

constexpr float kMany = 1e6f;

/// What is drawn in one column: rows from top to bottom.
struct Place {
  uint32_t depth;
  float top, bottom;
};

void expect_no_overlap(const TreeModel& tree, const TreeWords& words, const WordRows& rows) {
  std::vector<Place> places;
  for (uint32_t i = 0; i < tree.size(); ++i)
    if (words.named[i]) places.push_back({tree.nodes[i].depth, rows.node[i] - 0.5f, rows.node[i] + 0.5f});
  for (size_t i = 0; i < words.tufts.size(); ++i) {
    const uint32_t depth = tree.nodes[words.tufts[i].parent].depth + 1;
    places.push_back({depth, rows.tuft[i] - app::kTuftRows / 2, rows.tuft[i] + app::kTuftRows / 2});
  }
  std::sort(places.begin(), places.end(),
            [](const Place& a, const Place& b) { return a.depth != b.depth ? a.depth < b.depth : a.top < b.top; });
  for (size_t i = 1; i < places.size(); ++i) {
    if (places[i].depth != places[i - 1].depth) continue;
    ASSERT_GE(places[i].top, places[i - 1].bottom - 1e-3f) << "at depth " << places[i].depth;
  }
  for (const Place& place : places) {
    ASSERT_GE(place.top, -1e-3f);
    ASSERT_LE(place.bottom, rows.count + 1e-3f);
  }
}

/// Each drafted node has a word, or is in the tuft of its nearest ancestor with one.
void expect_all_there(const TreeModel& tree, const TreeWords& words) {
  uint32_t named = 0, bundled = 0;
  for (uint32_t i = 0; i < tree.size(); ++i) {
    named += words.named[i];
    if (words.named[i] && i > 0) {
      ASSERT_TRUE(words.named[tree.nodes[i].parent]) << i;
    }
  }
  for (const app::Tuft& tuft : words.tufts) {
    ASSERT_TRUE(words.named[tuft.parent]);
    bundled += tuft.nodes;
    double mass = 0;
    for (const uint32_t head : tuft.heads) {
      ASSERT_FALSE(words.named[head]);
      ASSERT_EQ(tree.nodes[head].parent, tuft.parent);
      mass += tree.nodes[head].path;
    }
    ASSERT_NEAR(tuft.mass, mass, 1e-12);
  }
  ASSERT_EQ(named + bundled, tree.size());
}

// The accepted path and its likeliest rejected siblings have words at every width and in any room.
void expect_due_words(const TreeModel& tree, const TreeWords& words) {
  for (const uint32_t node : tree.path) {
    ASSERT_TRUE(words.named[node]);
    for (const uint32_t child : tree.children(node)) {
      if (tree.nodes[child].fate != NodeFate::rejected) continue;
      ASSERT_TRUE(words.named[child]) << "the likeliest rejected child of " << node;
      break;
    }
  }
}

// gui.md, criterion 6
TEST(TreeWords, AThousandRandomTreesKeepTheirPromises) {
  std::mt19937 random(20261102);
  double slowest = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    const uint32_t width = 1 + static_cast<uint32_t>(random() % 1024);
    const double deep = static_cast<double>(random() % 100) / 100;
    const float room = static_cast<float>(4 + random() % 60);
    const TreeModel tree = app::tree_model(random_round(random, width, deep));
    const auto start = std::chrono::steady_clock::now();
    const TreeWords words = choose_words(tree, room);
    const WordRows rows = place_words(tree, words);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    slowest = std::max(slowest, took.count());
    expect_no_overlap(tree, words, rows);
    expect_all_there(tree, words);
    expect_due_words(tree, words);
    const auto named = static_cast<uint32_t>(std::count(words.named.begin(), words.named.end(), 1));
    ASSERT_TRUE(rows.count <= room + 1e-3f || named == words.due) << rows.count << " rows in room for " << room;
    ASSERT_EQ(rows.node, place_words(tree, choose_words(tree, room)).node) << "not the same twice";
  }
  std::printf("slowest layout of 1,000: %.3f ms\n", slowest);
}

TEST(TreeWords, WithRoomEveryNodeHasAWord) {
  std::mt19937 random(4);
  for (const uint32_t width : {1u, 2u, 16u, 300u}) {
    const TreeModel tree = app::tree_model(random_round(random, width, 0.5));
    const TreeWords words = choose_words(tree, kMany);
    EXPECT_TRUE(words.tufts.empty());
    EXPECT_EQ(std::count(words.named.begin(), words.named.end(), 1), static_cast<std::ptrdiff_t>(tree.size()));
  }
}

TEST(TreeWords, MoreRoomTakesNoWordAway) {
  std::mt19937 random(9);
  const TreeModel tree = app::tree_model(random_round(random, 200, 0.4));
  std::vector<uint8_t> before(tree.size(), 0);
  for (const float room : {4.0f, 10.0f, 24.0f, 60.0f, 200.0f}) {
    const TreeWords words = choose_words(tree, room);
    for (uint32_t i = 0; i < tree.size(); ++i) ASSERT_GE(words.named[i], before[i]) << room;
    before = words.named;
  }
}

// The same drafted tree with every possible outcome: where all nodes have words, no outcome moves one of them, but for
// the row that the bonus takes.
TEST(TreeWords, OutcomesMoveNoNode) {
  const std::vector<SampleNode> drafted = {{0, 10, 0, .6}, {1, 20, 0, .5}, {0, 11, 1, .3}, {3, 20, 0, .5},
                                           {3, 21, 1, .2}, {1, 22, 1, .1}, {0, 12, 2, .05}};
  const auto rows_for = [&](std::vector<uint32_t> emitted) {
    // Ends inside the tree, so that there is no bonus.
    RoundRecord record = sample_round(drafted, std::move(emitted));
    const TreeModel tree = app::tree_model(record);
    EXPECT_FALSE(tree.bonus);
    return place_words(tree, choose_words(tree, kMany)).node;
  };
  const std::vector<float> first = rows_for({10, 20});
  EXPECT_EQ(rows_for({10}), first);
  EXPECT_EQ(rows_for({11, 21}), first);
  EXPECT_EQ(rows_for({12}), first);
}

TEST(TreeWords, TheLikeliestChildGoesStraightOn) {
  std::mt19937 random(31);
  for (int trial = 0; trial < 50; ++trial) {
    const TreeModel tree = app::tree_model(random_round(random, 60, 0.5));
    const WordRows rows = place_words(tree, choose_words(tree, kMany));
    for (uint32_t i = 0; i < tree.size(); ++i) {
      const auto children = tree.children(i);
      if (children.empty()) continue;
      ASSERT_FLOAT_EQ(rows.node[i], rows.node[children.front()]) << i;
    }
  }
}

TEST(TreeWords, ATuftBelowAnAcceptedNodeIsRejected) {
  // Six children below the root, the second of them right, with room for few words.
  std::vector<SampleNode> drafted;
  for (uint32_t i = 0; i < 30; ++i) drafted.push_back({0, 10 + i, i, 0.3 / (i + 1.0)});
  const TreeModel tree = app::tree_model(sample_round(drafted, {11, 99}));
  const TreeWords words = choose_words(tree, 4);
  ASSERT_EQ(words.tufts.size(), 1u);
  EXPECT_TRUE(words.tufts.front().rejected);
  EXPECT_TRUE(words.named[1]) << "the likeliest rejected one";
  EXPECT_TRUE(words.named[2]) << "the accepted one";
}

}  // namespace
}  // namespace canopy::test
