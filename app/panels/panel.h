#pragma once
// What the shell arranges. A panel shows a part of the view model and answers with commands; it never changes the state
// and never touches the engine. A panel is one file and one line in app/shell/shell_panels.cpp. Its window has no
// padding and does not scroll: what may be taller than its place scrolls in a child window of its own.

#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

class Panel {
 public:
  virtual ~Panel() = default;

  /// Window title and id; the words on the tab of a docked panel.
  virtual const char* name() const = 0;

  /// Draws inside the window the shell has begun.
  virtual void draw(const ViewModel& view, CommandSink& sink) = 0;
};

}  // namespace canopy::app
