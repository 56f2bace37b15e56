#pragma once
// What the user chose about the window itself, and the commands that change it. Where panels lie is Dear ImGui's to
// know (app/shell/dock_space.h); which of them are closed is state.

#include <cstdint>
#include <set>
#include <string>
#include <variant>

#include "app/base/choices.h"

namespace canopy::app {

struct ShellState {
  bool palette_shown = false;
  std::set<std::string> closed;         // panels, by name
  std::string raised;                   // the panel that was asked for last,
  uint32_t raises = 0;                  // and how often one was
  uint32_t layout_resets = 0;           // asked for so far
  uint32_t tree_budget = kShownBudget;  // nodes of a tree in mode Tree, 1 ... kLargestTreeBudget
};

struct ShowPalette {
  bool shown = true;
};
struct ShowPanel {  // opens it where it was and brings it to the front, or closes it
  std::string name;
  bool shown = true;
};
struct ResetLayout {};  // every panel at its first place and size
struct SetTreeBudget {  // of the replies to come
  uint32_t nodes = kShownBudget;
};

using ShellCommand = std::variant<ShowPalette, ShowPanel, ResetLayout, SetTreeBudget>;

void update(ShellState& state, const ShellCommand& command);

}  // namespace canopy::app
