#pragma once
// Where the tour's card stands and how wide it is. Pure arithmetic on pixels of the window.

#include <imgui.h>

#include <cstddef>
#include <vector>

namespace canopy::app {

/// What the card should not cover, as corners (x0, y0, x1, y1).
struct TourClear {
  std::vector<ImVec4> holes;  // what the step speaks of
  std::vector<ImVec4> path;   // pills of the accepted path and the bonus
  std::vector<ImVec4> words;  // the other words of the tree
};

/// A size that the card can have. brief: it leaves something out, and so is for windows without room for the others.
struct TourCardForm {
  ImVec2 size;
  bool brief = false;
};

struct TourCard {
  ImVec2 pos, size;
  size_t form = 0;
};

/// The area that two rectangles have in common.
float overlap_of(const ImVec4& a, const ImVec4& b);

/// Chooses a place for the card in a window, and one of its forms, the preferred one first. Best is a place clear of
/// all holes and of the path, near to a hole; it is found if there is one. Where no place is clear of the holes, as
/// with the whole tree, it is the one that covers the least of the path, then the fewest words. scale: pixels for a
/// unit of the design.
TourCard place_tour_card(const std::vector<TourCardForm>& forms, ImVec2 window, const TourClear& clear, float scale);

}  // namespace canopy::app
