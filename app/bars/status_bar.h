#pragma once

#include "app/panels/panel.h"

namespace canopy::app {

/// What the engine does now and on which device, how full the cache is, how fast it writes, how far the view is behind,
/// whether rounds are recorded. 28 px high.
class StatusBar final : public Panel {
 public:
  const char* name() const override { return "Status bar"; }
  void draw(const ViewModel& view, CommandSink& sink) override;
};

}  // namespace canopy::app
