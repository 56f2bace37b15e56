#pragma once
// The panel at the bottom with a strip of all rounds, the shown one marked, and the controls of the replay.

#include <memory>

#include "app/panels/panel.h"
#include "app/timeline/timeline_view.h"

struct ImVec2;

namespace canopy::app {

class TimelinePanel final : public Panel {
 public:
  const char* name() const override { return "Timeline"; }
  void draw(const ViewModel& view, CommandSink& sink) override;

  /// What the user zoomed to; stays when another round is shown and when new ones come.
  const TimelineZoom& zoom() const { return zoom_; }

 private:
  void draw_plot(const RoundsState& rounds, CommandSink& sink, ImVec2 pos, ImVec2 size);
  void take_mouse(const RoundsState& rounds, const TimelineView& at, CommandSink& sink, ImVec2 pos, ImVec2 size);
  void catch_up(const RoundsState& rounds);

  TimelineZoom zoom_;
  TimelineScale scale_;  // largest values of the rounds seen so far
  size_t counted_ = 0;
  std::weak_ptr<const RoundLog> log_;  // the log that scale_ belongs to
};

}  // namespace canopy::app
