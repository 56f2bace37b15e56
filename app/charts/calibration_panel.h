#pragma once
// What is measured and learnt of the pair on this device: the calibration with its progress, and how far path
// probabilities were right.

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
