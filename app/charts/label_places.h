#pragma once
// Places for the labels of marks in a chart: they cover neither each other nor a mark, and curves as little as
// possible. Pure; lengths are pixels.

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
  Spot mark;                    // centre of the mark
  float reach = 0;              // radius of the mark
  float width = 0, height = 0;  // of the label
};

/// A box inside `room` for each wish, in their order: the nearest free place to its mark. Earlier wishes are served
/// first. No box covers a mark or a `taken` box. curve: points that are avoided if possible.
std::vector<Box> place_labels(std::span<const LabelWish> wishes, const Box& room, std::span<const Box> taken,
                              std::span<const Spot> curve);

}  // namespace canopy::app
