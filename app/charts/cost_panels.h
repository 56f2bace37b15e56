#pragma once
// What passes of the target cost: how far predictions were off, and the roofline that was fitted to the measured ones.

#include "app/charts/cost_view.h"
#include "app/panels/panel.h"

namespace canopy::app {

/// The costs of the loaded pair, worked out once for each snapshot.
class ShownCosts {
 public:
  /// Null where nothing was measured, or where the rounds shown come from elsewhere.
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
