#pragma once

#include "app/panels/panel.h"
#include "app/panels/top_bar_menus.h"

namespace canopy::app {

/// Target, drafter and device at the left, then memory; mode, scale and theme at the right. 48 px high. What does not
/// fit goes by rank, and stays within reach: the menu of the target leads to the pickers that are left out, the command
/// palette to everything.
class TopBar final : public Panel {
 public:
  const char* name() const override { return "Top bar"; }
  bool wanted(const ViewModel&) const override { return true; }
  void draw(const ViewModel& view, CommandSink& sink) override;

 private:
  struct Fit;
  Fit fit(const ViewModel& view, float room) const;
  void draw_pickers(const ViewModel& view, CommandSink& sink, const Fit& fit);

  TargetMenu target_menu_;
};

}  // namespace canopy::app
