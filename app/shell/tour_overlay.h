#pragma once
// The tour over the window: everything but the parts in question is dimmed, and a card explains them (look/watch.md,
// "Tour").

#include <imgui.h>

#include <vector>

#include "app/panels/panel.h"
#include "app/shell/tour_card.h"
#include "app/shell/tour_text.h"

namespace canopy::app {

/// The parts of the window on the screen, in pixels: corners (x0, y0, x1, y1). Parts that are not shown have no area.
struct TourPlaces {
  ImVec4 chat, tree, numbers;
  std::vector<ImVec4> path;          // at most two
  std::vector<ImVec4> pills, words;  // of the tree: on the accepted path, and all others
};

class TourOverlay {
 public:
  /// Draws the present step, and posts StepTour and ShowTour.
  void draw(const ViewModel& view, CommandSink& sink, const TourPlaces& places, const TourFacts& facts);

 private:
  void draw_card(ImDrawList* list, CommandSink& sink, ImVec2 corner, const TourCardForm& form, const TourStep& step,
                 uint32_t index);

  uint32_t drawn_step_ = ~0u;
};

}  // namespace canopy::app
