#pragma once
// Panels about the cost of the target's passes: the errors of predictions, and the roofline fitted to the measured
// costs.

#include "app/charts/cost_view.h"
#include "app/panels/panel.h"

namespace canopy::app {

/// The costs of the loaded models as CostView, computed once for each snapshot.
class ShownCosts {
 public:
  /// Null where nothing was measured, or where the shown rounds were not written by the loaded models.
  const CostView* of(const ViewModel& view);

 private:
  std::shared_ptr<const CostSnapshot> costs_;
  CostView view_;
};

class ResidualsPanel final : public Panel {
 public:
  const char* name() const override { return "Residuals"; }
  void draw(const ViewModel& view, CommandSink& sink) override;

 private:
  ShownCosts costs_;
};

class RooflinePanel final : public Panel {
 public:
  const char* name() const override { return "Roofline"; }
  void draw(const ViewModel& view, CommandSink& sink) override;

 private:
  ShownCosts costs_;
};

}  // namespace canopy::app
