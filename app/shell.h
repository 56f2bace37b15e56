#pragma once
// Arranges the panels in the window: bars at the top and the bottom, one content panel between them. When the tree,
// budget and statistics panels arrive they join contents_ and share that room.

#include <memory>
#include <vector>

#include "app/panels/panel.h"

namespace canopy::app {

class Shell {
 public:
  Shell();
  ~Shell();

  /// Draws one frame's windows into the current ImGui context and posts what the user asked for.
  void draw(const ViewModel& view, CommandSink& sink);

 private:
  std::unique_ptr<Panel> top_bar_, status_bar_;
  std::vector<std::unique_ptr<Panel>> contents_;  // the first wanted one gets the room
};

}  // namespace canopy::app
