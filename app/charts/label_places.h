#pragma once
// Where the words beside a chart's marks go, so that they cover neither each other nor the marks, and the curves as
// little as can be. Pure; lengths are pixels.

#include <span>
#include <vector>

namespace canopy::app {

struct Box {
  float left = 0, top = 0, right = 0, bottom = 0;
  bool overlaps(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
  bool holds(float x, float y) const { return x >= left && x <= right && y >= top && y <= bottom; }
};

struct Spot {
  float x = 0, y = 0;
};

struct LabelWish {
  Spot mark;                    // its centre
  float reach = 0;              // from there to its edge
  float width = 0, height = 0;  // of the words
};

/// A box for each wish, in their order, inside room: the place nearest to its mark that is free. The first wishes
/// choose first; the marks of all are kept clear, as are the `taken` boxes. curve: points that are better left free.
std::vector<Box> place_labels(std::span<const LabelWish> wishes, const Box& room, std::span<const Box> taken,
                              std::span<const Spot> curve);

}  // namespace canopy::app
