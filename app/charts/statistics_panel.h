#pragma once
// What the shown reply's rounds come to, up to the shown one.

#include "app/charts/statistics_trail.h"
#include "app/charts/statistics_view.h"
#include "app/panels/panel.h"

namespace canopy::app {

class StatisticsPanel final : public Panel {
 public:
  /// Seconds between two refreshes of the key figures while a reply is written.
  static constexpr double kFigureInterval = 0.25;

  const char* name() const override { return "Live"; }
  void draw(const ViewModel& view, CommandSink& sink) override;

  /// How often the key figures were brought up to date, for tests.
  size_t refreshes() const { return refreshes_; }

 private:
  void update(const ViewModel& view);
  void refresh_figures(const ViewModel& view);

  StatisticsTrail trail_;
  StatisticsView view_;     // of this frame
  StatisticsView figures_;  // whose key figures are shown
  SpeedSeries speed_;
  double refreshed_ = -1;
  size_t refreshes_ = 0;
};

}  // namespace canopy::app
