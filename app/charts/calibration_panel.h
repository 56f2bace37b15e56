#pragma once
// The panel of what was measured and learnt for the loaded models on this device: the calibration with its progress,
// and how reliable the drafter's path probabilities are.

#include "app/charts/statistics_trail.h"
#include "app/panels/panel.h"

namespace canopy::app {

class CalibrationPanel final : public Panel {
 public:
  const char* name() const override { return "Calibration"; }
  void draw(const ViewModel& view, CommandSink& sink) override;

 private:
  StatisticsTrail trail_;
};

}  // namespace canopy::app
