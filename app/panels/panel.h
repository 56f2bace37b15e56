#pragma once
// What the shell arranges. A panel shows a part of the view model and answers with commands; it never changes the state
// and never touches the engine. New panels (tree, budget, statistics) are one file each and one line in shell.cpp.

#include "app/ui_command.h"
#include "app/view_model.h"

namespace canopy::app {

class Panel {
 public:
  virtual ~Panel() = default;

  /// Window title and id.
  virtual const char* name() const = 0;

  /// Whether there is something to show; the shell gives the room to the others.
  virtual bool wanted(const ViewModel& view) const = 0;

  /// Draws inside the window the shell has begun.
  virtual void draw(const ViewModel& view, CommandSink& sink) = 0;
};

}  // namespace canopy::app
