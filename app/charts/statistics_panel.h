#pragma once
// The panel of statistics over the shown reply, from its first round to the shown one.

#include "app/charts/statistics_view.h"
#include "app/ui/panel.h"

namespace canopy::app {

class StatisticsPanel final : public Panel {
 public:
  /// Seconds between two updates of the key figures while a reply is being written.
  static constexpr double kFigureInterval = 0.25;

  const char* name() const override { return "Live"; }
  void draw(const ViewModel& view, CommandSink& sink) override;

  /// Number of updates of the key figures so far; for tests.
  size_t refreshes() const { return refreshes_; }

 private:
  void update(const ViewModel& view);
  void refresh_figures(const ViewModel& view);

  StatisticsTrail trail_;
  StatisticsView view_;     // of the present frame
  StatisticsView figures_;  // its key figures are the ones shown
  SpeedSeries speed_;
  double refreshed_ = -1;
  size_t refreshes_ = 0;
};

}  // namespace canopy::app
