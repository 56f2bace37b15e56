#pragma once

#include "app/panels/panel.h"
#include "app/timeline/timeline_view.h"

namespace canopy::app {

/// The strip at the bottom of Watch: buttons of the replay, the present pass, and a bar for each pass. It has the
/// height of its window; a low one has a single row without bars.
class WatchStrip final : public Panel {
 public:
  const char* name() const override { return "Watch passes"; }
  void draw(const ViewModel& view, CommandSink& sink) override;

 private:
  void draw_bars(const RoundsState& rounds, CommandSink& sink, ImVec2 pos, ImVec2 size);

  std::weak_ptr<const RoundLog> log_;
  size_t counted_ = 0;
  TimelineScale scale_;
};

}  // namespace canopy::app
