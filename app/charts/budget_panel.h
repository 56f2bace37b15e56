#pragma once
// Why the shown round had its width: S(N), the sentence, and the candidates.

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

  std::shared_ptr<const RoundRecord> round_;  // that view_ is of
  std::shared_ptr<const CostSnapshot> costs_;
  BudgetView view_;
};

}  // namespace canopy::app
