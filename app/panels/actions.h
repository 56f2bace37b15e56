#pragma once
// Everything a key or a line of the command palette can do: one list, from which shortcuts, help and palette are made.
// A new action is one line in actions.cpp; a test checks that no two share a shortcut.

#include <optional>
#include <span>

#include "app/state/ui_command.h"
#include "app/state/view_model.h"

namespace canopy::app {

struct Action {
  const char* group;  // heading in help
  const char* name;   // "New chat"
  const char* keys;   // as written: "Ctrl+N"; "" without a shortcut
  int chord;          // ImGuiKeyChord; 0 without one
  /// What to post; nothing where it makes no sense now.
  std::optional<UiCommand> (*command)(const ViewModel& view);
};

std::span<const Action> actions();

/// Posts the commands of the shortcuts pressed in this frame. They work wherever the keyboard focus is.
/// popup: one was over the panels when the last frame ended, and Esc closes it instead.
void handle_shortcuts(const ViewModel& view, bool popup, CommandSink& sink);

/// The next step people know from browsers: 0.9, 1, 1.1, 1.25 ...
float next_scale(float scale, int direction);

}  // namespace canopy::app
