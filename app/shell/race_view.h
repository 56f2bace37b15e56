#pragma once
// The devices of "What if" on one clock, with the passes that each would take.

#include <cstdint>

#include <imgui.h>

#include "app/state/ui_command.h"
#include "app/state/view_model.h"
#include "app/whatif/race.h"

namespace canopy::app {

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

}  // namespace canopy::app
