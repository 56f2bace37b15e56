// Which places of a canvas are taken by a tree, and which are clear for notes.

#include "app/tree/tree_geometry.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/app/tree/tree_samples.h"

namespace canopy::test {
namespace {

using app::TreeRect;

struct Arranged {
  explicit Arranged(const RoundRecord& record, float width = 980, float height = 480, float scale = 1)
      : tree(app::tree_model(record)),
        labels(tree.size(), 34 * scale),
        canvas{width, height, scale},
        geometry(app::arrange({tree, labels, canvas, true}, {})) {}

  std::vector<TreeRect> taken() const {
    std::vector<TreeRect> all = app::path_pills(tree, geometry, canvas.scale);
    for (const TreeRect& each : app::other_words(tree, geometry, canvas.scale)) all.push_back(each);
    return all;
  }

  app::TreeModel tree;
  std::vector<float> labels;
  app::CanvasSize canvas;
  app::TreeGeometry geometry;
};

bool lies_in(const TreeRect& inner, const TreeRect& outer) {
  return inner.x0 >= outer.x0 && inner.y0 >= outer.y0 && inner.x1 <= outer.x1 && inner.y1 <= outer.y1;
}

TEST(TreePlaces, EveryWordIsTakenOnce) {
  std::mt19937 random(3);
  const Arranged at(random_round(random, 64, 0.4));
  const auto named = std::ranges::count_if(at.geometry.nodes, &app::NodeBox::named);
  EXPECT_EQ(at.taken().size(), static_cast<size_t>(named) + at.geometry.tufts.size());
  EXPECT_EQ(app::path_pills(at.tree, at.geometry, 1).size(), at.tree.path.size());
}

// "11" is not the favourite: the first place holds it and the favourite, the second what follows.
TEST(TreePlaces, ThePathIsInTwoPlacesWhereItLeavesTheFavourite) {
  const Arranged at(small_round());
  const auto places = app::path_places(at.tree, at.geometry, 1);
  ASSERT_EQ(places.size(), 2u);
  EXPECT_TRUE(lies_in(app::pill_of(at.geometry, 1, 1), places[0])) << "the favourite";
  EXPECT_TRUE(lies_in(app::pill_of(at.geometry, 3, 1), places[0]));
  EXPECT_TRUE(lies_in(app::pill_of(at.geometry, 6, 1), places[1]));
  EXPECT_TRUE(lies_in(app::pill_of(at.geometry, *at.tree.bonus, 1), places[1]));
}

TEST(TreePlaces, TheFirstClearPlaceIsTaken) {
  const std::vector<TreeRect> taken = {{0, 0, 10, 10}, {20, 0, 30, 10}};
  const std::vector<TreeRect> places = {{5, 5, 15, 15}, {25, 5, 40, 15}, {10, 0, 20, 10}, {50, 50, 60, 60}};
  EXPECT_EQ(app::clear_place(places, taken)->x0, 10) << "touching is not overlapping";
  EXPECT_FALSE(app::clear_place(std::span(places).first(2), taken));
  EXPECT_EQ(app::clear_place(places, {})->x0, 5);
}

TEST(TreePlaces, NumbersStandBesideTheirWords) {
  for (const float scale : {0.75f, 1.0f, 2.0f}) {
    const TreeRect pill = {100, 100, 100 + 60 * scale, 100 + 18 * scale};
    const auto places = app::number_places(pill, {14 * scale, 13 * scale}, scale);
    ASSERT_EQ(places.size(), 4u);
    for (const TreeRect& each : places) EXPECT_FALSE(each.overlaps(pill));
    EXPECT_LE(places[0].y1, pill.y0) << "above it, if that is clear";
    // The row above leaves two units, so the number goes to the right of the word.
    const TreeRect above = {pill.x0, pill.y0 - 20 * scale, pill.x1, pill.y0 - 2 * scale};
    EXPECT_GE(app::clear_place(places, std::vector{pill, above})->x0, pill.x1);
  }
}

TEST(TreePlaces, NotesLieOnTheCanvasAndClearOfWords) {
  for (const uint32_t nodes : {8u, 24u, 64u})
    for (const auto& [width, height, scale] :
         {std::tuple(900.0f, 360.0f, 1.0f), std::tuple(988.0f, 484.0f, 1.0f), std::tuple(2100.0f, 1000.0f, 2.0f)}) {
      std::mt19937 random(nodes);
      const Arranged at(random_round(random, nodes, 0.4), width, height, scale);
      const auto places = app::note_places(at.canvas, {230 * scale, 30 * scale}, 6 * scale);
      ASSERT_FALSE(places.empty());
      for (const TreeRect& each : places) EXPECT_TRUE(lies_in(each, {0, 0, width, height}));
      const auto place = app::clear_place(places, at.taken());
      ASSERT_TRUE(place) << nodes << " nodes on " << width;
      for (const TreeRect& word : at.taken()) EXPECT_FALSE(place->overlaps(word));
    }
}

}  // namespace
}  // namespace canopy::test
