#include "app/charts/chart_frame.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace canopy::app {
namespace {

constexpr Box kRoom{0, 0, 430, 170};

bool inside(const Box& box, const Box& room) {
  return box.left >= room.left && box.right <= room.right && box.top >= room.top && box.bottom <= room.bottom;
}

TEST(LabelPlaces, ALoneLabelStandsAtTheRightOfItsMark) {
  const LabelWish wish{{100, 80}, 5, 60, 14};
  const Box place = place_labels(std::span(&wish, 1), kRoom, {}, {}).at(0);
  EXPECT_GT(place.left, 105);
  EXPECT_LT(place.left, 115);
  EXPECT_FLOAT_EQ((place.top + place.bottom) * 0.5f, 80);
}

TEST(LabelPlaces, AtTheRightEdgeItStandsAtTheLeft) {
  const LabelWish wish{{425, 80}, 5, 60, 14};
  const Box place = place_labels(std::span(&wish, 1), kRoom, {}, {}).at(0);
  EXPECT_LT(place.right, 420);
}

TEST(LabelPlaces, MarksInOnePlaceGetLabelsBelowEachOther) {
  const LabelWish wishes[] = {{{20, 90}, 6, 90, 15}, {{20, 90}, 6, 130, 15}, {{24, 96}, 6, 80, 15}};
  const auto places = place_labels(wishes, kRoom, {}, {});
  for (size_t i = 0; i < 3; ++i)
    for (size_t k = i + 1; k < 3; ++k) EXPECT_FALSE(places[i].overlaps(places[k])) << i << " " << k;
}

TEST(LabelPlaces, ACurveIsLeftFreeWhereThatIsPossible) {
  const LabelWish wish{{100, 80}, 5, 60, 14};
  std::vector<Spot> curve;
  for (float x = 100; x < 430; x += 4) curve.push_back({x, 80});
  const Box place = place_labels(std::span(&wish, 1), kRoom, {}, curve).at(0);
  for (const Spot& each : curve) EXPECT_FALSE(place.holds(each.x, each.y));
}

TEST(LabelPlaces, ACurveBesideTheMarkIsPassedAtTheRight) {
  // A peak of the predicted curve, as high as the plot, right after the mark of the best width.
  const LabelWish wish{{12, 20}, 5, 110, 15};
  std::vector<Spot> curve;
  for (float y = 0; y <= 170; y += 4) curve.push_back({26, y}), curve.push_back({34, y});
  const Box place = place_labels(std::span(&wish, 1), kRoom, {}, curve).at(0);
  EXPECT_GT(place.left, 34);
  EXPECT_LT(place.left, 60) << "no further than it must";
  EXPECT_FLOAT_EQ((place.top + place.bottom) * 0.5f, 20);
}

TEST(LabelPlaces, NeverCrossWhereverTheMarksAre) {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> x(0, 430), y(0, 170), width(40, 140), near(-8, 8);
  for (int round = 0; round < 2000; ++round) {
    const Spot first{x(random), y(random)};
    std::vector<LabelWish> wishes = {{first, 6, width(random), 15}};
    // In a small tree the marks are often at the same place.
    for (int i = 0; i < 2; ++i) {
      const Spot mark = round % 2 ? Spot{std::clamp(first.x + near(random), 0.0f, 430.0f),
                                         std::clamp(first.y + near(random), 0.0f, 170.0f)}
                                  : Spot{x(random), y(random)};
      wishes.push_back({mark, 5, width(random), 15});
    }
    const Box taken[] = {{390, 20, 430, 36}};
    const auto places = place_labels(wishes, kRoom, taken, {});
    for (size_t i = 0; i < places.size(); ++i) {
      EXPECT_TRUE(inside(places[i], kRoom)) << round;
      EXPECT_FALSE(places[i].overlaps(taken[0])) << round;
      for (size_t k = 0; k < places.size(); ++k) {
        if (k != i) {
          EXPECT_FALSE(places[i].overlaps(places[k])) << round;
        }
        const LabelWish& w = wishes[k];
        EXPECT_FALSE(places[i].holds(w.mark.x, w.mark.y)) << round;
      }
    }
  }
}

}  // namespace
}  // namespace canopy::app
