#pragma once
// "What if": what other devices would make of the rounds on show, side by side and on one clock (look/watch.md, "What
// if").

#include <vector>

#include "app/shell/race_view.h"
#include "app/shell/screen_regions.h"

namespace canopy::app {

class WhatIfLayout {
 public:
  /// Draws into the viewport below the bar, which is `bar` pixels high, and adds the parts to `regions`.
  void draw(const ViewModel& view, CommandSink& sink, float bar, std::vector<ScreenRegion>& regions);

 private:
  void draw_cards(const ViewModel& view, CommandSink& sink, ImVec2 pos, ImVec2 size);

  RaceView race_;
  size_t first_ = 0;   // devices that are left out before the first on show beside this machine
  size_t hidden_ = 0;  // devices without room, in the last frame
};

}  // namespace canopy::app
