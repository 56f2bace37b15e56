#pragma once

#include "app/panels/panel.h"

namespace canopy::app {

/// What the engine does now, on which device, how full the context is and how fast. 28 px high.
class StatusBar final : public Panel {
 public:
  const char* name() const override { return "Status bar"; }
  bool wanted(const ViewModel&) const override { return true; }
  void draw(const ViewModel& view, CommandSink& sink) override;
};

}  // namespace canopy::app
