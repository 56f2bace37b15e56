#include "app/shell/shell_panels.h"

#include "app/panels/chat_panel.h"

namespace canopy::app {

std::vector<DockedPanel> make_docked_panels() {
  std::vector<DockedPanel> panels;
  // One line a panel. Of a place's tabs the first is in front.
  panels.push_back({std::make_unique<ChatPanel>(), DockPlace::left});
  return panels;
}

}  // namespace canopy::app
