#pragma once
// The strip of all rounds at the bottom: which were written, which one is shown, and the controls of time.

#include <memory>

#include "app/panels/panel.h"
#include "app/timeline/timeline_view.h"

struct ImVec2;

namespace canopy::app {

class TimelinePanel final : public Panel {
 public:
  const char* name() const override { return "Timeline"; }
  void draw(const ViewModel& view, CommandSink& sink) override;

  /// What the user zoomed to; kept whatever is shown, and when time goes on.
  const TimelineZoom& zoom() const { return zoom_; }

 private:
  void draw_plot(const RoundsState& rounds, CommandSink& sink, ImVec2 pos, ImVec2 size);
  void take_mouse(const RoundsState& rounds, const TimelineView& at, CommandSink& sink, ImVec2 pos, ImVec2 size);
  void catch_up(const RoundsState& rounds);

  TimelineZoom zoom_;
  TimelineScale scale_;  // of the rounds counted so far
  size_t counted_ = 0;
  std::weak_ptr<const RoundLog> log_;  // that they are of
};

}  // namespace canopy::app
