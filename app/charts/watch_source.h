#pragma once
// The numbers of Watch and its budget line for what the window shows, kept up to date from frame to frame.

#include <optional>

#include "app/charts/watch_numbers_view.h"
#include "app/state/view_model.h"

namespace canopy::app {

class WatchSource {
 public:
  /// Call in each frame before the others. Of another device it has what was computed for view.what_if.chip.
  void update(const ViewModel& view);

  const WatchNumbers& numbers() const { return numbers_; }
  /// Null before the first round, and where its tree was let go for memory.
  const BudgetLine* line() const { return line_ ? &*line_ : nullptr; }
  /// The newest round whose tokens are in the text; nullopt before the first. What its widths promised and would have
  /// brought, which in slow motion tells more than line() may.
  std::optional<size_t> round() const { return round_; }
  const BudgetView& budget() const { return budget_; }
  /// Whether all rounds were read; else draw another frame soon.
  bool done() const { return trail_.done(); }

 private:
  StatisticsTrail trail_;
  WatchNumbers numbers_;
  std::optional<BudgetLine> line_;
  std::optional<size_t> round_;
  BudgetView budget_;
};

}  // namespace canopy::app
