#pragma once
// The panel with one line for each round.

#include <cstddef>

#include "app/ui/panel.h"

namespace canopy::app {

/// The panel with one line for each round: what was drafted, what was accepted, and how long it took. A click on a line
/// shows that round; the shown one is marked and scrolled to.
class RoundTablePanel final : public Panel {
 public:
  const char* name() const override { return "Passes"; }
  void draw(const ViewModel& view, CommandSink& sink) override;

 private:
  void draw_rows(const RoundsState& rounds, float width, CommandSink& sink);

  size_t kept_ = 0;     // the round that was last scrolled to
  size_t kept_of_ = 0;  // number of rounds at that time
};

}  // namespace canopy::app
