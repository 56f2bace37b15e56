#pragma once

#include <string>
#include <utility>
#include <vector>

#include "app/bars/top_bar_menus.h"
#include "app/panels/panel.h"

namespace canopy::app {

/// Target, drafter and device at the left, then memory; mode, scale, theme and the View menu at the right. 48 px high.
/// What does not fit goes by rank, and stays within reach: the menu of the target leads to the pickers that are left
/// out, the command palette to everything.
class TopBar final : public Panel {
 public:
  /// panels: by name, for the View menu.
  explicit TopBar(std::vector<std::string> panels) : panels_(std::move(panels)) {}

  const char* name() const override { return "Top bar"; }
  void draw(const ViewModel& view, CommandSink& sink) override;

 private:
  struct Fit;
  Fit fit(const ViewModel& view, float width) const;
  Fit fit_step(const ViewModel& view, float width, size_t index) const;
  void draw_pickers(const ViewModel& view, CommandSink& sink, const Fit& fit);

  std::vector<std::string> panels_;
  TargetMenu target_menu_;
};

}  // namespace canopy::app
