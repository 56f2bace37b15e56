#pragma once

#include "app/panels/panel.h"

namespace canopy::app {

/// The bar at the bottom: what the engine does and on which device, how full the cache is, its speed, how far the shown
/// round is behind, and whether rounds are recorded. 28 px high at 100%.
class StatusBar final : public Panel {
 public:
  const char* name() const override { return "Status bar"; }
  void draw(const ViewModel& view, CommandSink& sink) override;
};

}  // namespace canopy::app
