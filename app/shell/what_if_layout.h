#pragma once
// "What if": what other devices would make of the rounds on show, as cards side by side and as a race on one clock.

#include <imgui.h>

#include <cstdint>
#include <vector>

#include "app/shell/screen_regions.h"
#include "app/state/view_model.h"
#include "app/state/what_if.h"

namespace canopy::app {

// The devices of "What if" on one clock, with the passes that each would take.

class RaceView {
 public:
  void draw(const ViewModel& view, ImVec2 pos, ImVec2 size);

 private:
  void take(const ViewModel& view);
  void draw_controls(ImVec2 pos, ImVec2 size);
  void draw_lane(const ViewModel& view, const RaceLane& lane, ImVec2 pos, ImVec2 size, float left, float right) const;

  uint64_t number_ = 0;  // of the answer that the race is of
  size_t lanes_ = 0;
  Race race_;
  bool running_ = false;
  double now_ms_ = 0;  // of the race
};

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
