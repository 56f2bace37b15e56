#pragma once
// All actions of keys and of the command palette in one list; shortcuts, help and palette are made from it. A new
// action is one line in actions.cpp; a test checks that no two have the same shortcut.

#include <optional>
#include <span>

#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

struct Action {
  const char* group;  // heading in help
  const char* name;   // "New chat"
  const char* keys;   // for the user: "Ctrl+N"; "" without a shortcut
  int chord;          // ImGuiKeyChord; 0 without one
  /// The command to post; nothing if the action is not possible now.
  std::optional<UiCommand> (*command)(const ViewModel& view);
};

std::span<const Action> actions();

/// Posts the commands of the shortcuts pressed in this frame, wherever the keyboard focus is. popup: a popup was open
/// when the last frame ended; then Esc closes that instead.
void handle_shortcuts(const ViewModel& view, bool popup, CommandSink& sink);

/// The next larger (direction 1) or smaller (-1) scale, in the steps known from browsers: 0.9, 1, 1.1, 1.25 ...
float next_scale(float scale, int direction);

}  // namespace canopy::app
