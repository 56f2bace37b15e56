#pragma once

#include <span>

#include "app/ui_command.h"
#include "app/view_model.h"

namespace canopy::app {

struct Shortcut {
  int chord;         // ImGuiKeyChord
  const char* keys;  // as written in help
  const char* what;
};

/// Every shortcut of the window, in the order help lists them.
std::span<const Shortcut> shortcuts();

/// Posts the commands of the shortcuts pressed in this frame. They work wherever the keyboard focus is.
void handle_shortcuts(const ViewModel& view, CommandSink& sink);

}  // namespace canopy::app
