#pragma once
// The bar at the top, with the switches of layout and mode, and the status bar at the bottom.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/ui/bar_menus.h"
#include "app/ui/panel.h"

namespace canopy::app {

/// The bar at the top: target, drafter, device and memory at the left; mode, scale, theme and the View menu at the
/// right. 48 px high at 100%. In a narrow window the less important parts are left out: the menu of the target then has
/// the pickers that are missing, and the command palette has everything.
class TopBar final : public Panel {
 public:
  /// panels: their names, for the View menu.
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

/// Width of the switch "guess | plain", or with `stacked` of guess over plain. 0 where there is nothing to switch:
/// without a model, and over a recording or a served reply.
float way_switch_width(const ViewModel& view, bool stacked);
/// Draws it with its upper left corner at `from`, each of the two `height` pixels high; a click on either changes how
/// the next replies are written. area: the part of the window whose keyboard focus may stand on it.
void draw_way_switch(const ViewModel& view, ImVec2 from, float height, bool stacked, std::string_view area,
                     CommandSink& sink);

/// The bar at the bottom: what the engine does and on which device, how full the cache is, its speed, what is served,
/// how far the shown round is behind, whether rounds are recorded, and in Lab the switch "guess | plain". 28 px high at
/// 100%.
class StatusBar final : public Panel {
 public:
  const char* name() const override { return "Status bar"; }
  void draw(const ViewModel& view, CommandSink& sink) override;
};

}  // namespace canopy::app
