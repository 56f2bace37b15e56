#include "app/charts/label_places.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace canopy::app {
namespace {

constexpr float kGap = 5;  // between a mark and its label
constexpr int kRings = 8;  // steps of a label's height that it may move up or down from its mark
constexpr int kSteps = 4;  // the same, to the side
constexpr double kCovered = 1e6, kOutside = 1e5, kCurvePoint = 40,
                 kRing = 12;  // penalties of a place; one pixel of distance costs 1

Box box_at(float left, float middle, const LabelWish& wish) {
  return {left, middle - wish.height * 0.5f, left + wish.width, middle + wish.height * 0.5f};
}

Box mark_box(const LabelWish& wish) {
  return {wish.mark.x - wish.reach, wish.mark.y - wish.reach, wish.mark.x + wish.reach, wish.mark.y + wish.reach};
}

/// The box moved into the room; a box larger than the room is aligned with its upper left corner.
Box inside(Box box, const Box& room) {
  const float dx = std::max(std::min(0.0f, room.right - box.right), room.left - box.left);
  const float dy = std::max(std::min(0.0f, room.bottom - box.bottom), room.top - box.top);
  return {box.left + dx, box.top + dy, box.right + dx, box.bottom + dy};
}

struct Candidate {
  Box box;
  int ring = 0;  // distance from the nearest place, in heights of the label
};

/// Places for a label, the nearest first: beside the mark, then further aside, above and below in steps of its height.
std::vector<Candidate> candidates(const LabelWish& wish, const Box& room) {
  const float right = wish.mark.x + wish.reach + kGap, left = wish.mark.x - wish.reach - kGap - wish.width;
  const float centred = wish.mark.x - wish.width * 0.5f;
  std::vector<Candidate> found;
  for (int ring = 0; ring <= kRings; ++ring) {
    const float up = wish.mark.y - static_cast<float>(ring) * wish.height;
    const float down = wish.mark.y + static_cast<float>(ring) * wish.height;
    for (const float y : {up, down}) {
      for (int step = 0; step <= kSteps; ++step) {
        const float aside = static_cast<float>(step) * wish.height;
        found.push_back({inside(box_at(right + aside, y, wish), room), ring + step});
        found.push_back({inside(box_at(left - aside, y, wish), room), ring + step});
      }
      if (ring > 0) found.push_back({inside(box_at(centred, y, wish), room), ring});
    }
  }
  return found;
}

double distance(const Box& box, Spot to) {
  const float dx = std::max({box.left - to.x, 0.0f, to.x - box.right});
  const float dy = std::max({box.top - to.y, 0.0f, to.y - box.bottom});
  return std::hypot(dx, dy);
}

}  // namespace

std::vector<Box> place_labels(std::span<const LabelWish> wishes, const Box& room, std::span<const Box> taken,
                              std::span<const Spot> curve) {
  std::vector<Box> blocked(taken.begin(), taken.end()), places;
  for (const LabelWish& wish : wishes) blocked.push_back(mark_box(wish));
  for (const LabelWish& wish : wishes) {
    double least = std::numeric_limits<double>::infinity();
    Box best;
    for (const auto& [box, ring] : candidates(wish, room)) {
      double cost = distance(box, wish.mark) + kRing * ring;
      for (const Box& other : blocked) cost += box.overlaps(other) ? kCovered : 0;
      if (box.right > room.right || box.bottom > room.bottom) cost += kOutside;
      for (const Spot& each : curve) cost += box.holds(each.x, each.y) ? kCurvePoint : 0;
      if (cost < least) least = cost, best = box;
    }
    blocked.push_back(best);
    places.push_back(best);
  }
  return places;
}

}  // namespace canopy::app
