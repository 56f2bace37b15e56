#pragma once

#include <cstddef>

#include "app/panels/panel.h"

namespace canopy::app {

/// Every round on a line of its own: what was drafted, what came of it, and how long it took. A line shows its round in
/// the other panels; the shown one is marked and kept in sight.
class RoundTablePanel final : public Panel {
 public:
  const char* name() const override { return "Round table"; }
  void draw(const ViewModel& view, CommandSink& sink) override;

 private:
  void draw_rows(const RoundsState& rounds, float width, CommandSink& sink);

  size_t kept_ = 0;     // the round that was scrolled to last
  size_t kept_of_ = 0;  // rounds that there were then
};

}  // namespace canopy::app
