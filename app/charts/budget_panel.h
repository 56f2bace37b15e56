#pragma once
// The panel that explains the budget N of the shown round: the curve S(N), a sentence, and the candidates.

#include "app/charts/budget_view.h"
#include "app/panels/panel.h"

namespace canopy::app {

class BudgetPanel final : public Panel {
 public:
  const char* name() const override { return "Budget"; }
  void draw(const ViewModel& view, CommandSink& sink) override;

 private:
  /// The view of the shown round; null before the first.
  const BudgetView* shown(const ViewModel& view);

  std::shared_ptr<const RoundRecord> round_;  // the round that view_ was made of
  std::shared_ptr<const CostSnapshot> costs_;
  double plain_ = 0;  // and the speed of plain decoding
  BudgetView view_;
};

}  // namespace canopy::app
