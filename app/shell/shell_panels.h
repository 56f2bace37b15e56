#pragma once
// The list of panels that share the window.

#include <memory>
#include <span>
#include <vector>

#include "app/panels/panel.h"
#include "app/shell/dock_space.h"

namespace canopy::app {

struct DockedPanel {
  std::unique_ptr<Panel> panel;
  DockPlace place;
};

/// Every panel, in the order of tabs.
std::vector<DockedPanel> make_docked_panels();

}  // namespace canopy::app
